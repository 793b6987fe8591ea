// The classes of the software Metal that its files share.
#pragma once
#include <Foundation/Foundation.h>
#include <Metal/Metal.h>
#include <MetalPerformanceShaders/MetalPerformanceShaders.h>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>
#include "../runtime/availability.h"

namespace sim {
struct Kernel;
struct Library;
} // namespace sim

@interface SimHeap : NSObject <MTLHeap> {
 @public
  size_t whole, used;
  MTLHeapType kind;
}
@end

// Memory that ends at a protected page.
@interface SimBuffer : NSObject <MTLBuffer> {
 @public
  char *memory;
  size_t size;
  void *mapping;
  size_t mapped;
  size_t charged;
  SimHeap *owner;
  NSUInteger options;
  std::vector<id> *addressed; // by index: the buffers whose addresses it holds, as an argument buffer
}
@end

@interface SimLibrary : NSObject <MTLLibrary> {
 @public
  sim::Library *library;
}
@end
@interface SimFunction : NSObject <MTLFunction> {
 @public
  sim::Kernel *kernel;
}
@end
@interface SimPipeline : NSObject <MTLComputePipelineState> {
 @public
  sim::Kernel *kernel;
}
@end

// Values that handlers of events wait for, and command buffers signal.
@interface SimEvent : NSObject <MTLSharedEvent> {
 @public
  std::atomic<uint64_t> value;
  std::mutex *lock;
  std::vector<std::pair<uint64_t, id>> *waiting;
}
@end

namespace sim {
id<MTLDevice> device();
SimBuffer *new_buffer(size_t size, NSUInteger options, bool is_cleared);
// A buffer over memory of the host's: no copy of it is made.
SimBuffer *new_buffer_over(void *memory, size_t size, NSUInteger options);
// Whether there is such a buffer: host code that passes an address inside of a buffer for the buffer is refused.
bool is_buffer(const void *object);
size_t allocated_bytes();
size_t charge_of(size_t size);
// For who frees memory of the host. True: a command still reaches it, so it stays until that has run, and is freed then.
bool is_freed_later(void *memory, size_t size, void (*free)(void *));
// Says where a command writes to memory of the host that was freed before.
void check_written(const void *at, size_t size);
// Adds a command to what a command buffer has recorded. `commands` is an MPSCommandBuffer.
void encode(id commands, std::string what, std::function<void()> run);
// Keeps an object until the function that holds this is gone.
std::shared_ptr<void> kept(id object);
// The last error that a command buffer met is raised here.
template <class... Part> [[noreturn]] void refuse_with(const Part &...part) {
  std::ostringstream out;
  (out << ... << part);
  refuse(out.str());
}
} // namespace sim
