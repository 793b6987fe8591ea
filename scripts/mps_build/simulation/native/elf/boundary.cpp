// Between PyTorch's libraries and ours. Linked before all others of the software Metal: the selectors before this one are
// those that PyTorch's files send.
#include <mach-o/dyld.h>
#include <mach-o/getsect.h>
#include <malloc.h>
#include <cstdlib>
#include <set>
#include <string>
#include "../metal/kernels.h"
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

// The one image that host code asks for, and its sections: what a wheel's libtorch_cpu.dylib has.
uint32_t _dyld_image_count(void) { return 1; }
const char *_dyld_get_image_name(uint32_t) { return "/libtorch_cpu.dylib"; }
const struct mach_header *_dyld_get_image_header(uint32_t) { return nullptr; }
uint8_t *getsectiondata(const struct mach_header_64 *, const char *, const char *name, unsigned long *size) {
  return (uint8_t *)sim::section(name, size);
}
}

namespace sim {
bool is_freed_later(void *memory, size_t size, void (*free)(void *));
} // namespace sim
namespace c10 {
// Comes before that of libc10, by which a tensor of the CPU is freed.
void free_cpu(void *data);
void free_cpu(void *data) {
  if (data && !sim::is_freed_later(data, malloc_usable_size(data), free)) free(data);
}
} // namespace c10
