// Heaps and buffers, the events of queues, and the argument buffers that kernels read addresses from.
#include <sys/mman.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_set>
#include "live.h"
#include "metal.h"

namespace {
constexpr size_t kPage = 4096;
constexpr size_t kAlign = 256;
constexpr int kPoison = 0xA5;
std::atomic<size_t> allocated{0};
std::mutex live_lock;
std::unordered_set<const void *> live;
// A buffer and its protected page are two mappings, and Linux gives a process 65,530 by default. A device that has no more
// is full: PyTorch then gives back what it keeps for later.
size_t most_buffers() {
  static const size_t most = [] {
    size_t mappings = 65530;
    if (FILE *file = fopen("/proc/sys/vm/max_map_count", "r")) {
      char text[32];
      if (fgets(text, sizeof text, file)) mappings = strtoul(text, nullptr, 10);
      fclose(file);
    }
    return mappings * 2 / 5; // a fifth is for all else
  }();
  return most;
}
bool is_full() {
  std::lock_guard<std::mutex> held(live_lock);
  return live.size() >= most_buffers();
}
size_t rounded(size_t size, size_t step) { return (size + step - 1) / step * step; }
} // namespace

namespace sim {
bool is_buffer(const void *object) {
  std::lock_guard<std::mutex> held(live_lock);
  return live.count(object) > 0;
}
size_t allocated_bytes() { return allocated; }
size_t charge_of(size_t size) { return rounded(size ? size : 1, kAlign); }

SimBuffer *new_buffer(size_t size, NSUInteger options, bool is_cleared) {
  const size_t open = rounded(size ? size : 1, kPage), whole = open + kPage;
  auto *base = (char *)mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return nil;
  mprotect(base + open, kPage, PROT_NONE);
  auto *made = (SimBuffer *)[SimBuffer alloc];
  made->mapping = base;
  made->mapped = whole;
  made->memory = base + open - rounded(size, 16); // the elements of kernels are aligned to 16 bytes at most
  made->size = size;
  made->options = options;
  if (!is_cleared) memset(made->memory, kPoison, size); // what nobody writes shows; new pages are clear
  allocated += size;
  return made;
}
} // namespace sim

@implementation SimBuffer
+ (instancetype)alloc {
  id made = (id)sim::new_object((sim::Class *)self);
  std::lock_guard<std::mutex> held(live_lock);
  live.insert((const void *)made);
  return made;
}
- (void *)contents {
  // As Metal: what is private to the GPU has no address here.
  return [self storageMode] == MTLStorageModePrivate ? nullptr : memory;
}
- (NSUInteger)length {
  return size;
}
- (uint64_t)gpuAddress {
  return (uint64_t)memory;
}
- (NSUInteger)allocatedSize {
  return size;
}
- (NSUInteger)resourceOptions {
  return options;
}
- (MTLStorageMode)storageMode {
  return (MTLStorageMode)((options >> 4) & 15);
}
- (MTLCPUCacheMode)cpuCacheMode {
  return (MTLCPUCacheMode)(options & 15);
}
- (MTLHazardTrackingMode)hazardTrackingMode {
  return (MTLHazardTrackingMode)((options >> 8) & 3);
}
- (id<MTLDevice>)device {
  return sim::device();
}
- (id<MTLHeap>)heap {
  return owner;
}
- (MTLPurgeableState)setPurgeableState:(MTLPurgeableState)state {
  return MTLPurgeableStateNonVolatile;
}
- (void)didModifyRange:(NSRange)range {
}
- (void)setLabel:(NSString *)label {
}
- (void)dealloc {
  {
    std::lock_guard<std::mutex> held(live_lock);
    live.erase((const void *)self);
  }
  if (mapping) {
    munmap(mapping, mapped);
    allocated -= size;
  }
  delete addressed;
  if (owner) {
    owner->used -= charged;
    [owner release];
  }
  [super dealloc];
}
@end

@implementation SimHeap
- (NSUInteger)size {
  return whole;
}
- (NSUInteger)usedSize {
  return used;
}
- (NSUInteger)currentAllocatedSize {
  return whole;
}
- (NSUInteger)maxAvailableSizeWithAlignment:(NSUInteger)alignment {
  return is_full() ? 0 : whole - used;
}
- (MTLPurgeableState)setPurgeableState:(MTLPurgeableState)state {
  return MTLPurgeableStateNonVolatile;
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  const size_t charge = sim::charge_of(length);
  if (used + charge > whole) return nil;
  auto *made = sim::new_buffer(length, options, false);
  if (!made) return nil;
  made->owner = [self retain];
  made->charged = charge;
  used += charge;
  return made;
}
// Of a heap whose places its user chooses. Two buffers at one place do not share their memory here.
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options offset:(NSUInteger)offset {
  if (kind != MTLHeapTypePlacement) sim::refuse("a place in a heap that is not of the type MTLHeapTypePlacement");
  if (offset > whole || length > whole - offset) return nil;
  auto *made = sim::new_buffer(length, options, false);
  if (made) made->owner = [self retain];
  return made;
}
- (MTLHeapType)type {
  return kind;
}
@end

@interface MTLHeapDescriptor () {
 @public
  NSUInteger wanted;
  MTLHeapType kind;
}
@end
@implementation MTLHeapDescriptor
- (NSUInteger)size {
  return wanted;
}
- (void)setSize:(NSUInteger)size {
  wanted = size;
}
- (void)setCpuCacheMode:(MTLCPUCacheMode)mode {
}
- (void)setHazardTrackingMode:(MTLHazardTrackingMode)mode {
}
- (void)setResourceOptions:(MTLResourceOptions)options {
}
- (void)setStorageMode:(MTLStorageMode)mode {
}
- (void)setType:(MTLHeapType)type {
  kind = type;
}
- (MTLHeapType)type {
  return kind;
}
@end
namespace sim {
SimHeap *new_heap(MTLHeapDescriptor *descriptor) {
  if (is_full()) return nil;
  auto *made = (SimHeap *)[SimHeap alloc];
  made->whole = descriptor->wanted;
  made->kind = descriptor->kind;
  return made;
}
} // namespace sim

@implementation MTLSharedEventListener
@end
