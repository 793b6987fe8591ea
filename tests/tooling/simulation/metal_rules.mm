// The rules of Metal, without torch: each scenario prints what came of it. Compiled by test_native_metal.py.
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <thread>
#include <dispatch/dispatch.h>
#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include "kernels.h"
#include "metal.h"
#include "queue.h"
#include "runtime.h"

namespace c10 {
void free_cpu(void *data);
}
// MPSGraph is no part of this program: a class of its name, to be absent.
@implementation MPSGraphObject
@end
@implementation MPSGraphFFTDescriptor
+ (instancetype)descriptor {
  return [self new];
}
@end

namespace {
sim::Kernel *made_kernel(void (*code)(void **, unsigned *), int64_t bytes) {
  auto *kernel = new sim::Kernel;
  kernel->name = "doubled";
  kernel->entry = (uint64_t)code;
  kernel->is_loaded = true;
  kernel->argument_count = 1;
  kernel->arguments = {{0, 0, 1, bytes}};
  return kernel;
}
void doubled(void **arguments, unsigned *ids) { ((int *)arguments[0])[ids[0]] *= 2; }
void by_address(void **arguments, unsigned *ids) { (*(int **)arguments[0])[ids[0]] *= 2; }

SimPipeline *pipeline(sim::Kernel *kernel) {
  auto *made = (SimPipeline *)[SimPipeline alloc];
  made->kernel = kernel;
  return made;
}
id<MTLBuffer> buffer(NSUInteger size, MTLResourceOptions options = MTLResourceStorageModeShared) {
  return [sim::device() newBufferWithLength:size options:options];
}
MPSCommandBuffer *commands() { return [[MPSCommandBuffer commandBufferFromCommandQueue:[sim::device() newCommandQueue]] retain]; }

// Doubles the numbers of a buffer; its encoder is left open where `ends` is false.
void encode(MPSCommandBuffer *into, id<MTLBuffer> numbers, NSUInteger count, bool ends = true, sim::Kernel *kernel = nullptr) {
  id<MTLComputeCommandEncoder> encoder = [into computeCommandEncoder];
  [encoder setComputePipelineState:(id)pipeline(kernel ? kernel : made_kernel(doubled, -1))];
  if (numbers) [encoder setBuffer:numbers offset:0 atIndex:0];
  [encoder dispatchThreads:MTLSizeMake(count, 1, 1) threadsPerThreadgroup:MTLSizeMake(4, 1, 1)];
  if (ends) [encoder endEncoding];
}
int *numbers(id<MTLBuffer> of) { return (int *)[of contents]; }
void done(MPSCommandBuffer *given) {
  [given commit];
  [given waitUntilCompleted];
}

// Of a heap, which PyTorch's allocator takes from; Metal clears what is made of the device itself.
void canary_filled() {
  auto *about = [MTLHeapDescriptor new];
  [about setSize:4096];
  printf("%x\n", numbers([[sim::device() newHeapWithDescriptor:about] newBufferWithLength:4 options:0])[0]);
}
void cleared() { printf("%x\n", numbers(buffer(4))[0]); }
// Two functions of one kernel with other constants, used one after another and again.
unsigned constant_of_text;
void constant_written(void **arguments, unsigned *ids) { ((unsigned *)arguments[0])[ids[0]] = constant_of_text; }
void constants() {
  auto *library = (SimLibrary *)[SimLibrary alloc];
  library->library = new sim::Library;
  auto *kernel = made_kernel(constant_written, -1);
  kernel->name = "written";
  library->library->kernels["written"] = *kernel;
  library->library->constants[2] = {&constant_of_text, 4};
  auto given = buffer(4);
  auto *one = commands();
  SimFunction *functions[2];
  for (unsigned i = 0; i < 2; i++) {
    auto *values = [MTLFunctionConstantValues new];
    const uint64_t number = 7 + i; // longer than what is read of it, as PyTorch's is
    [values setConstantValue:&number type:MTLDataTypeUInt atIndex:2];
    functions[i] = (SimFunction *)[library newFunctionWithName:@"written" constantValues:values error:nil];
  }
  for (int i : {0, 1, 0}) {
    encode(one, given, 1, true, functions[i]->kernel);
    done(one);
    printf("%d ", numbers(given)[0]);
    one = commands();
  }
  [library newFunctionWithName:@"written" constantValues:[MTLFunctionConstantValues new] error:nil];
}
void behind() {
  auto *at = (char *)[buffer(64) contents];
  at[63] = 1;
  printf("inside\n");
  fflush(stdout);
  at[64] = 1;
}
void private_storage() { printf("%p\n", [buffer(64, MTLResourceStorageModePrivate) contents]); }
void runs_after_the_commit() {
  auto given = buffer(16);
  auto *one = commands();
  numbers(given)[0] = 21;
  encode(one, given, 1);
  const int before = numbers(given)[0];
  [one commit];
  const int after = numbers(given)[0];
  [one waitUntilCompleted];
  printf("%d %d %d\n", before, after, numbers(given)[0]);
}
// Which of many commits a thread that does not wait finds done.
void unwaited() {
  for (int i = 0; i < 24; i++) {
    auto given = buffer(16);
    auto *one = commands();
    numbers(given)[0] = 1;
    encode(one, given, 1);
    [one commit];
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    printf("%d", numbers(given)[0]);
    [one waitUntilCompleted];
  }
  printf("\n");
}
void without_an_end_of_waiting() {
  auto *one = commands();
  encode(one, buffer(16), 1);
  [one commit];
  while ([one status] != MTLCommandBufferStatusCompleted) {
  }
  printf("completed\n");
}
void order_of_threads() {
  auto *kernel = made_kernel([](void **arguments, unsigned *ids) {
    auto *all = (int *)arguments[0];
    all[1 + all[0]++] = (int)ids[0];
  }, -1);
  for (int i = 0; i < 8; i++) {
    auto given = buffer(36);
    numbers(given)[0] = 0;
    auto *one = commands();
    encode(one, given, 8, true, kernel);
    done(one);
    for (int j = 1; j <= 8; j++) printf("%d", numbers(given)[j]);
    printf(" ");
  }
  printf("\n");
}
void after_a_commit() {
  auto *one = commands();
  done(one);
  encode(one, buffer(16), 1);
}
void late_encoder() {
  auto *one = commands();
  id<MTLBlitCommandEncoder> encoder = [one blitCommandEncoder];
  auto given = buffer(16);
  [encoder endEncoding];
  [encoder fillBuffer:given range:NSMakeRange(0, 16) value:0];
}
void committed_again() {
  auto *one = commands();
  done(one);
  [one commit];
}
void open_encoder() {
  auto *one = commands();
  encode(one, buffer(16), 1, false);
  [one commit];
}
void not_committed() { [commands() waitUntilCompleted]; }
void wrong_index() {
  id<MTLComputeCommandEncoder> encoder = [commands() computeCommandEncoder];
  [encoder setBuffer:buffer(16) offset:0 atIndex:31];
}
void wrong_offset() {
  id<MTLComputeCommandEncoder> encoder = [commands() computeCommandEncoder];
  [encoder setBuffer:buffer(16) offset:17 atIndex:0];
}
void not_a_buffer() {
  id<MTLComputeCommandEncoder> encoder = [commands() computeCommandEncoder];
  [encoder setBuffer:(id)((char *)buffer(16) + 8) offset:0 atIndex:0];
}
void nothing_bound() {
  auto *one = commands();
  encode(one, nil, 1);
  done(one);
}
// A reference that nothing, or no bytes, are bound to reads zeros, as on a GPU; a kernel that writes there is refused.
void zeros_read(void **arguments, unsigned *) { ((int *)arguments[1])[0] += 5 + *(const int *)arguments[0]; }
void nothing_bound_to_a_reference() {
  auto *kernel = made_kernel(zeros_read, 4);
  kernel->arguments.push_back({1, 1, 1, -1});
  kernel->argument_count = 2;
  auto *one = commands();
  auto given = buffer(4);
  id<MTLComputeCommandEncoder> encoder = [one computeCommandEncoder];
  [encoder setComputePipelineState:(id)pipeline(kernel)];
  [encoder setBuffer:given offset:0 atIndex:1];
  [encoder dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  [encoder setBytes:"" length:0 atIndex:0];
  [encoder dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  [encoder endEncoding];
  done(one);
  printf("%d\n", numbers(given)[0]);
}
void nothing_bound_to_much() {
  auto *one = commands();
  encode(one, nil, 1, true, made_kernel(doubled, 1 << 20));
  done(one);
}
void written_where_nothing_is_bound() {
  auto *one = commands();
  encode(one, nil, 1, true, made_kernel(doubled, 4));
  done(one);
}
// The memory of a threadgroup that is set with a length which is not a multiple of 16.
void threadgroup_memory() {
  auto *kernel = made_kernel([](void **arguments, unsigned *) { ((int *)arguments[0])[0] = 7; }, -1);
  kernel->arguments[0].space = 3;
  auto *one = commands();
  id<MTLComputeCommandEncoder> encoder = [one computeCommandEncoder];
  [encoder setComputePipelineState:(id)pipeline(kernel)];
  [encoder setThreadgroupMemoryLength:4 atIndex:0];
  [encoder dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  [encoder endEncoding];
  done(one);
  printf("done\n");
}
void outside_of_threadgroup_memory() {
  auto *kernel = made_kernel([](void **arguments, unsigned *) { ((int *)arguments[0])[4] = 7; }, -1);
  kernel->arguments[0].space = 3;
  auto *one = commands();
  id<MTLComputeCommandEncoder> encoder = [one computeCommandEncoder];
  [encoder setComputePipelineState:(id)pipeline(kernel)];
  [encoder setThreadgroupMemoryLength:16 atIndex:0];
  [encoder dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  [encoder endEncoding];
  done(one);
}
// Three numbers for a reference of four: a uint3.
void three_numbers() {
  auto *kernel = made_kernel([](void **arguments, unsigned *) {
    auto *given = (const unsigned *)arguments[0];
    ((unsigned *)arguments[1])[0] = given[0] + given[1] + given[2] + given[3];
  }, 16);
  kernel->arguments.push_back({1, 1, 1, -1});
  kernel->argument_count = 2;
  const unsigned bytes[3] = {1, 2, 3};
  auto *one = commands();
  auto given = buffer(4);
  id<MTLComputeCommandEncoder> encoder = [one computeCommandEncoder];
  [encoder setComputePipelineState:(id)pipeline(kernel)];
  [encoder setBytes:bytes length:sizeof bytes atIndex:0];
  [encoder setBuffer:given offset:0 atIndex:1];
  [encoder dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  [encoder endEncoding];
  done(one);
  printf("%d\n", numbers(given)[0]);
}
// Host code that a refusal throws out of its block: what comes after it goes on.
void after_a_refusal() {
  auto *one = commands();
  auto given = buffer(16);
  numbers(given)[0] = 21;
  id<MTLBlitCommandEncoder> left = [one blitCommandEncoder];
  try {
    [left copyFromBuffer:given sourceOffset:0 toBuffer:given destinationOffset:0 size:32];
  } catch (const std::exception &) {
  }
  encode(one, given, 1);
  done(one);
  [left endEncoding];
  printf("%d\n", numbers(given)[0]);
}
void semaphores() {
  auto one = dispatch_semaphore_create(0);
  std::thread other([&] { dispatch_semaphore_signal(one); });
  dispatch_semaphore_wait(one, DISPATCH_TIME_FOREVER);
  other.join();
  printf("%ld", dispatch_semaphore_wait(one, 0));
  int ran = 0;
  dispatch_sync_f(dispatch_get_global_queue(0, 0), &ran, [](void *place) { *(int *)place = 3; });
  printf(" %d\n", ran);
}
void placed_in_a_heap() {
  auto *about = [MTLHeapDescriptor new];
  [about setSize:4096];
  [about setType:MTLHeapTypePlacement];
  id<MTLHeap> heap = [sim::device() newHeapWithDescriptor:about];
  printf("%ld %d %d\n", (long)[heap type], [heap newBufferWithLength:64 options:0 offset:4032] != nil,
         [heap newBufferWithLength:64 options:0 offset:4033] != nil);
}
void signalled_in_time() {
  id<MTLSharedEvent> event = sim::new_event();
  printf("%d", [event waitUntilSignaledValue:2 timeoutMS:2]);
  std::thread other([&] { [event setSignaledValue:2]; });
  printf("%d\n", [event waitUntilSignaledValue:2 timeoutMS:60000]);
  other.join();
}
void collections() {
  id one = [NSMutableArray array];
  [one addObjectsFromArray:@[ @1, @2 ]];
  [one addObjectsFromArray:@[]];
  id fewer = [one mutableCopy];
  [fewer addObject:@1];
  [fewer removeObject:@1];
  id last = [NSError new];
  [fewer addObject:last];
  [last release];
  [fewer removeObject:[fewer lastObject]];
  printf("%lu %d ", (unsigned long)[fewer count], [[fewer firstObject] isEqual:@2]);
  id error = [NSError new];
  printf("%lu %ld %s %d %s\n", (unsigned long)[one count], (long)[error code], [[error domain] UTF8String],
         [@2 isEqual:[NSNumber numberWithDouble:2]], [MTLLibraryErrorDomain UTF8String]);
}
// Work is queued when the process ends: what runs ends before what it uses goes, and what waits is dropped. A destructor
// that is older still commits and waits, as that of PyTorch's allocator does.
struct Used {
  int number = 7;
  ~Used() { number = -1; }
};
struct Waits {
  ~Waits() {
    auto *one = commands();
    encode(one, buffer(16), 1);
    done(one);
    printf("waited");
    fflush(stdout);
  }
};
void queued_at_the_end() {
  static Waits waits;
  static Used used;
  static std::atomic<bool> has_begun{false};
  auto *one = commands();
  for (int i = 0; i < 2; i++) {
    sim::encode((id)one, "a slow command", [] {
      has_begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      printf("ran with %d, ", used.number);
      fflush(stdout);
    });
    [one commitAndContinue];
  }
  while (!has_begun) std::this_thread::yield();
  exit(0);
}
void too_small() {
  auto *one = commands();
  encode(one, buffer(16), 1, true, made_kernel(doubled, 24));
  done(one);
}
void outside() {
  auto *one = commands();
  encode(one, buffer(16), 8);
  done(one);
}
// A kernel with an entry for the threads of a row, each of which doubles the number `ahead` of its own.
template <int ahead> sim::Kernel *kernel_of_rows() {
  auto *kernel = made_kernel([](void **arguments, unsigned *ids) { ((int *)arguments[0])[ids[0] + ahead] *= 2; }, -1);
  kernel->row = (uint64_t)(row_t)[](void **arguments, uint32_t *ids, uint32_t count) {
    printf("%u ", count);
    for (uint32_t k = 0; k < count; k++) ((int *)arguments[0])[ids[0] + k + ahead] *= 2;
  };
  return kernel;
}
void in_rows() {
  auto *one = commands();
  auto given = buffer(40);
  for (int i = 0; i < 10; i++) numbers(given)[i] = i;
  encode(one, given, 10, true, kernel_of_rows<0>());
  done(one);
  for (int i = 0; i < 10; i++) printf("%d", numbers(given)[i]);
  printf("\n");
}
void outside_in_a_row() {
  auto *one = commands();
  encode(one, buffer(32), 8, true, kernel_of_rows<2>());
  done(one);
}
void outside_before_others() {
  auto *one = commands();
  encode(one, buffer(16), 8);
  [(MPSCommandBuffer *)one commitAndContinue];
  encode(one, buffer(16), 1);
  done(one);
}
void outside_of_a_copy() {
  id<MTLBlitCommandEncoder> encoder = [commands() blitCommandEncoder];
  [encoder copyFromBuffer:buffer(16) sourceOffset:0 toBuffer:buffer(32) destinationOffset:0 size:32];
}
void many_bytes() {
  static char bytes[4097];
  id<MTLComputeCommandEncoder> encoder = [commands() computeCommandEncoder];
  [encoder setBytes:bytes length:4097 atIndex:0];
}
void many_threads() {
  auto *one = commands();
  id<MTLComputeCommandEncoder> encoder = [one computeCommandEncoder];
  [encoder setComputePipelineState:(id)pipeline(made_kernel(doubled, -1))];
  [encoder dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(2048, 1, 1)];
}
void reached_by_address(bool is_told) {
  auto holder = buffer(8), given = buffer(16);
  numbers(given)[0] = 4;
  auto *kernel = made_kernel(by_address, 8);
  auto *function = (SimFunction *)[SimFunction alloc];
  function->kernel = kernel;
  id<MTLArgumentEncoder> arguments = [function newArgumentEncoderWithBufferIndex:0];
  [arguments setArgumentBuffer:holder offset:0];
  [arguments setBuffer:given offset:0 atIndex:0];
  auto *one = commands();
  id<MTLComputeCommandEncoder> encoder = [one computeCommandEncoder];
  [encoder setComputePipelineState:(id)pipeline(kernel)];
  [encoder setBuffer:holder offset:0 atIndex:0];
  if (is_told) [encoder useResource:given usage:MTLResourceUsageRead];
  [encoder dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  [encoder endEncoding];
  done(one);
  printf("%d\n", numbers(given)[0]);
}
void resident() { reached_by_address(true); }
void not_resident() { reached_by_address(false); }
// A command keeps what it uses: the buffer's last owner lets go before the commit.
void released_early() {
  auto *one = commands();
  auto given = buffer(16), seen = buffer(16);
  numbers(given)[0] = 21;
  encode(one, given, 1);
  id<MTLBlitCommandEncoder> encoder = [one blitCommandEncoder];
  [encoder copyFromBuffer:given sourceOffset:0 toBuffer:seen destinationOffset:0 size:4];
  [encoder endEncoding];
  [given release];
  done(one);
  printf("%d\n", numbers(seen)[0]);
}
// A copy that nobody waits for, between the GPU and memory of the CPU that is freed before it runs.
void copied_late(bool is_to_the_cpu) {
  auto *memory = (int *)malloc(4096), *other = (int *)malloc(64);
  auto shared = [sim::device() newBufferWithBytesNoCopy:memory length:4096 options:0 deallocator:nil], own = buffer(4096);
  *other = 1, *memory = 2, *numbers(own) = 3;
  auto *one = commands();
  [one addScheduledHandler:^(id<MTLCommandBuffer>) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }];
  id<MTLBlitCommandEncoder> encoder = [one blitCommandEncoder];
  if (is_to_the_cpu) [encoder copyFromBuffer:own sourceOffset:0 toBuffer:shared destinationOffset:0 size:4];
  else [encoder copyFromBuffer:shared sourceOffset:0 toBuffer:own destinationOffset:0 size:4];
  [encoder endEncoding];
  [shared release];
  [one commit];
  c10::free_cpu(memory);
  c10::free_cpu(other);
  auto *next = (int *)malloc(4096); // what was freed would be here again
  *next = 4;
  [one waitUntilCompleted];
  printf("%d %x %d\n", *next, *numbers(own), next == memory);
  printf("%d\n", sim::is_freed_later(next, 4096, free)); // nothing reaches it any more
}
void written_late() { copied_late(true); }
void read_late() { copied_late(false); }
void used_after_its_release() {
  auto given = buffer(16);
  int *at = numbers(given);
  [given release];
  at[0] = 1;
}
void signalled() {
  auto *one = commands();
  id<MTLSharedEvent> event = sim::new_event();
  [one encodeSignalEvent:event value:3];
  [one encodeWaitForEvent:event value:3];
  done(one);
  printf("%lu\n", (unsigned long)[event signaledValue]);
}
void not_signalled() {
  auto *one = commands();
  [one encodeWaitForEvent:sim::new_event() value:3];
  done(one);
}
void unknown_selector() { [(id)sim::device() performSelector:@selector(newTextureWithDescriptor:) withObject:nil]; }
// Of macOS 13.0, a protocol's; of 15.0, a class's own; a class of 14.0; a constant of 14.0.
void newer_method() {
  printf("%d\n", [(NSObject *)buffer(4) respondsToSelector:@selector(gpuAddress)]);
  [buffer(4) gpuAddress];
}
void newer_setter() {
  printf("%d\n", [MTLCompileOptions instancesRespondToSelector:@selector(setMathMode:)]);
  [[MTLCompileOptions new] setMathMode:MTLMathModeSafe];
}
void newer_getter() {  // how PyTorch 2.0 to 2.4 ask for macOS 13.3
  printf("%d\n", [(NSObject *)[MTLCompileOptions new] respondsToSelector:@selector(maxTotalThreadsPerThreadgroup)]);
  [[MTLCompileOptions new] maxTotalThreadsPerThreadgroup];
}
void newer_class() {
  printf("%d\n", NSClassFromString(@"MPSGraphFFTDescriptor") != nil);
  [MPSGraphFFTDescriptor descriptor];
}
void newer_constant() {
  [[MTLCompileOptions new] setLanguageVersion:MTLLanguageVersion3_0];
  [[MTLCompileOptions new] setLanguageVersion:MTLLanguageVersion3_1];
}
// A command names the operator in which it was encoded, wherever it fails.
void names_the_operator() {
  auto *one = commands();
  sim::current_operator = "aten::add";
  encode(one, buffer(16), 8);
  sim::current_operator = "aten::item";
  done(one);
}

struct {
  const char *name;
  void (*run)();
} const scenarios[] = {
#define SCENARIO(name) {#name, name},
    SCENARIO(canary_filled) SCENARIO(cleared) SCENARIO(constants) SCENARIO(behind) SCENARIO(private_storage) SCENARIO(runs_after_the_commit) SCENARIO(unwaited)
    SCENARIO(without_an_end_of_waiting) SCENARIO(order_of_threads) SCENARIO(after_a_commit) SCENARIO(late_encoder)
    SCENARIO(committed_again) SCENARIO(open_encoder) SCENARIO(not_committed) SCENARIO(wrong_index) SCENARIO(wrong_offset)
    SCENARIO(not_a_buffer) SCENARIO(nothing_bound) SCENARIO(too_small) SCENARIO(outside) SCENARIO(outside_of_a_copy) SCENARIO(outside_before_others)
    SCENARIO(many_bytes) SCENARIO(many_threads) SCENARIO(resident) SCENARIO(not_resident) SCENARIO(released_early)
    SCENARIO(used_after_its_release) SCENARIO(signalled) SCENARIO(not_signalled) SCENARIO(unknown_selector)
    SCENARIO(newer_method) SCENARIO(newer_setter) SCENARIO(newer_getter) SCENARIO(newer_class) SCENARIO(newer_constant)
    SCENARIO(names_the_operator) SCENARIO(in_rows) SCENARIO(outside_in_a_row) SCENARIO(nothing_bound_to_a_reference)
    SCENARIO(nothing_bound_to_much) SCENARIO(written_where_nothing_is_bound) SCENARIO(threadgroup_memory)
    SCENARIO(three_numbers) SCENARIO(after_a_refusal) SCENARIO(semaphores) SCENARIO(placed_in_a_heap)
    SCENARIO(signalled_in_time) SCENARIO(collections) SCENARIO(queued_at_the_end) SCENARIO(outside_of_threadgroup_memory)
    SCENARIO(written_late) SCENARIO(read_late)
};
} // namespace

int main(int, char **argv) {
  void *pool = objc_autoreleasePoolPush();
  for (auto &each : scenarios) {
    if (strcmp(each.name, argv[1])) continue;
    try {
      each.run();
    } catch (const std::exception &error) {
      printf("%s\n", error.what());
    }
    objc_autoreleasePoolPop(pool);
    fflush(stdout);
    _exit(0); // the GPU's thread never ends
  }
  return 2;
}
