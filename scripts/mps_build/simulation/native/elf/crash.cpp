// What a crash in host code leaves behind, on standard error: the operator, the selector, the native frames.
// Nothing here allocates: the heap may be what is damaged.
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>
#include "../runtime/crash.h"
#include "../runtime/crash_words.h"
#include "../runtime/objects.h"

namespace sim {
thread_local const char *current_command = nullptr;
thread_local bool is_kernel = false;
} // namespace sim

namespace {
constexpr int MOST_FRAMES = 64, NUMBERS[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
struct sigaction before[64];

// The names that only the library's own file has: methods of Objective-C, and functions of one file.
struct Symbols {
  const char *names = nullptr, *base = nullptr;
  const Elf64_Sym *first = nullptr;
  size_t count = 0;

  void open(const char *path, const void *where) {
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    struct stat facts;
    if (file < 0 || fstat(file, &facts) != 0) return;
    auto *whole = static_cast<const char *>(mmap(nullptr, facts.st_size, PROT_READ, MAP_PRIVATE, file, 0));
    close(file);
    if (whole == MAP_FAILED) return;
    auto *header = reinterpret_cast<const Elf64_Ehdr *>(whole);
    auto *sections = reinterpret_cast<const Elf64_Shdr *>(whole + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
      if (sections[i].sh_type != SHT_SYMTAB) continue;
      first = reinterpret_cast<const Elf64_Sym *>(whole + sections[i].sh_offset);
      count = sections[i].sh_size / sizeof(Elf64_Sym);
      names = whole + sections[sections[i].sh_link].sh_offset;
      base = static_cast<const char *>(where);
    }
  }
  const char *find(const void *address) const {
    const uint64_t place = static_cast<const char *>(address) - base;
    for (size_t i = 0; i < count; i++) {
      auto &each = first[i];
      if (ELF64_ST_TYPE(each.st_info) == STT_FUNC && each.st_value <= place && place < each.st_value + each.st_size)
        return names + each.st_name;
    }
    return nullptr;
  }
} own;

void tell(int number, const ucontext_t *context) {
  void *frames[MOST_FRAMES];
  const int count = backtrace(frames, MOST_FRAMES);
  crash_words words = {};
  char said[2000];
  bool is_past_signal = false, is_message = false;
  for (int i = 0; i < count; i++) {
    Dl_info info{};
    const char *found = dladdr(frames[i], &info) && info.dli_sname ? info.dli_sname : nullptr;
    // A return address lies behind its call, and may be the next function's first.
    if (info.dli_fbase == own.base)
      if (const char *exact = own.find(static_cast<char *>(frames[i]) - 1)) found = exact;
    if (!is_past_signal) { // this handler and the system's frame
      is_past_signal = frames[i] == reinterpret_cast<void *>(context->uc_mcontext.gregs[REG_RIP]);
      if (!is_past_signal) continue;
      is_message = found && std::strncmp(found, "objc_msgSend", 12) == 0;
    }
    const char *file = info.dli_fname ? std::strrchr(info.dli_fname, '/') : nullptr;
    if (file && std::strncmp(file, "/python3", 8) == 0) break; // the rest is Python's, which tells of itself
    if (!crash_frame(&words, found, nullptr)) break;
  }
  if (is_message) { // to an object that is none: the selector is still in its register
    auto *sent = reinterpret_cast<const char *>(context->uc_mcontext.gregs[REG_RSI]);
    std::snprintf(words.selector, sizeof words.selector, "%s", sent ? sent : "?");
  }
  const size_t size = crash_said(&words, said, sizeof said, number, strsignal(number), sim::current_operator, sim::current_command);
  if (write(STDERR_FILENO, said, size) < 0) return;
}

void crashed(int number, siginfo_t *info, void *context) {
  static volatile sig_atomic_t is_told = 0;
  if (sim::is_kernel && before[number].sa_flags & SA_SIGINFO) return before[number].sa_sigaction(number, info, context);
  if (!is_told) {
    is_told = 1;
    tell(number, static_cast<ucontext_t *>(context));
  }
  // Then whoever came before: Python's faulthandler, or the system.
  const struct sigaction &next = before[number];
  if (next.sa_flags & SA_SIGINFO) return next.sa_sigaction(number, info, context);
  if (next.sa_handler != SIG_DFL && next.sa_handler != SIG_IGN) return next.sa_handler(number);
  signal(number, SIG_DFL);
  raise(number);
}

__attribute__((constructor)) void open_own() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void *>(&crashed), &info) && info.dli_fname) own.open(info.dli_fname, info.dli_fbase);
  void *first;
  backtrace(&first, 1); // loads what it needs now, not in a crash
  sim::watch_for_crashes();
}
} // namespace

void sim::watch_for_crashes() {
  struct sigaction action {};
  action.sa_sigaction = crashed;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (const int number : NUMBERS) {
    struct sigaction old {};
    sigaction(number, &action, &old);
    if (old.sa_sigaction != crashed) before[number] = old;
  }
}
