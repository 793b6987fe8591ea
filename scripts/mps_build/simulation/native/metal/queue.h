// The GPU's side: command buffers run on one thread of their own, after they are committed.
#pragma once
#include <atomic>
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
// The commands of one commit; `after` is told when they are done, also where one failed.
struct Batch {
  std::vector<Command> commands;
  std::vector<std::function<void()>> after;
  std::string error;
  std::atomic<bool> is_done{false};
};
void submit(std::shared_ptr<Batch> batch);
// Returns when a batch, and so all before it, is done.
void wait_for(const Batch &batch);
} // namespace sim
