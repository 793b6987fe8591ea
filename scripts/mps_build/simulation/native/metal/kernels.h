// Metal kernels as machine code: those of a wheel, compiled before (builder/kernels.py) or made by the kernel server,
// and source text.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct run;
struct report;

namespace sim {
constexpr int kSlots = 31;
// One argument of a kernel: its place among all, the buffer's index, Metal's address space (3: threadgroup), and the
// bytes of what a reference refers to, or -1 for a pointer; source text has the size of a structure there (-8).
struct Argument {
  int index, slot, space;
  int64_t size;
};
// A threadgroup variable of the kernel's own, at a fixed address.
struct Variable {
  uint64_t address, size;
  bool is_zero;
};
struct Kernel {
  std::string name;
  uint64_t base = 0, entry = 0, row = 0; // row: of its threads in a row; 0 where it has none
  const char *code = nullptr;
  size_t code_size = 0;
  std::string_view bitcode; // what its code is made of when its function is made
  bool is_cooperative = false, is_loaded = false;
  uint32_t most_threads = 1024;
  int argument_count = 0;
  std::vector<Argument> arguments;
  std::vector<Variable> variables;
  // Function constants of source text: where each lies, and the value that this function was made with.
  std::vector<std::pair<void *, std::string>> constants;
};
struct Constant {
  void *at;
  size_t size;
};
struct Library {
  std::map<std::string, Kernel> kernels, specialised;
  std::map<uint64_t, Constant> constants; // by index
};
struct Bound {
  void *at = nullptr;
  uint64_t size = 0;
  bool is_set = false; // also to nothing, which is not the same as left out
};
struct Launch {
  Kernel *kernel = nullptr;
  Bound slots[kSlots];
  uint64_t lengths[kSlots] = {};
  uint64_t grid[3], group[3];
};

std::unique_ptr<Library> library_of_source(const std::string &source);
void run(const Launch &launch);
// Threadgroup memory of an argument: as a buffer's, it ends at a protected page. Kept for the next launch; of the GPU's thread.
char *threadgroup_memory(int slot, size_t size);
// Fills the places of the runtime's functions that the code of kernels calls, in the order in which they are named.
void publish(const std::vector<std::string> &names);
// A kernel's line, as builder/kernels.py writes it; `code` is what its place in the file counts from.
void read_line(Kernel &kernel, const std::string &line, const char *code);

// What differs between a process of this machine's code (elf/) and one that holds a wheel's own (macho/).
// A Metal library as host code hands it over.
std::unique_ptr<Library> library_of(const void *data, size_t size);
// Makes a kernel's code where it is not there yet: a wheel has 18,563 kernels, and a program uses few.
void make_ready(Kernel &kernel);
// Compiles Metal source text; returns the path of a shared library of Linux.
std::string compiled_source(const std::string &source);
// Once, on the GPU's thread: faults of kernels are caught, all others are reported.
void watch_signals();
// Runs a launch; returns the report's status.
int run_on_machine(const struct run &job, struct report &said);
// Makes what was written between two addresses what the processor runs.
void flush_code(void *begin, void *end);
void *opened(const std::string &path);
// A name in a library that was opened; nullptr: in the machine that runs kernels.
void *found_in(void *library, const char *name);
// The bytes of a wheel's Metal library, compiled for this machine; nullptr where there is none (elf/ alone).
const void *section(const std::string &name, unsigned long *size);
} // namespace sim
