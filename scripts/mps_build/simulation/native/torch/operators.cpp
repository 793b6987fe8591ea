// Says which operator a thread is in, so that an error or a crash can name it.
#include <ATen/record_function.h>
#include "../runtime/objects.h"

namespace {
struct Outer : at::ObserverContext {
  const char *name;
};
std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction &function) {
  auto outer = std::make_unique<Outer>();
  outer->name = sim::current_operator;
  sim::current_operator = function.name(); // it lives at least until `end`
  return outer;
}
void end(const at::RecordFunction &, at::ObserverContext *outer) { sim::current_operator = static_cast<Outer *>(outer)->name; }

[[maybe_unused]] const auto handle =
    at::addGlobalCallback(at::RecordFunctionCallback(begin, end).scopes({at::RecordScope::FUNCTION}));
} // namespace
