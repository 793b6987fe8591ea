// Linked before all others of the software Metal: the selectors before this one are those that PyTorch's files send.
#include <set>
#include <string>
#include "../runtime/objects.h"

extern "C" {
extern const char *__start_objc_selrefs[];
__attribute__((section("objc_selrefs"), used)) const char *sim_first_own_selector = "sim_first_own_selector";

// For the session: two lists of names as JSON, what PyTorch's files send and what some class answers.
const char *sim_selectors() {
  static std::string out;
  std::set<std::string> needed;
  for (auto each = __start_objc_selrefs; each < &sim_first_own_selector; each++) needed.insert(*each);
  auto list = [](const std::set<std::string> &names) {
    std::string text;
    for (auto &each : names) text += (text.empty() ? "\"" : ", \"") + each + "\"";
    return "[" + text + "]";
  };
  out = "[" + list(needed) + ", " + list(sim::answered_selectors()) + "]";
  return out.c_str();
}
}
