// What the loader asks of the software Metal: classes that a wheel names and are not here (its libraries are opened, and
// the first message to such a class is refused by its name), memory that the wheel frees, what a crash says.
#include <malloc/malloc.h>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include "../runtime/crash.h"
#include "../runtime/objects.h"

namespace {
struct Absent {
  std::string name;
  sim::ClassData data = {}, meta_data = {};
  sim::Class type = {}, meta = {};
};
constexpr char kClass[] = "_OBJC_CLASS_$_", kMeta[] = "_OBJC_METACLASS_$_";
} // namespace

extern "C" {
// The loader's: what a symbol of a class, or of its class, is bound to; nullptr where it is neither.
void *sim_absent_class(const char *symbol) {
  static std::mutex lock;
  static auto *all = new std::map<std::string, Absent>; // for good: objects outlive the destructors of globals
  const bool is_meta = strncmp(symbol, kMeta, sizeof kMeta - 1) == 0;
  if (!is_meta && strncmp(symbol, kClass, sizeof kClass - 1) != 0) return nullptr;
  const std::string name = symbol + (is_meta ? sizeof kMeta : sizeof kClass) - 1;
  std::lock_guard<std::mutex> held(lock);
  Absent &one = (*all)[name];
  if (one.name.empty()) {
    one.name = name;
    one.meta_data.flags = 1;
    one.data.name = one.meta_data.name = one.name.c_str();
    one.type.isa = one.meta.isa = &one.meta;
    one.type.data = &one.data;
    one.meta.data = &one.meta_data;
  }
  return is_meta ? &one.meta : &one.type;
}
}

// What a crash report of the loader's says of us: it takes the signals itself.
namespace sim {
thread_local const char *current_command = nullptr;
bool is_freed_later(void *memory, size_t size, void (*free)(void *));
} // namespace sim

extern "C" {
// What the wheel's libraries have as `free`, by which a tensor of the CPU is freed.
void sim_free(void *memory) {
  if (memory && !sim::is_freed_later(memory, malloc_size(memory), free)) free(memory);
}
// The operator that this thread is in, and the command that the GPU's thread carries out; nullptr: none.
const char *sim_current_operator() { return sim::current_operator; }
const char *sim_current_command() { return sim::current_command; }
}
