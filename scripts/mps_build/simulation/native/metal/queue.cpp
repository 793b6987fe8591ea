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
  // At the end of the process what was committed is still done: libtorch is there until then.
  ~Queue() {
    {
      std::lock_guard<std::mutex> held(lock_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
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
      changed_.wait(held, [&] { return is_over_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
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
  bool is_over_ = false;
  std::thread thread_;
};

Queue &queue() {
  static Queue one;
  return one;
}
} // namespace

void submit(std::shared_ptr<Batch> batch) { queue().add(std::move(batch)); }
void wait_for(const Batch &batch) { queue().wait_for(batch); }
} // namespace sim
