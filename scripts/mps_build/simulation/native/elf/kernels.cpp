// The kernels of a wheel that were compiled before, in files: one for each of its Metal libraries.
#include <dlfcn.h>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include "../metal/kernels.h"
#include "../metal/queue.h"
#include "../runtime/crash.h"
#include "../runtime/objects.h"
#include "runtime.h"

extern "C" int rt_run(const struct run *job, struct report *report);

namespace sim {
namespace {
// What builder/kernels.py writes: a first line with the format and the sizes of both parts, the index, then the code.
constexpr char kFormat[] = "mps-build-kernels-2";

std::string file_of(const std::string &name) {
  const char *folder = getenv("MPS_BUILD_KERNELS");
  if (!folder) return "";
  std::ifstream file(std::string(folder) + "/" + name, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
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
    Kernel kernel;
    read_line(kernel, line, code);
    library->kernels[kernel.name] = kernel;
  }
  return library;
}

void watch_signals() {
  struct run nothing = {};
  struct report said;
  rt_run(&nothing, &said); // the machine of the kernels takes them first
  watch_for_crashes();
}
int run_on_machine(const struct run &job, struct report &said) {
  is_kernel = true;
  const int status = rt_run(&job, &said);
  is_kernel = false;
  return status;
}

void make_ready(Kernel &) {}
void flush_code(void *begin, void *end) { __builtin___clear_cache((char *)begin, (char *)end); }

// Python's own end comes first: destructors of what was made later than the first work run before `atexit`'s functions
// that are older.
void at_end(void (*run)()) {
  if (auto *register_function = (int (*)(void (*)()))dlsym(RTLD_DEFAULT, "Py_AtExit")) register_function(run);
  atexit(run);
}

void *found_in(void *library, const char *name) {
  static void *self = [] {
    Dl_info about;
    if (!dladdr((void *)&rt_run, &about)) refuse("its own library is not found");
    return dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  return dlsym(library ? library : self, name);
}
} // namespace sim
