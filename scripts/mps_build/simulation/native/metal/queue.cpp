// One thread runs batches in the order in which they were committed, as one Metal queue does.
#include "queue.h"
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include "../runtime/objects.h"

namespace sim {
namespace {
void run(Batch &batch) {
  void *pool = objc_autoreleasePoolPush();
  for (auto &command : batch.commands) {
    if (!batch.error.empty()) break; // a GPU that has failed does nothing more of this command buffer
    try {
      command.run();
    } catch (const std::exception &error) {
      batch.error = command.what + ": " + error.what();
    }
  }
  batch.commands.clear(); // lets go of what they hold, before anybody is told
  for (auto &tell : batch.after) tell();
  batch.after.clear();
  objc_autoreleasePoolPop(pool);
}

class Queue {
 public:
  Queue() : thread_([this] { work(); }) {}
  void add(std::shared_ptr<Batch> batch) {
    {
      std::lock_guard<std::mutex> held(lock_);
      waiting_.push_back(std::move(batch));
    }
    changed_.notify_all();
  }
  void wait_for(const Batch &batch) {
    if (std::this_thread::get_id() == thread_.get_id()) refuse("a completed handler waits for its own queue");
    std::unique_lock<std::mutex> held(lock_);
    changed_.wait(held, [&] { return batch.is_done.load(); });
  }

 private:
  void work() {
    at::NoGradGuard no_grad;
    at::AutoDispatchBelowADInplaceOrView plain;
    std::unique_lock<std::mutex> held(lock_);
    for (;;) {
      changed_.wait(held, [&] { return !waiting_.empty(); });
      auto batch = std::move(waiting_.front());
      waiting_.pop_front();
      held.unlock();
      run(*batch);
      held.lock();
      batch->is_done = true;
      changed_.notify_all();
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Batch>> waiting_;
  std::thread thread_;
};

// Never destroyed: at the end of the process PyTorch's allocator, which is older, still commits and waits.
Queue &queue() {
  static auto *one = new Queue;
  return *one;
}
} // namespace

void submit(std::shared_ptr<Batch> batch) { queue().add(std::move(batch)); }
void wait_for(const Batch &batch) { queue().wait_for(batch); }
} // namespace sim
