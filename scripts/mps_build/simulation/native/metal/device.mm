// The device: what it can, and what it makes.
#include "../foundation/foundation.h"
#include "kernels.h"
#include "metal.h"

namespace {
size_t size_of(MTLDataType type) {
  switch (type) {
    case MTLDataTypeBool: case MTLDataTypeChar: case MTLDataTypeUChar: return 1;
    case MTLDataTypeShort: case MTLDataTypeUShort: case MTLDataTypeHalf: return 2;
    case MTLDataTypeInt: case MTLDataTypeUInt: case MTLDataTypeFloat: return 4;
    default: sim::refuse_with("there is no function constant of type ", (unsigned long)type);
  }
}
} // namespace

namespace sim {
SimHeap *new_heap(MTLHeapDescriptor *descriptor);
id<MTLSharedEvent> new_event();
} // namespace sim

@interface SimQueue : NSObject <MTLCommandQueue>
@end
@implementation SimQueue
- (id<MTLDevice>)device {
  return sim::device();
}
@end

// Addresses of buffers, written where a kernel reads them.
@interface SimArgumentEncoder : NSObject <MTLArgumentEncoder> {
 @public
  SimBuffer *buffer;
  size_t begin, length;
}
@end
@implementation SimArgumentEncoder
- (NSUInteger)encodedLength {
  return length;
}
- (void)setArgumentBuffer:(id<MTLBuffer>)given offset:(NSUInteger)offset {
  buffer = (SimBuffer *)given;
  begin = offset;
  if (offset + length > buffer->size)
    sim::refuse_with("an argument buffer of ", buffer->size, " bytes holds none of ", length, " at ", offset);
}
- (void)setBuffer:(id<MTLBuffer>)given offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  if (8 * index + 8 > length) sim::refuse_with("an argument buffer of ", length, " bytes has no index ", index);
  auto *target = (SimBuffer *)given;
  *(char **)(buffer->memory + begin + 8 * index) = target ? target->memory + offset : nullptr;
  if (!buffer->addressed) buffer->addressed = new std::vector<id>;
  if (buffer->addressed->size() <= index) buffer->addressed->resize(index + 1);
  (*buffer->addressed)[index] = (id)target; // not kept: Metal does not either
}
@end

@implementation SimFunction
- (NSString *)name {
  return [NSString stringWithUTF8String:kernel->name.c_str()];
}
- (id<MTLDevice>)device {
  return sim::device();
}
- (id<MTLArgumentEncoder>)newArgumentEncoderWithBufferIndex:(NSUInteger)index {
  auto *made = [SimArgumentEncoder new];
  for (auto &each : kernel->arguments)
    if (each.slot == (int)index && each.size != -1) made->length = (size_t)std::abs(each.size); // of a pointer: an array of such
  if (!made->length) sim::refuse_with(kernel->name, " has no structure at index ", index);
  return made;
}
@end
@interface MTLFunctionConstantValues () {
 @public
  std::map<uint64_t, std::string> *values;
}
@end
@implementation MTLFunctionConstantValues
- (void)setConstantValue:(const void *)value type:(MTLDataType)type atIndex:(NSUInteger)index {
  if (!values) values = new std::map<uint64_t, std::string>;
  (*values)[index] = std::string((const char *)value, size_of(type));
}
- (void)dealloc {
  delete values;
  [super dealloc];
}
@end
@implementation SimLibrary
- (id<MTLDevice>)device {
  return sim::device();
}
- (id<MTLFunction>)newFunctionWithName:(NSString *)name {
  auto found = library->kernels.find([name UTF8String]);
  if (found == library->kernels.end()) return nil;
  sim::make_ready(found->second);
  auto *made = (SimFunction *)[SimFunction alloc];
  made->kernel = &found->second;
  return made;
}
// One function for each set of values; for good, as its library is.
- (id<MTLFunction>)newFunctionWithName:(NSString *)name
                        constantValues:(MTLFunctionConstantValues *)given
                                 error:(NSError **)error {
  const std::string plain = [name UTF8String];
  auto found = library->kernels.find(plain);
  if (found == library->kernels.end()) return nil;
  sim::make_ready(found->second);
  sim::Kernel special = found->second;
  std::string key = plain;
  for (auto &[index, constant] : library->constants) {
    auto value = given->values ? given->values->find(index) : decltype(given->values->end()){};
    if (!given->values || value == given->values->end()) sim::refuse_with(plain, " needs the function constant ", index);
    if (value->second.size() != constant.size)
      sim::refuse_with(plain, ": function constant ", index, " has ", constant.size, " bytes, not ", value->second.size());
    key += std::string(1, 0) + value->second;
    special.constants.push_back({constant.at, value->second});
  }
  auto *made = (SimFunction *)[SimFunction alloc];
  made->kernel = &library->specialised.emplace(key, special).first->second;
  return made;
}
- (NSArray<NSString *> *)functionNames {
  id out = [NSMutableArray array];
  for (auto &each : library->kernels) [out addObject:[NSString stringWithUTF8String:each.first.c_str()]];
  return out;
}
@end
@implementation SimPipeline
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return kernel->most_threads;
}
- (NSUInteger)threadExecutionWidth {
  return 32;
}
- (NSUInteger)staticThreadgroupMemoryLength {
  NSUInteger all = 0;
  for (auto &each : kernel->variables) all += each.size;
  return all;
}
- (id<MTLDevice>)device {
  return sim::device();
}
@end

