# USE_*, BUILD_* and CMAKE_* of the environment become cache entries, unless they are there already,
# as in PyTorch (cmake/EnvVarForwarding.cmake from 2.12 on, setup.py before).
execute_process(COMMAND "${CMAKE_COMMAND}" -E environment OUTPUT_VARIABLE _environment)
string(REPLACE ";" "\\;" _environment "${_environment}")
string(REPLACE "\n" ";" _environment "${_environment}")
foreach(_line IN LISTS _environment)
  if(_line MATCHES "^((USE|BUILD|CMAKE)_[A-Z0-9_]+)=(.*)$")
    set(_name "${CMAKE_MATCH_1}")
    set(_value "${CMAKE_MATCH_3}")
    # CMake reads these from the environment by itself, when it starts.
    if(NOT _name MATCHES "^CMAKE_(TOOLCHAIN_FILE|GENERATOR|BUILD_TYPE|ARGS|BUILD_PARALLEL_LEVEL|PREFIX_PATH)"
       AND NOT DEFINED CACHE{${_name}})
      set(${_name} "${_value}" CACHE STRING "from the environment")
    endif()
  endif()
endforeach()
