// Loads kernels where they were linked for, and runs them by the machine of verify_kernels (kernels/machine/c).
#include "kernels.h"
#include <sys/mman.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include "../runtime/objects.h"
#include "queue.h"
#include "runtime.h"

extern "C" {
uint64_t rt_map_fixed(uint64_t address, size_t size);
int rt_load_code(uint64_t address, const char *code, size_t size);
void rt_arena_clear(void);
void rt_arena_add(void *where, size_t size, uint32_t zero);
}

namespace sim {
namespace {
// Each call of a kernel to the runtime goes over one of these places.
constexpr uint64_t kCalls = 0x5900'0000'0000;
constexpr size_t kCallSize = 16;
constexpr uint64_t kArenaStep = 1 << 24, kPage = 4096;
// What a reference that nothing is bound to reads: zeros, as on a GPU. Attention without a mask binds no strides of it,
// and reads them. It cannot be written.
constexpr size_t kMostZeros = 65536;
alignas(4096) const char zeros[kMostZeros] = {};
std::map<uint64_t, uint64_t> mapped; // threadgroup memory that is open: begin, by where its part of the arena begins

// A jump to a function, whose address stands in its bytes.
void write_jump(unsigned char *at, const void *code) {
#if defined(__x86_64__)
  const unsigned char jump[] = {0x49, 0xBB, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xFF, 0xE3}; // mov r11, code; jmp r11
  memcpy(at, jump, sizeof jump);
  memcpy(at + 2, &code, sizeof code);
#elif defined(__aarch64__)
  const uint32_t jump[] = {0x58000050, 0xD61F0200}; // ldr x16, #8; br x16
  memcpy(at, jump, sizeof jump);
  memcpy(at + 8, &code, sizeof code);
#else
#error "calls of kernels are written for x86-64 and arm64"
#endif
}

// Opens the pages of a threadgroup variable; the page behind its part of the arena stays closed.
void open_variable(const Variable &variable) {
  const uint64_t base = variable.address / kArenaStep * kArenaStep, begin = variable.address / kPage * kPage;
  auto found = mapped.find(base);
  const uint64_t end = found == mapped.end() ? base + kArenaStep / 2 : found->second;
  if (begin < end) {
    if (!rt_map_fixed(begin, end - begin)) refuse("no room for threadgroup memory");
    mapped[base] = begin;
  }
  rt_arena_add((void *)variable.address, variable.size, variable.is_zero);
}

std::string in_words(const Launch &launch, const struct report &said) {
  std::ostringstream out;
  const char *why[] = {"", "reads or writes outside of its buffers", "does not end", "traps", "waits at a barrier for ever", "cannot be launched"};
  out << "it " << (said.status >= 0 && said.status < 6 ? why[said.status] : "stops");
  out << " (thread " << said.thread[0] << ", " << said.thread[1] << ", " << said.thread[2];
  if (said.address) out << "; address " << std::hex << said.address << std::dec;
  for (auto &each : launch.kernel->arguments) {
    const auto &slot = launch.slots[each.slot];
    const int64_t behind = (int64_t)(said.address - (uint64_t)slot.at);
    const bool is_near = behind >= 0 && behind < (int64_t)slot.size + 65536;
    if (slot.at && is_near) out << ", byte " << behind << " of the " << slot.size << " at index " << each.slot;
    if (!slot.at && is_near && said.status == 1 && each.space != 3) out << ", nothing is bound at index " << each.slot;
  }
  out << ")";
  return out.str();
}
} // namespace

void publish(const std::vector<std::string> &names) {
  static bool is_done = false;
  if (is_done) return;
  is_done = true;
  const size_t size = (names.size() * kCallSize + kPage - 1) / kPage * kPage;
  if (!rt_map_fixed(kCalls, size)) refuse("no room for calls of kernels");
  auto *at = (unsigned char *)kCalls;
  for (auto &name : names) {
    void *code = found_in(nullptr, name.c_str());
    if (!code) refuse("kernels call " + name + ", which is not here");
    write_jump(at, code);
    at += kCallSize;
  }
  flush_code((void *)kCalls, at);
  mprotect((void *)kCalls, size, PROT_READ | PROT_EXEC);
}

void read_line(Kernel &kernel, const std::string &text, const char *code) {
  std::istringstream line(text);
  size_t offset, arguments, variables;
  line >> kernel.name >> kernel.base >> kernel.entry >> kernel.row >> offset >> kernel.code_size >> kernel.is_cooperative;
  line >> kernel.most_threads >> kernel.argument_count >> arguments;
  kernel.code = code + offset;
  for (size_t i = 0; line && i < arguments; i++) {
    Argument each;
    line >> each.index >> each.slot >> each.space >> each.size;
    kernel.arguments.push_back(each);
  }
  line >> variables;
  for (size_t i = 0; line && i < variables; i++) {
    Variable each;
    line >> each.address >> each.size >> each.is_zero;
    kernel.variables.push_back(each);
  }
  if (!line) refuse("the index of kernels is damaged at " + kernel.name);
}

void run(const Launch &launch) {
  Kernel &kernel = *launch.kernel;
  if (!kernel.is_loaded) {
    if (kernel.code && rt_load_code(kernel.base, kernel.code, kernel.code_size)) refuse("there is no room for its code");
    kernel.is_loaded = true;
  }
  rt_arena_clear();
  for (auto &each : kernel.variables) open_variable(each);
  std::vector<void *> pointers(kernel.argument_count + 1);
  for (auto &each : kernel.arguments) {
    const Bound &bound = launch.slots[each.slot];
    if (each.space == 3) {
      const uint64_t length = launch.lengths[each.slot];
      if (!length) refuse("it needs a length of threadgroup memory at index " + std::to_string(each.slot));
      auto *memory = threadgroup_memory(each.slot, length);
      pointers[each.index] = memory;
      rt_arena_add(memory, length, 0);
      continue;
    }
    if (!bound.is_set && each.size >= 0) {
      if ((size_t)each.size > kMostZeros) refuse("nothing is bound at index " + std::to_string(each.slot));
      pointers[each.index] = const_cast<char *>(zeros);
      continue;
    }
    // A pointer to which nothing is bound is null: argmax of 2.15 has some that it does not use.
    if (each.size >= 0 && (!bound.at || bound.size < (uint64_t)each.size))
      refuse("its argument at index " + std::to_string(each.slot) + " needs " + std::to_string(each.size) + " bytes, and has " + std::to_string(bound.size));
    pointers[each.index] = bound.at;
  }
  for (auto &[at, value] : kernel.constants) memcpy(at, value.data(), value.size());
  struct run job = {};
  job.entry = (entry_t)kernel.entry;
  job.row = (row_t)kernel.row;
  job.arguments = pointers.data();
  for (int i = 0; i < 3; i++) {
    job.grid[i] = launch.grid[i];
    job.group[i] = (uint32_t)launch.group[i];
  }
  job.cooperative = kernel.is_cooperative;
  job.poison = 0xA5;
  job.seed = 1;
  if (is_timing_drawn()) {
    job.order = (uint32_t)drawn_timing(4);
    job.seed = drawn_timing(UINT64_MAX);
  }
  struct report said = {};
  if (run_on_machine(job, said)) refuse(in_words(launch, said));
}
} // namespace sim

// Metal source text, as compiled code exports it.
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
