# cmake -DCXX=... -DSOURCE=... -DROOT=... -DTHIRD_PARTY=... -P compile_fail.cmake
#
# SOURCE must compile with PREFLOP_CONTROL defined and must not without: so it fails for the reason
# it was written for, and not for a missing header.
set(command ${CXX} -std=c++20 -fsyntax-only -I${ROOT}/include -I${ROOT} -isystem ${THIRD_PARTY} ${SOURCE})
execute_process(COMMAND ${command} -DPREFLOP_CONTROL RESULT_VARIABLE control ERROR_VARIABLE messages)
if(NOT control EQUAL 0)
  message(FATAL_ERROR "${SOURCE}: does not compile even with PREFLOP_CONTROL\n${messages}")
endif()
execute_process(COMMAND ${command} RESULT_VARIABLE result ERROR_QUIET)
if(result EQUAL 0)
  message(FATAL_ERROR "${SOURCE}: compiles, but must not")
endif()
