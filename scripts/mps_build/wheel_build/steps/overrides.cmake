# Generated beside the build by mps-build; enters through CMAKE_PROJECT_TOP_LEVEL_INCLUDES, so the
# source is not touched. At the end of every configure it writes what configure came out with, and
# stops a build whose answer is not the recipe's: also one that the build back end configures again.
function(mps_build_gate)
  if(NOT CMAKE_CURRENT_SOURCE_DIR STREQUAL CMAKE_SOURCE_DIR)
    return()
  endif()
  set(facts "{}")
  foreach(name IN ITEMS USE_MPS CAN_COMPILE_METAL CAN_COMPILE_METAL_40 USE_OPENMP CMAKE_CXX_STANDARD
                        CMAKE_OSX_DEPLOYMENT_TARGET CMAKE_OSX_SYSROOT CMAKE_CXX_COMPILER
                        CMAKE_CXX_COMPILER_ID CMAKE_CXX_COMPILER_VERSION CMAKE_GENERATOR)
    if(DEFINED ${name})
      string(REPLACE "\\" "\\\\" value "${${name}}")
      string(REPLACE "\"" "\\\"" value "${value}")
      string(JSON facts SET "${facts}" "${name}" "\"${value}\"")
    endif()
  endforeach()
  file(WRITE "${CMAKE_BINARY_DIR}/mps-build-facts.json" "${facts}\n")
  # Not in the configure step itself: there check_gate follows, and says why it came out so.
  if(MPS_BUILD_EXPECT_USE_MPS AND NOT USE_MPS AND NOT DEFINED ENV{MPS_BUILD_GATE_FOLLOWS})
    message(FATAL_ERROR "mps-build: USE_MPS came out OFF although the recipe asks for it")
  endif()
endfunction()
cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL mps_build_gate)
