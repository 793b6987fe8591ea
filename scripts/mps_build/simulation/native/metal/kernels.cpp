// Loads kernels where they were linked for, and runs them by the machine of verify_kernels (kernels/runtime).
#include "kernels.h"
#include <dlfcn.h>
#include <sys/mman.h>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include "../runtime/objects.h"
#include "../runtime/crash.h"
#include "queue.h"
#include "runtime.h"

extern "C" {
int rt_run(const struct run *job, struct report *report);
uint64_t rt_map_fixed(uint64_t address, size_t size);
int rt_unmap(uint64_t address, size_t size);
int rt_load_code(uint64_t address, const char *code, size_t size);
void rt_arena_clear(void);
void rt_arena_add(void *where, size_t size, uint32_t zero);
}

namespace sim {
namespace {
// What builder/kernels.py writes: a first line with the format and the sizes of both parts, the index, then the code.
constexpr char kFormat[] = "mps-build-kernels-2";
// Each call of a kernel to the runtime goes over one of these places, which are filled when the library is loaded.
constexpr uint64_t kCalls = 0x5900'0000'0000;
constexpr size_t kCallSize = 16;
constexpr uint64_t kArenaStep = 1 << 24, kPage = 4096;
std::map<uint64_t, uint64_t> mapped; // threadgroup memory that is open: begin, by where its part of the arena begins

std::string file_of(const std::string &name) {
  const char *folder = getenv("MPS_BUILD_KERNELS");
  if (!folder) return "";
  std::ifstream file(std::string(folder) + "/" + name, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

void *own_function(const std::string &name) {
  static void *self = [] {
    Dl_info about;
    if (!dladdr((void *)&rt_run, &about)) refuse("its own library is not found");
    return dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  return dlsym(self, name.c_str());
}

// Fills the places of the runtime's functions, in the order in which the index names them.
void publish(const std::vector<std::string> &names) {
  static bool is_done = false;
  if (is_done) return;
  is_done = true;
  if (!rt_map_fixed(kCalls, (names.size() * kCallSize + kPage - 1) / kPage * kPage)) refuse("no room for calls of kernels");
  auto *at = (unsigned char *)kCalls;
  for (auto &name : names) {
    void *code = own_function(name);
    if (!code) refuse("kernels call " + name + ", which is not here");
    const unsigned char jump[] = {0x49, 0xBB, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xFF, 0xE3}; // mov r11, code; jmp r11
    memcpy(at, jump, sizeof jump);
    memcpy(at + 2, &code, sizeof code);
    at += kCallSize;
  }
  mprotect((void *)kCalls, (names.size() * kCallSize + kPage - 1) / kPage * kPage, PROT_READ | PROT_EXEC);
}

Kernel kernel_of(std::istringstream line, const char *code) {
  Kernel kernel;
  size_t offset, arguments, variables;
  line >> kernel.name >> kernel.base >> kernel.entry >> kernel.row >> offset >> kernel.code_size >> kernel.is_cooperative;
  line >> kernel.most_threads >> kernel.argument_count >> arguments;
  kernel.code = code + offset;
  for (size_t i = 0; i < arguments; i++) {
    Argument each;
    line >> each.index >> each.slot >> each.space >> each.size;
    kernel.arguments.push_back(each);
  }
  line >> variables;
  for (size_t i = 0; i < variables; i++) {
    Variable each;
    line >> each.address >> each.size >> each.is_zero;
    kernel.variables.push_back(each);
  }
  if (!line) refuse("the index of kernels is damaged at " + kernel.name);
  return kernel;
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
  if (said.address) {
    out << "; address " << std::hex << said.address << std::dec;
    for (auto &each : launch.kernel->arguments) {
      const auto &slot = launch.slots[each.slot];
      const int64_t behind = (int64_t)(said.address - (uint64_t)slot.at);
      if (slot.at && behind >= 0 && behind < (int64_t)slot.size + 65536)
        out << ", byte " << behind << " of the " << slot.size << " at index " << each.slot;
    }
  }
  out << ")";
  return out.str();
}
} // namespace

const void *section(const std::string &name, unsigned long *size) {
  static std::map<std::string, std::string> known;
  auto &data = known[name];
  if (data.empty()) data = file_of(name + ".kernels");
  *size = data.size();
  return data.empty() ? nullptr : data.data();
}

void watch_signals() {
  struct run nothing = {};
  struct report said;
  rt_run(&nothing, &said); // the machine of the kernels takes them first
  watch_for_crashes();
}

std::unique_ptr<Library> library_of(const void *data, size_t size) {
  const auto *text = (const char *)data;
  const auto *newline = (const char *)memchr(text, '\n', size);
  std::istringstream head(std::string(text, newline ? newline - text : 0));
  std::string format;
  size_t index_size = 0, code_size = 0;
  head >> format >> index_size >> code_size;
  if (format != kFormat || (size_t)(newline + 1 - text) + index_size + code_size != size) refuse("its kernels are damaged");
  const char *code = newline + 1 + index_size;
  std::istringstream index(std::string(newline + 1, index_size));
  std::string line, word;
  std::getline(index, line);
  std::vector<std::string> names;
  for (std::istringstream words(line); words >> word;) names.push_back(word);
  publish(names);
  auto library = std::make_unique<Library>();
  while (std::getline(index, line)) {
    Kernel kernel = kernel_of(std::istringstream(line), code);
    library->kernels[kernel.name] = kernel;
  }
  return library;
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
  std::vector<std::unique_ptr<char, void (*)(void *)>> local;
  for (auto &each : kernel.arguments) {
    const Bound &bound = launch.slots[each.slot];
    if (each.space == 3) {
      const uint64_t length = launch.lengths[each.slot];
      if (!length) refuse("it needs a length of threadgroup memory at index " + std::to_string(each.slot));
      local.emplace_back((char *)aligned_alloc(64, (length + 63) / 64 * 64), free);
      pointers[each.index] = local.back().get();
      rt_arena_add(local.back().get(), length, 0);
      continue;
    }
    if (!bound.is_set) refuse("nothing is bound at index " + std::to_string(each.slot));
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
  is_kernel = true;
  const int status = rt_run(&job, &said);
  is_kernel = false;
  if (status) refuse(in_words(launch, said));
}
} // namespace sim
