# preflop_flags: what every target of ours is compiled with.

# C++20 without GNU extensions, so that g++, clang and WebAssembly read the same language.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_COLOR_DIAGNOSTICS ON)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# The third-party headers we use, and nothing else of /usr/include: a cross compiler must not see the
# host's C library, and a native one finds them without help.
set(third_party ${CMAKE_BINARY_DIR}/third_party)
foreach(header IN ITEMS nlohmann toml++ fmt fast_float)
  if(NOT EXISTS /usr/include/${header})
    message(FATAL_ERROR "/usr/include/${header} is missing; ./preflop names the Debian packages")
  endif()
  file(MAKE_DIRECTORY ${third_party})
  file(CREATE_LINK /usr/include/${header} ${third_party}/${header} SYMBOLIC)
endforeach()

add_library(preflop_flags INTERFACE)
target_include_directories(preflop_flags INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR})
target_include_directories(preflop_flags SYSTEM INTERFACE ${third_party})
# -ffp-contract=off: no fused multiply-add, so that every target computes the same bits.
target_compile_options(preflop_flags INTERFACE -Wall -Wextra -Werror -ffp-contract=off)
# libstdc++ 12's own stable_sort calls a function that C++17 deprecated; clang says so at our call.
target_compile_options(preflop_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
# Errors are values everywhere: the header-only libraries are compiled without throw, and all targets
# must agree on that. fmt and toml++ are compiled into the library (src/base/*_impl.cpp), never linked.
target_compile_definitions(
  preflop_flags INTERFACE JSON_NOEXCEPTION=1 TOML_EXCEPTIONS=0 TOML_HEADER_ONLY=0 FMT_EXCEPTIONS=0
                          FMT_STATIC_THOUSANDS_SEPARATOR=',')
