# Sets CAN_COMPILE_METAL, proved by compiling the sample's own shader; checked once per build folder, as in PyTorch.
set(METAL_FLAGS -std=macos-metal2.3 "-mmacosx-version-min=${CMAKE_OSX_DEPLOYMENT_TARGET}")
if(NOT CAN_COMPILE_METAL_FOUND)
  execute_process(
    COMMAND xcrun metal ${METAL_FLAGS} -c "${CMAKE_SOURCE_DIR}/csrc/mps/scale.metal" -o "${CMAKE_BINARY_DIR}/probe.air"
    RESULT_VARIABLE _exit ERROR_VARIABLE _error OUTPUT_QUIET)
  if(_exit EQUAL 0)
    message(STATUS "Machine can compile metal shaders")
    set(CAN_COMPILE_METAL YES CACHE BOOL "Host can compile metal shaders")
  else()
    message(WARNING "Machine can not compile metal shaders, fails with ${_error}")
    set(CAN_COMPILE_METAL NO CACHE BOOL "Host can compile metal shaders")
  endif()
  set(CAN_COMPILE_METAL_FOUND YES CACHE INTERNAL "Run check for shader compiler")
endif()
