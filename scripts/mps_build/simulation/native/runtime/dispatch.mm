// libdispatch: a serial queue is a lock that one thread may take again; what is asynchronous is done at once.
#include <dispatch/dispatch.h>
#include <condition_variable>
#include <mutex>
#include "objects.h"
#include "../foundation/foundation.h"

@interface SimDispatchQueue : NSObject <OS_dispatch_queue> {
 @public
  std::recursive_mutex *lock;
}
@end
@implementation SimDispatchQueue
- (instancetype)init {
  lock = new std::recursive_mutex;
  return self;
}
- (void)dealloc {
  delete lock;
  [super dealloc];
}
@end

struct Semaphore {
  std::mutex lock;
  std::condition_variable changed;
  long value = 0;
};
@interface SimSemaphore : NSObject <OS_dispatch_semaphore> {
 @public
  Semaphore *semaphore;
}
@end
@implementation SimSemaphore
- (void)dealloc {
  delete semaphore;
  [super dealloc];
}
@end

extern "C" void sim_call_block(const void *block);

dispatch_queue_t dispatch_queue_create(const char *, dispatch_queue_attr_t) { return [SimDispatchQueue new]; }
dispatch_queue_t dispatch_get_global_queue(long, unsigned long) {
  static auto *queue = [SimDispatchQueue new];
  return queue;
}
void dispatch_sync(dispatch_queue_t queue, dispatch_block_t block) {
  std::lock_guard<std::recursive_mutex> held(*((SimDispatchQueue *)queue)->lock);
  sim_call_block((const void *)block);
}
void dispatch_async(dispatch_queue_t queue, dispatch_block_t block) { dispatch_sync(queue, block); }
void dispatch_release(dispatch_object_t object) { [object release]; }
void dispatch_retain(dispatch_object_t object) { [object retain]; }
dispatch_semaphore_t dispatch_semaphore_create(long value) {
  auto *made = [SimSemaphore new];
  made->semaphore = new Semaphore;
  made->semaphore->value = value;
  return made;
}
long dispatch_semaphore_signal(dispatch_semaphore_t given) {
  auto &one = *((SimSemaphore *)given)->semaphore;
  std::lock_guard<std::mutex> held(one.lock);
  one.value++;
  one.changed.notify_one();
  return 0;
}
long dispatch_semaphore_wait(dispatch_semaphore_t given, dispatch_time_t timeout) {
  auto &one = *((SimSemaphore *)given)->semaphore;
  std::unique_lock<std::mutex> held(one.lock);
  if (timeout == DISPATCH_TIME_FOREVER) one.changed.wait(held, [&] { return one.value > 0; });
  if (one.value <= 0) return -1; // any other end of waiting has come
  one.value--;
  return 0;
}
dispatch_data_t dispatch_data_create(const void *bytes, size_t size, dispatch_queue_t, dispatch_block_t) {
  auto *made = [SimDispatchData new];
  made->bytes = bytes;
  made->size = size;
  return made;
}
void dispatch_sync_f(dispatch_queue_t queue, void *context, void (*work)(void *)) {
  std::lock_guard<std::recursive_mutex> held(*((SimDispatchQueue *)queue)->lock);
  work(context);
}
extern "C" void dispatch_apply_f(size_t count, dispatch_queue_t, void *context, void (*work)(void *, size_t)) {
  for (size_t i = 0; i < count; i++) work(context, i);
}
#ifdef __APPLE__ // by names that an image has, and our headers do not
extern "C" void dispatch_assert_queue(dispatch_queue_t) asm("_dispatch_assert_queue$V2");
void dispatch_assert_queue(dispatch_queue_t) {} // what is asynchronous is done at once: it is the right queue
@interface NSConstantQueue : SimDispatchQueue
@end
@implementation NSConstantQueue
@end
extern "C" {
extern char constant_queue_class[] SIM_SYMBOL("OBJC_CLASS_$_NSConstantQueue");
struct {
  void *isa;
  std::recursive_mutex *lock;
} main_queue asm("__dispatch_main_q") = {constant_queue_class, new std::recursive_mutex};
}
#endif
