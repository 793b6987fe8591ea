// The kernels of a wheel that were compiled before, in files, one for each of its Metal libraries; and Metal source text.
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
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

// Metal source text: compiled by clang with a shim, in a process of its own; kept by its digest.
extern char **environ;

namespace sim {
namespace {
std::string setting(const char *name) {
  const char *value = getenv(name);
  if (!value) refuse(std::string("Metal source cannot be compiled: ") + name + " is not set");
  return value;
}

// Runs python/metal_source.py: source text in, a shared library out. Returns what it says where it fails.
std::string compile(const std::string &source, const std::string &out) {
  const std::string text = out + ".metal", said = out + ".log";
  std::ofstream(text) << source;
  const std::string python = setting("MPS_BUILD_PYTHON"), script = setting("MPS_BUILD_METAL_SOURCE");
  const char *argv[] = {python.c_str(), "-I", "-S", script.c_str(), text.c_str(), out.c_str(), said.c_str(), nullptr};
  pid_t child;
  int status = -1;
  if (posix_spawn(&child, python.c_str(), nullptr, nullptr, (char *const *)argv, environ) == 0)
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  if (status == 0) return "";
  std::ostringstream reason;
  reason << std::ifstream(said).rdbuf();
  return reason.str().empty() ? "its compiler could not be run" : reason.str();
}
} // namespace

std::string compiled_source(const std::string &source) {
  std::ostringstream name;
  name << setting("MPS_BUILD_METAL_CACHE") << "/" << std::hex << std::hash<std::string>()(source) << ".so";
  const std::string file = name.str();
  if (access(file.c_str(), R_OK) != 0) {
    const std::string beside = file + "." + std::to_string(getpid());
    const std::string reason = compile(source, beside);
    if (!reason.empty()) refuse("Metal source does not compile:\n" + reason);
    rename(beside.c_str(), file.c_str());
  }
  return file;
}

void *opened(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) refuse(std::string("compiled Metal source cannot be loaded: ") + dlerror());
  return library;
}
} // namespace sim
