# preflop_embed_data(OUT): sets OUT to a generated source file that holds every file under data/.
# src/base/embedded.hpp reads it.
function(preflop_embed_data out)
  file(GLOB_RECURSE data_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/data/*.csv ${CMAKE_SOURCE_DIR}/data/*.toml)
  # What only `validate` and tests read is not downloaded with the web page, which does not validate.
  if(CMAKE_SYSTEM_NAME STREQUAL "WASI")
    list(FILTER data_files EXCLUDE REGEX "/data/(measured|vocabulary|user_cases|measured_[a-z]+|whole_runs|launch_options|residuals|contradictions)(/|\\.csv)")
  endif()
  set(source ${CMAKE_BINARY_DIR}/generated/embedded_data.cpp)
  list(JOIN data_files "\n" lines)
  # Written only when it changes: a removed data file regenerates the source, too.
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/data_files.txt CONTENT "${lines}" @ONLY)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR}/data -DLIST=${CMAKE_BINARY_DIR}/generated/data_files.txt
            -DOUT=${source} -P ${CMAKE_SOURCE_DIR}/tools/embed/embed.cmake
    DEPENDS ${data_files} ${CMAKE_BINARY_DIR}/generated/data_files.txt ${CMAKE_SOURCE_DIR}/tools/embed/embed.cmake
    COMMENT "Embedding data/"
    VERBATIM)
  set(${out} ${source} PARENT_SCOPE)
endfunction()
