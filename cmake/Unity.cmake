# preflop_unity(TARGET): with PREFLOP_UNITY, the files of one folder are compiled together, at most eight at a time:
# headers are parsed once for all of them, and a cold build takes a third of the time. So names in the unnamed
# namespaces of a folder differ from each other.
function(preflop_unity target)
  if(NOT PREFLOP_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    # *_impl.cpp compile a library's own source, under its own macros.
    if(NOT source MATCHES "\\.cpp$" OR source MATCHES "_impl\\.cpp$|/generated/")
      continue()
    endif()
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    math(EXPR count_${folder} "0${count_${folder}} + 1")
    math(EXPR part "(${count_${folder}} - 1) / 8")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${part})
  endforeach()
endfunction()
