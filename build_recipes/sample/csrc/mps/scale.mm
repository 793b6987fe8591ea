#include "mps_build_sample/core.h"

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>
#include <mach-o/getsect.h>
#include <mach-o/ldsyms.h>

#include <cstring>
#include <string>

#ifdef SAMPLE_JIT_COMPILE_SHADERS
#include "scale_source.h"
#endif

namespace {

id<MTLLibrary> library(id<MTLDevice> device, NSError** error) {
#ifdef SAMPLE_JIT_COMPILE_SHADERS
  return [device newLibraryWithSource:[NSString stringWithUTF8String:kScaleSource] options:nil error:error];
#else
  unsigned long size = 0;
  const uint8_t* bytes = getsectiondata(&_mh_dylib_header, "__TEXT", "metal_basic", &size);
  if (bytes == nullptr) {
    return nil;
  }
  // The section lives as long as the image: nothing to free.
  dispatch_data_t data = dispatch_data_create(bytes, size, nullptr, ^{
  });
  return [device newLibraryWithData:data error:error];
#endif
}

}  // namespace

int sample_mps_built(void) {
  return 1;
}

const char* sample_scale_on_gpu(float* values, size_t count, float factor) {
  static thread_local std::string problem;
  @autoreleasepool {
    id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    if (device == nil) {
      problem = "no Metal device: a virtual machine, a sandbox, or no session on the screen";
      return problem.c_str();
    }
    NSError* error = nil;
    id<MTLLibrary> kernels = library(device, &error);
    id<MTLFunction> function = [kernels newFunctionWithName:@"scale"];
    id<MTLComputePipelineState> pipeline =
        function == nil ? nil : [device newComputePipelineStateWithFunction:function error:&error];
    if (pipeline == nil) {
      problem = error == nil ? "the kernel `scale` is not in the library" : error.localizedDescription.UTF8String;
      return problem.c_str();
    }
    const size_t bytes = count * sizeof(float);
    id<MTLBuffer> buffer = [device newBufferWithBytes:values length:bytes options:MTLResourceStorageModeShared];
    id<MTLCommandBuffer> commands = [[device newCommandQueue] commandBuffer];
    id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
    [encoder setComputePipelineState:pipeline];
    [encoder setBuffer:buffer offset:0 atIndex:0];
    [encoder setBytes:&factor length:sizeof(factor) atIndex:1];
    [encoder dispatchThreads:MTLSizeMake(count, 1, 1)
        threadsPerThreadgroup:MTLSizeMake(pipeline.threadExecutionWidth, 1, 1)];
    [encoder endEncoding];
    [commands commit];
    [commands waitUntilCompleted];
    if (commands.error != nil) {
      problem = commands.error.localizedDescription.UTF8String;
      return problem.c_str();
    }
    std::memcpy(values, buffer.contents, bytes);
  }
  return nullptr;
}
