// Metal source text, as compiled code exports it.
#include <algorithm>
#include "../runtime/objects.h"
#include "kernels.h"

namespace sim {
namespace {
// What the compiled file exports as sim_kernels, ended by a name that is nullptr (python/metal_source.py writes it).
struct Exported {
  const char *name;
  void *entry, *row;
  int argument_count;
  struct {
    int index, slot;
    long size;
  } arguments[kSlots];
};
// What it exports as sim_constants, ended by an address that is nullptr.
struct ExportedConstant {
  long index, size;
  void *at;
};

} // namespace

std::unique_ptr<Library> library_of_source(const std::string &source) {
  void *code = opened(compiled_source(source));
  auto library = std::make_unique<Library>();
  for (auto *each = (const Exported *)found_in(code, "sim_kernels"); each && each->name; each++) {
    Kernel kernel;
    kernel.name = each->name;
    kernel.entry = (uint64_t)each->entry;
    kernel.row = (uint64_t)each->row;
    kernel.is_loaded = true;
    for (int i = 0; i < each->argument_count; i++) {
      const auto &one = each->arguments[i]; // ids may stand before it
      kernel.arguments.push_back({one.index, one.slot, 1, one.size});
      kernel.argument_count = std::max(kernel.argument_count, one.index + 1);
    }
    library->kernels[kernel.name] = kernel;
  }
  for (auto *each = (const ExportedConstant *)found_in(code, "sim_constants"); each && each->at; each++)
    library->constants[each->index] = {each->at, (size_t)each->size};
  return library;
}
} // namespace sim
