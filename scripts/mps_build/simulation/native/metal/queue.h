// The GPU's side: command buffers run on one thread of their own, after they are committed.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sim {
// What an encoder records: `what` is named where it fails.
struct Command {
  std::string what;
  std::function<void()> run;
};
// The commands of one commit; `after` is called when they are done, also where one failed.
struct Batch {
  std::vector<Command> commands;
  std::vector<std::function<void()>> after;
  std::string error;
  std::atomic<bool> is_done{false};
};
void submit(std::shared_ptr<Batch> batch);
// Returns when a batch, and so all before it, is done.
void wait_for(const Batch &batch);
// Runs a function when the process ends, before what work may use is destroyed (elf/, macho/).
void at_end(void (*run)());
// What the GPU's thread does once, before its first batch (the graph's side has a thread's state of its own).
extern std::function<void()> on_thread_start;
// Metal does not say when a commit runs, nor in which order the threads of a launch. MPS_BUILD_TIMING, a number, draws
// both, and the same number draws the same; without it each commit runs at once, in the plain order.
bool is_timing_drawn();
uint64_t drawn_timing(uint64_t below);
} // namespace sim
