# CMake knows no platform of this name: static archives and plain executables are all we need of it.
set(CMAKE_STATIC_LIBRARY_PREFIX lib)
set(CMAKE_STATIC_LIBRARY_SUFFIX .a)
