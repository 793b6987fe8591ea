# Only on a Mac: one Objective-C++ file, and one shader embedded as PyTorch embeds its kernels.
set(MPS "${CMAKE_SOURCE_DIR}/csrc/mps")
target_sources(sample_core PRIVATE "${MPS}/scale.mm")
set_source_files_properties("${MPS}/scale.mm" PROPERTIES COMPILE_OPTIONS -fobjc-arc)
target_compile_definitions(sample_core PRIVATE USE_MPS)
foreach(framework Foundation MetalPerformanceShaders MetalPerformanceShadersGraph Metal)
  target_link_options(sample_core PRIVATE "SHELL:-weak_framework ${framework}")
endforeach()

if(CAN_COMPILE_METAL)
  set(AIR "${GENERATED}/scale.air")
  set(METALLIB "${GENERATED}/kernels_basic.metallib")
  add_custom_command(
    OUTPUT "${METALLIB}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${GENERATED}"
    COMMAND xcrun metal ${METAL_FLAGS} -c "${MPS}/scale.metal" -o "${AIR}"
    COMMAND xcrun metallib -o "${METALLIB}" "${AIR}"
    DEPENDS "${MPS}/scale.metal"
    VERBATIM)
  target_sources(sample_core PRIVATE "${METALLIB}")
  target_link_options(sample_core PRIVATE "LINKER:-sectcreate,__TEXT,metal_basic,${METALLIB}")
  set_property(TARGET sample_core APPEND PROPERTY LINK_DEPENDS "${METALLIB}")
else()
  add_custom_command(
    OUTPUT "${GENERATED}/scale_source.h"
    COMMAND ${GENERATE} --shader "${MPS}/scale.metal" --output "${GENERATED}/scale_source.h"
    DEPENDS "${MPS}/scale.metal" "${CMAKE_SOURCE_DIR}/tools/generate.py"
    VERBATIM)
  target_sources(sample_core PRIVATE "${GENERATED}/scale_source.h")
  target_compile_definitions(sample_core PRIVATE SAMPLE_JIT_COMPILE_SHADERS)
endif()
