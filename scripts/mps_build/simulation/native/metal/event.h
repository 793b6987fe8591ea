// Events, which command buffers signal and wait for.
#pragma once
#include <atomic>
#include <mutex>
#include "metal.h"

// Values that handlers of events wait for, and command buffers signal.
@interface SimEvent : NSObject <MTLSharedEvent> {
 @public
  std::atomic<uint64_t> value;
  std::mutex *lock;
  std::vector<std::pair<uint64_t, id>> *waiting;
}
@end
