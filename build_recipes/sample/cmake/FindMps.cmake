# Sets MPS_FOUND. The questions, the messages and the cache entries are those of PyTorch's top
# CMakeLists.txt: an SDK of 12.3 or newer, and the framework both in the SDK and in the system.
set(MPS_FOUND OFF)
if(APPLE)
  execute_process(
    COMMAND bash -c "xcrun --sdk macosx --show-sdk-version"
    RESULT_VARIABLE _exit OUTPUT_VARIABLE _sdk_version OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(_exit EQUAL 0)
    set(_supported OFF)
    if(_sdk_version VERSION_GREATER_EQUAL 12.3)
      set(_supported ON)
    endif()
    message(STATUS "sdk version: ${_sdk_version}, mps supported: ${_supported}")
    execute_process(
      COMMAND bash -c "xcrun --sdk macosx --show-sdk-path"
      OUTPUT_VARIABLE _sdk_path OUTPUT_STRIP_TRAILING_WHITESPACE)
    find_library(_MPS_fwrk_path_ NAMES MetalPerformanceShadersGraph
                 PATHS "/System/Library/Frameworks" NO_DEFAULT_PATH)
    find_library(_MPS_sdk_path_ NAMES MetalPerformanceShadersGraph
                 PATHS "${_sdk_path}/System/Library/Frameworks" NO_DEFAULT_PATH)
    if(_supported AND _MPS_fwrk_path_ AND _MPS_sdk_path_)
      set(MPS_FOUND ON)
    endif()
  else()
    message(STATUS "MPS: unable to get MacOS sdk version")
  endif()
  if(MPS_FOUND)
    message(STATUS "MPSGraph framework found")
  else()
    message(STATUS "MPSGraph framework not found")
  endif()
endif()
