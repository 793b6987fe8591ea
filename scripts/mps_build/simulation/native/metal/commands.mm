// Command buffers, encoders and events. They record; what is recorded runs after the commit, on the queue's thread.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include "kernels.h"
#include "metal.h"
#include "queue.h"

@class SimEncoder;
@interface MPSCommandBuffer () {
 @public
  std::vector<sim::Command> *recorded;
  std::vector<std::function<void()>> *handlers;
  std::vector<std::shared_ptr<sim::Batch>> *sent; // those whose errors were not raised, the last one always
  std::vector<SimEncoder *> *open;
  bool is_committed;
}
@end

namespace sim {
std::shared_ptr<void> kept(id object) {
  return std::shared_ptr<void>(objc_retain((void *)object), [](void *one) { objc_release(one); });
}
void encode(id given, std::string what, std::function<void()> run) {
  auto *commands = (MPSCommandBuffer *)given;
  if (commands->is_committed) refuse(what + " is encoded to a command buffer that was committed");
  what = in_operator() + what;
  commands->recorded->push_back({std::move(what), std::move(run)});
}
} // namespace sim

@interface SimEncoder : NSObject <MTLComputeCommandEncoder, MTLBlitCommandEncoder> {
 @public
  MPSCommandBuffer *commands;
  bool is_ended, is_ended_by_error;
  uint64_t errors_before;
  SimPipeline *pipeline;
  std::vector<std::shared_ptr<void>> *resources; // of each slot
  sim::Launch *launch;
}
@end
namespace {
void forget(std::vector<SimEncoder *> &open, SimEncoder *one) { open.erase(std::remove(open.begin(), open.end(), one), open.end()); }
} // namespace
@implementation SimEncoder
- (instancetype)initWith:(MPSCommandBuffer *)given {
  commands = given; // it lives at least as long as what records into it
  commands->open->push_back(self);
  errors_before = sim::errors_of_thread();
  resources = new std::vector<std::shared_ptr<void>>(sim::kSlots);
  launch = new sim::Launch;
  return self;
}
- (void)dealloc {
  if (!is_ended) forget(*commands->open, self);
  [pipeline release];
  delete resources;
  delete launch;
  [super dealloc];
}
- (void)check:(NSUInteger)slot {
  if (is_ended) sim::refuse("an encoder is used after endEncoding");
  if (slot >= (NSUInteger)sim::kSlots) sim::refuse_with("index ", slot, " of a buffer is not below ", sim::kSlots);
}
- (void)endEncoding {
  if (is_ended && !is_ended_by_error) sim::refuse("endEncoding is sent again");
  if (!is_ended) forget(*commands->open, self);
  is_ended = true;
  is_ended_by_error = false;
}
- (id<MTLDevice>)device {
  return sim::device();
}
- (void)setLabel:(NSString *)label {
}
- (void)pushDebugGroup:(NSString *)name {
}
- (void)popDebugGroup {
}
- (void)useResource:(id<MTLResource>)resource usage:(MTLResourceUsage)usage {
  [self check:0];
  resources->push_back(sim::kept(resource));
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
  [self check:0];
  [(id)state retain];
  [pipeline release];
  pipeline = (SimPipeline *)state;
}
- (void)setBuffer:(id<MTLBuffer>)given offset:(NSUInteger)offset atIndex:(NSUInteger)slot {
  [self check:slot];
  // Seen: a view's data_ptr, which lies behind its buffer's object, taken for the buffer.
  if (given && !sim::is_buffer((const void *)given)) sim::refuse_with("what is bound at index ", slot, " is not a buffer");
  auto *buffer = (SimBuffer *)given;
  if (buffer && offset > buffer->size)
    sim::refuse_with("offset ", offset, " lies behind a buffer of ", buffer->size, " bytes (index ", slot, ")");
  launch->slots[slot] = buffer ? sim::Bound{buffer->memory + offset, buffer->size - offset, true} : sim::Bound{nullptr, 0, true};
  (*resources)[slot] = sim::kept(buffer);
}
- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)slot {
  [self check:slot];
  // Metal's validation refuses nothing at all. PyTorch hands on an empty list for a tensor of no dimensions; the kernel
  // that views one in 2.3 reads it, as if nothing were bound.
  if (length > 4096) sim::refuse_with("setBytes takes 4096 bytes at most, not ", length);
  // In steps of 16 bytes: 2.15 sets 12 for a uint3, which has 16 of which 12 are used (dense_sparse_mul_kernel).
  const NSUInteger room = (length + 15) / 16 * 16, whole = (length + 127) / 64 * 64;
  auto copy = std::shared_ptr<char>((char *)aligned_alloc(64, whole), free);
  memset(copy.get(), 0, whole);
  if (length) memcpy(copy.get(), bytes, length);
  launch->slots[slot] = {copy.get(), room, length > 0};
  (*resources)[slot] = copy;
}
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)slot {
  [self check:slot];
  launch->lengths[slot] = (length + 15) / 16 * 16; // only Metal's validation refuses others: eigh and svd of 2.15 ask for 4 and 2,312
}
// What is reached by an address alone is resident, and kept, only by useResource.
- (void)checkAddresses {
  for (auto &each : *resources) {
    auto *buffer = (SimBuffer *)(id)each.get();
    if (!buffer || !sim::is_buffer((const void *)buffer) || !buffer->addressed) continue;
    for (id target : *buffer->addressed) {
      auto is_target = [&](const std::shared_ptr<void> &one) { return one.get() == (void *)target; };
      if (target && std::none_of(resources->begin(), resources->end(), is_target))
        sim::refuse_with(pipeline->kernel->name, " reaches a buffer by an argument buffer, and useResource was not sent for it");
    }
  }
}
- (void)dispatchThreads:(MTLSize)grid threadsPerThreadgroup:(MTLSize)group {
  [self check:0];
  if (!pipeline) sim::refuse("a dispatch without a pipeline");
  auto one = std::make_shared<sim::Launch>(*launch);
  one->kernel = pipeline->kernel;
  const NSUInteger sizes[6] = {grid.width, grid.height, grid.depth, group.width, group.height, group.depth};
  for (int i = 0; i < 3; i++) {
    one->grid[i] = sizes[i];
    one->group[i] = sizes[i + 3];
  }
  const auto threads = group.width * group.height * group.depth;
  const auto most = pipeline->kernel->most_threads;
  const std::string &name = pipeline->kernel->name;
  if (threads > most) sim::refuse_with(name, " is dispatched with ", threads, " threads of a threadgroup, of at most ", most);
  [self checkAddresses];
  // Assumed: without Metal's validation a dispatch of no threads does nothing (PyTorch does so for empty tensors).
  if (threads == 0 || !(grid.width && grid.height && grid.depth)) return;
  sim::encode(commands, "kernel " + name, [one, held = *resources] { sim::run(*one); });
}
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)group {
  auto grid = MTLSizeMake(groups.width * group.width, groups.height * group.height, groups.depth * group.depth);
  [self dispatchThreads:grid threadsPerThreadgroup:group];
}
- (void)fillBuffer:(id<MTLBuffer>)given range:(NSRange)range value:(uint8_t)value {
  [self check:0];
  auto *buffer = (SimBuffer *)given;
  if (range.location + range.length > buffer->size)
    sim::refuse_with("fillBuffer reaches byte ", range.location + range.length, " of ", buffer->size);
  sim::encode(commands, "fillBuffer", [=, held = sim::kept(buffer)] {
    memset(buffer->memory + range.location, value, range.length);
  });
}
- (void)copyFromBuffer:(id<MTLBuffer>)source
          sourceOffset:(NSUInteger)from
              toBuffer:(id<MTLBuffer>)destination
     destinationOffset:(NSUInteger)to
                  size:(NSUInteger)size {
  [self check:0];
  auto *a = (SimBuffer *)source, *b = (SimBuffer *)destination;
  if (from + size > a->size || to + size > b->size)
    sim::refuse_with("copyFromBuffer: ", size, " bytes from ", from, " of ", a->size, " to ", to, " of ", b->size);
  sim::encode(commands, "copyFromBuffer", [=, one = sim::kept(a), other = sim::kept(b)] {
    sim::check_written(b->memory + to, size);
    memmove(b->memory + to, a->memory + from, size);
  });
}
@end