@implementation MTLCompileOptions
- (void)setLanguageVersion:(MTLLanguageVersion)version {
  sim::need_constant("MTLLanguageVersion" + std::to_string(version >> 16) + "_" + std::to_string(version & 0xffff));
}
- (void)setFastMathEnabled:(BOOL)is_fast {
}
- (void)setMathMode:(MTLMathMode)mode {
}
- (void)setMathFloatingPointFunctions:(MTLMathFloatingPointFunctions)functions {
}
// PyTorch 2.0 to 2.4 take macOS for 13.3 or newer if this is answered.
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return 0;
}
@end
@implementation MTLCaptureDescriptor
- (void)setCaptureObject:(id)object {
}
- (void)setDestination:(MTLCaptureDestination)destination {
}
- (void)setOutputURL:(NSURL *)address {
}
@end
@implementation MTLCaptureManager
+ (MTLCaptureManager *)sharedCaptureManager {
  static auto *one = [MTLCaptureManager new];
  return one;
}
- (BOOL)isCapturing {
  return NO;
}
- (BOOL)startCaptureWithDescriptor:(MTLCaptureDescriptor *)descriptor error:(NSError **)error {
  return NO;
}
- (void)stopCapture {
}
- (BOOL)supportsDestination:(MTLCaptureDestination)destination {
  return NO;
}
@end

@interface SimDevice : NSObject <MTLDevice>
@end
@implementation SimDevice
- (NSString *)name {
  return @"Software Metal";
}
- (BOOL)isLowPower {
  return NO;
}
- (BOOL)hasUnifiedMemory {
  return YES;
}
- (BOOL)supportsFamily:(MTLGPUFamily)family {
  return YES;
}
- (NSUInteger)maxThreadgroupMemoryLength {
  return 32768;
}
- (id<MTLLibrary>)newLibraryWithURL:(NSURL *)address error:(NSError **)error {
  sim::refuse("a Metal library in a file of its own is not simulated");
}
- (NSUInteger)maxBufferLength {
  return 1ul << 33;
}
- (uint64_t)recommendedMaxWorkingSetSize {
  return 1ul << 33;
}
- (NSUInteger)currentAllocatedSize {
  return sim::allocated_bytes();
}
- (MTLSizeAndAlign)heapBufferSizeAndAlignWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  return MTLSizeAndAlign{sim::charge_of(length), 256};
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  // Of the device, not of a heap: cleared (Apple's page of MTLDevice makeBuffer(length:options:)). PyTorch 1.13's
  // indexing adds to it.
  return sim::new_buffer(length, options, true);
}
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void *)bytes
                                   length:(NSUInteger)length
                                  options:(MTLResourceOptions)options
                              deallocator:(void (^)(void *, NSUInteger))deallocator {
  return sim::new_buffer_over(bytes, length, options);
}
- (id<MTLHeap>)newHeapWithDescriptor:(MTLHeapDescriptor *)descriptor {
  return sim::new_heap(descriptor);
}
- (id<MTLCommandQueue>)newCommandQueue {
  return [SimQueue new];
}
- (id<MTLSharedEvent>)newSharedEvent {
  return sim::new_event();
}
- (id<MTLLibrary>)made:(std::unique_ptr<sim::Library>)library {
  auto *made = (SimLibrary *)[SimLibrary alloc];
  made->library = library.release(); // for good: pipelines point into it
  return made;
}
- (id<MTLLibrary>)newLibraryWithData:(dispatch_data_t)data error:(NSError **)error {
  auto *given = (SimDispatchData *)data;
  return [self made:sim::library_of(given->bytes, given->size)];
}
- (id<MTLLibrary>)newLibraryWithSource:(NSString *)source options:(MTLCompileOptions *)options error:(NSError **)error {
  return [self made:sim::library_of_source([source UTF8String])];
}
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function error:(NSError **)error {
  auto *made = (SimPipeline *)[SimPipeline alloc];
  made->kernel = ((SimFunction *)function)->kernel;
  return made;
}
@end

namespace sim {
id<MTLDevice> device() {
  static auto *one = [SimDevice new];
  return one;
}
} // namespace sim

extern "C" {
NSArray<id<MTLDevice>> *MTLCopyAllDevices(void) { return [[NSArray arrayWithObject:sim::device()] retain]; }
id<MTLDevice> MTLCreateSystemDefaultDevice(void) { return [sim::device() retain]; }
NSString *const MTLLibraryErrorDomain = @"MTLLibraryErrorDomain";
NSString *const MTLCommandBufferErrorDomain = @"MTLCommandBufferErrorDomain";
}
