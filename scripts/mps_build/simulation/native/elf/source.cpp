// Metal source text: compiled by clang with a shim, in a process of its own; kept by its digest.
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include "../metal/kernels.h"
#include "../runtime/objects.h"

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
