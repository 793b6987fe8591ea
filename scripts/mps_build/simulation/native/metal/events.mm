// Events: a value that only a signal changes, and the handlers that wait for it.
#include <chrono>
#include <thread>
#include "event.h"

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