@implementation MPSCommandBuffer
+ (instancetype)commandBufferFromCommandQueue:(id<MTLCommandQueue>)queue {
  return [[MPSCommandBuffer new] autorelease];
}
- (instancetype)init {
  recorded = new std::vector<sim::Command>;
  handlers = new std::vector<std::function<void()>>;
  sent = new std::vector<std::shared_ptr<sim::Batch>>;
  open = new std::vector<SimEncoder *>;
  return self;
}
- (void)dealloc {
  delete recorded;
  delete handlers;
  delete sent;
  delete open;
  [super dealloc];
}
- (id<MTLDevice>)device {
  return sim::device();
}
- (id<MTLCommandBuffer>)commandBuffer {
  return (id<MTLCommandBuffer>)self;
}
- (id<MTLCommandBuffer>)rootCommandBuffer {
  return (id<MTLCommandBuffer>)self;
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
  if (is_committed) sim::refuse("an encoder of a command buffer that was committed");
  return (id)[[[SimEncoder alloc] initWith:self] autorelease];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type {
  return [self computeCommandEncoder];
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  return (id)[self computeCommandEncoder];
}
- (void)addScheduledHandler:(MTLCommandBufferHandler)block {
  id copy = (id)_Block_copy((const void *)block);
  sim::encode(self, "a scheduled handler", [held = sim::kept(self), copy] {
    ((MTLCommandBufferHandler)copy)((id<MTLCommandBuffer>)(id)held.get());
    _Block_release((const void *)copy);
  });
}
- (void)addCompletedHandler:(MTLCommandBufferHandler)block {
  id copy = (id)_Block_copy((const void *)block);
  auto held = sim::kept(self);
  handlers->push_back([held, copy] {
    ((MTLCommandBufferHandler)copy)((id<MTLCommandBuffer>)(id)held.get());
    _Block_release((const void *)copy);
  });
}
- (void)submit {
  for (auto *encoder : *open)
    if (encoder->errors_before == sim::errors_of_thread())
      sim::refuse("a command buffer is committed with an encoder that was not ended");
  // The code that had these open left it by an error, which was raised: what comes after it goes on.
  for (auto *encoder : *open) encoder->is_ended = encoder->is_ended_by_error = true;
  open->clear();
  auto batch = std::make_shared<sim::Batch>();
  batch->commands.swap(*recorded);
  batch->after.swap(*handlers);
  // commitAndContinue goes on with the same command buffer: who waits for it once hears of all that failed before.
  auto is_over = [](const std::shared_ptr<sim::Batch> &each) { return each->is_done && each->error.empty(); };
  sent->erase(std::remove_if(sent->begin(), sent->end(), is_over), sent->end());
  sent->push_back(batch);
  sim::submit(batch);
}
- (void)commit {
  if (is_committed) sim::refuse("a command buffer is committed again");
  [self submit];
  is_committed = true;
}
- (void)commitAndContinue {
  if (is_committed) sim::refuse("a command buffer is committed again");
  [self submit];
}
- (void)waitUntilCompleted {
  if (sent->empty()) sim::refuse("waitUntilCompleted of a command buffer that was not committed");
  sim::wait_for(*sent->back());
  std::string first;
  for (auto &each : *sent) {
    if (first.empty()) first = each->error;
    each->error.clear();
  }
  if (first.empty()) return;
  // A GPU would only keep the error, and its caller goes on: here it is raised, and the buffer may be used again.
  is_committed = false;
  sim::raise_error(first);
}
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
  auto held = sim::kept(event);
  sim::encode(self, "encodeSignalEvent", [held, value] { [(SimEvent *)(id)held.get() setSignaledValue:value]; });
}
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value {
  auto held = sim::kept(event);
  sim::encode(self, "encodeWaitForEvent", [held, value] {
    if (((SimEvent *)(id)held.get())->value < value) sim::refuse("nothing before it signals what is waited for");
  });
}
- (CFTimeInterval)GPUStartTime {
  return 0;
}
- (CFTimeInterval)GPUEndTime {
  return 0;
}
- (CFTimeInterval)kernelStartTime {
  return 0;
}
- (CFTimeInterval)kernelEndTime {
  return 0;
}
- (MTLCommandBufferStatus)status {
  if (sent->empty()) return MTLCommandBufferStatusNotEnqueued;
  return sent->back()->is_done ? MTLCommandBufferStatusCompleted : MTLCommandBufferStatusCommitted;
}
- (NSError *)error {
  return nil;
}
@end

