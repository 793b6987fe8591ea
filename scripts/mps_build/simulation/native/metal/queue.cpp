// One thread runs batches in the order in which they were committed, as one Metal queue does.
#include "queue.h"
#include <unistd.h>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include "../runtime/objects.h"
#include "../runtime/crash.h"
#include "kernels.h"

namespace sim {
std::function<void()> on_thread_start;

bool is_timing_drawn() {
  static const bool is_drawn = getenv("MPS_BUILD_TIMING") != nullptr;
  return is_drawn;
}
// Only the GPU's thread draws, one commit and one launch after another: so a number replays.
uint64_t drawn_timing(uint64_t below) {
  static uint64_t state = strtoull(getenv("MPS_BUILD_TIMING"), nullptr, 10);
  state += 0x9E3779B97F4A7C15; // splitmix64
  uint64_t mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9;
  mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
  return (mixed ^ mixed >> 31) % below;
}

namespace {
constexpr auto kLongest = std::chrono::milliseconds(30);
// Of a command that waits for what ended before it, such as Python.
constexpr auto kLongestEnd = std::chrono::seconds(60);

// What refuses within a command says by itself that it is the software Metal.
std::string without_prefix(std::string text) {
  const std::string prefix = "software Metal: ";
  return text.compare(0, prefix.size(), prefix) == 0 ? text.substr(prefix.size()) : text;
}
std::atomic<bool> is_ending{false};

void run(Batch &batch) {
  void *pool = objc_autoreleasePoolPush();
  for (auto &command : batch.commands) {
    if (is_ending) break;
    if (!batch.error.empty()) break; // a GPU that has failed does nothing more of this command buffer
    try {
      current_command = command.what.c_str();
      command.run();
      current_command = nullptr;
    } catch (const std::exception &error) {
      current_command = nullptr;
      batch.error = command.what + ": " + without_prefix(error.what());
    }
  }
  if (is_ending) return; // nobody is called, and nothing is let go: it may be gone
  batch.commands.clear(); // lets go of what they hold, before anybody is called
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
      if (is_ending) batch->is_done = true; // of destructors, which then wait for it
      waiting_.push_back(std::move(batch));
    }
    changed_.notify_all();
  }
  // The process ends: the command that runs is waited for, and all that is queued behind it is dropped, since what it
  // uses will be gone. A GPU's work is not waited for at an exit either.
  void end() {
    is_ending = true;
    // A child of fork has no such thread, and another thread may have held the lock.
    if (std::this_thread::get_id() == thread_.get_id() || owner_ != getpid()) return;
    std::unique_lock<std::mutex> held(lock_);
    changed_.notify_all(); // a delay that is drawn ends
    changed_.wait_for(held, kLongestEnd, [&] { return !is_running_; });
    for (auto &batch : waiting_) batch->is_done = true;
    changed_.notify_all();
  }
  void wait_for(const Batch &batch) {
    if (std::this_thread::get_id() == thread_.get_id()) refuse("a completed handler waits for its own queue");
    std::unique_lock<std::mutex> held(lock_);
    waiters_++;
    changed_.notify_all();
    changed_.wait(held, [&] { return batch.is_done.load(); });
    waiters_--;
  }

 private:
  void work() {
    if (on_thread_start) on_thread_start();
    watch_signals();
    std::unique_lock<std::mutex> held(lock_);
    for (;;) {
      changed_.wait(held, [&] { return !waiting_.empty() && !is_ending; });
      if (is_timing_drawn()) delay(held);
      if (is_ending) continue;
      is_running_ = true;
      auto batch = std::move(waiting_.front());
      waiting_.pop_front();
      held.unlock();
      run(*batch);
      if (is_ending) new std::shared_ptr<Batch>(batch); // for good
      held.lock();
      is_running_ = false;
      batch->is_done = true;
      changed_.notify_all();
    }
  }

  // A commit runs at once, or a little later, or as late as Metal may: when somebody waits for it. The last has an end,
  // since host code may ask for the state again and again instead.
  void delay(std::unique_lock<std::mutex> &held) {
    const uint64_t kind = drawn_timing(4);
    if (kind == 0) return;
    if (kind == 1) {
      changed_.wait_for(held, std::chrono::microseconds(drawn_timing(500)), [&] { return waiters_ > 0 || is_ending; });
      return;
    }
    changed_.wait_for(held, kLongest, [&] { return waiters_ > 0 || is_ending; });
  }

  const pid_t owner_ = getpid();
  std::mutex lock_;
  int waiters_ = 0;
  bool is_running_ = false;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Batch>> waiting_;
  std::thread thread_;
};

// Never destroyed: at the end of the process PyTorch's allocator, which is older, still commits and waits.
Queue &queue();
Queue &queue() {
  static auto *one = [] {
    auto *made = new Queue;
    at_end([] { queue().end(); });
    return made;
  }();
  return *one;
}
} // namespace

void submit(std::shared_ptr<Batch> batch) { queue().add(std::move(batch)); }
void wait_for(const Batch &batch) { queue().wait_for(batch); }
} // namespace sim
