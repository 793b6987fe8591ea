// Heaps and buffers, the events of queues, and the argument buffers that kernels read addresses from.
#include <sys/mman.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include "kernels.h"
#include "metal.h"
#include "queue.h"
#include "../runtime/crash.h"

namespace {
constexpr size_t kPage = 4096;
constexpr size_t kAlign = 256;
constexpr int kCanary = 0xA5;
std::atomic<size_t> allocated{0};
struct Range {
  const char *begin;
  size_t size;
  bool overlaps(const void *at, size_t length) const {
    return begin < (const char *)at + length && (const char *)at < begin + size;
  }
};
struct Freed {
  void *memory;
  size_t size;
  void (*free)(void *);
};
struct Buffers {
  std::mutex lock;
  std::unordered_set<const void *> live;
  std::unordered_map<const void *, Range> over_host; // those that share memory of the host
  std::vector<Freed> freed;                          // by the host, while one of them reaches it
  bool reach(const void *at, size_t size) const {
    for (auto &[buffer, range] : over_host)
      if (range.overlaps(at, size)) return true;
    return false;
  }
};
// Never destroyed: at the end of the process PyTorch's destructors still release buffers.
Buffers &buffers() {
  static auto *all = new Buffers;
  return *all;
}
std::atomic<size_t> over_host{0}, freed_early{0}; // how many there are of both, read without the lock
using Lock = std::lock_guard<std::mutex>;
// Forgets a buffer; returns what only it still reached.
std::vector<Freed> forget(const void *buffer) {
  std::vector<Freed> due, kept;
  Lock held(buffers().lock);
  buffers().live.erase(buffer);
  if (!buffers().over_host.erase(buffer)) return due;
  over_host = buffers().over_host.size();
  for (auto &each : buffers().freed) (buffers().reach(each.memory, each.size) ? kept : due).push_back(each);
  buffers().freed.swap(kept);
  freed_early = buffers().freed.size();
  return due;
}
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
  Lock held(buffers().lock);
  return buffers().live.size() >= most_buffers();
}
size_t rounded(size_t size, size_t step) { return (size + step - 1) / step * step; }
} // namespace

namespace sim {
bool is_buffer(const void *object) {
  Lock held(buffers().lock);
  return buffers().live.count(object) > 0;
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
  if (!is_cleared) memset(made->memory, kCanary, size); // what nobody writes shows; new pages are clear
  allocated += size;
  return made;
}
SimBuffer *new_buffer_over(void *memory, size_t size, NSUInteger options) {
  auto *made = (SimBuffer *)[SimBuffer alloc];
  made->memory = (char *)memory;
  made->size = size;
  made->options = options;
  Lock held(buffers().lock);
  buffers().over_host[(const void *)made] = {made->memory, size};
  over_host = buffers().over_host.size();
  return made;
}

char *threadgroup_memory(int slot, size_t size) {
  static auto *made = new std::map<std::pair<int, size_t>, SimBuffer *>;
  auto &one = (*made)[{slot, size}];
  if (!one && !(one = new_buffer(size, 0, true))) refuse("no memory for a threadgroup");
  return one->memory;
}

// PyTorch's copies between the CPU and the GPU share the host's memory. Where they do not wait, it may be freed before they
// run: before April 2026 nothing kept what is written (https://github.com/pytorch/pytorch/issues/139550), and what is read
// is not kept to this day (https://github.com/pytorch/pytorch/issues/189690). On a Mac it may be another's by then.
bool is_freed_later(void *memory, size_t size, void (*free)(void *)) {
  if (!over_host) return false;
  Lock held(buffers().lock);
  if (!buffers().reach(memory, size)) return false;
  memset(memory, kCanary, size); // what reads it shows
  buffers().freed.push_back({memory, size, free});
  freed_early = buffers().freed.size();
  return true;
}

void check_written(const void *at, size_t size) {
  if (!freed_early) return;
  {
    Lock held(buffers().lock);
    bool is_gone = false;
    for (auto &each : buffers().freed) is_gone = is_gone || Range{(const char *)each.memory, each.size}.overlaps(at, size);
    if (!is_gone) return;
  }
  const std::string what = "writes to a tensor of the CPU that was freed before the copy ran (pytorch/pytorch#139550)";
  if (is_timing_drawn()) refuse(what);
  static std::atomic_flag is_said = ATOMIC_FLAG_INIT;
  if (is_said.test_and_set()) return;
  fprintf(stderr, "software Metal: %s %s: on a Mac another's memory may change. Keep the tensor until torch.mps.synchronize()\n",
          current_command ? current_command : "a command", what.c_str());
}
} // namespace sim

@implementation SimBuffer
+ (instancetype)alloc {
  id made = (id)sim::new_object((sim::Class *)self);
  Lock held(buffers().lock);
  buffers().live.insert((const void *)made);
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
  for (auto &each : forget((const void *)self)) each.free(each.memory);
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