// Events: a value that only a signal changes, and the handlers that wait for it.
@implementation SimEvent
- (instancetype)init {
  lock = new std::mutex;
  waiting = new std::vector<std::pair<uint64_t, id>>;
  return self;
}
- (void)dealloc {
  for (auto &each : *waiting) _Block_release((const void *)each.second);
  delete waiting;
  delete lock;
  [super dealloc];
}
- (uint64_t)signaledValue {
  return value;
}
- (void)setSignaledValue:(uint64_t)now {
  std::vector<id> due;
  {
    std::lock_guard<std::mutex> held(*lock);
    value = now;
    for (auto each = waiting->begin(); each != waiting->end();) {
      if (each->first > now) {
        ++each;
        continue;
      }
      due.push_back(each->second);
      each = waiting->erase(each);
    }
  }
  for (id block : due) {
    ((MTLSharedEventNotificationBlock)block)(self, now);
    _Block_release((const void *)block);
  }
}
- (BOOL)waitUntilSignaledValue:(uint64_t)wanted timeoutMS:(uint64_t)milliseconds {
  for (uint64_t passed = 0; value < wanted && passed < milliseconds; passed++)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return value >= wanted;
}
- (void)notifyListener:(MTLSharedEventListener *)listener
               atValue:(uint64_t)wanted
                 block:(MTLSharedEventNotificationBlock)block {
  {
    std::lock_guard<std::mutex> held(*lock);
    if (value < wanted) {
      waiting->emplace_back(wanted, (id)_Block_copy((const void *)block));
      return;
    }
  }
  block(self, value);
}
@end

namespace sim {
id<MTLSharedEvent> new_event() { return [SimEvent new]; }
} // namespace sim
