// The kernels of a wheel's Metal libraries, whose code the kernel server makes when a function is made.
#include <cstring>
#include <mutex>
#include <sstream>
#include "../linux/machine.h"
#include "../metal/kernels.h"
#include "../metal/queue.h"
#include "../runtime/objects.h"

namespace sim {
namespace {
constexpr uint64_t kCode = 0x5B00'0000'0000, kPage = 4096;
constexpr char kMagic[] = "MTLB";
constexpr uint64_t kKernel = 2; // the type of a function; others are of graphics

// Asks the server, whose answers stay for good: code is mapped from them.
rt_answer ask(uint32_t what, uint64_t base, const void *data, size_t size) {
  rt_answer answer = {};
  if (rt_ask(what, base, data, size, &answer)) refuse("the kernel server does not answer (MPS_BUILD_KERNEL_SERVER)");
  return answer;
}
std::string text_of(const rt_answer &answer) { return std::string(answer.bytes, answer.text_size); }

// The bytes of a Metal library; every place in it is looked at before it is read.
class Reader {
 public:
  Reader(const void *data, size_t size) : data_((const char *)data), size_(size) {}
  uint64_t number(uint64_t at, uint64_t bytes) const {
    uint64_t value = 0;
    memcpy(&value, part(at, bytes), bytes);
    return value;
  }
  const char *part(uint64_t at, uint64_t bytes) const {
    if (at > size_ || bytes > size_ - at) refuse("a Metal library is cut off");
    return data_ + at;
  }

 private:
  const char *data_;
  size_t size_;
};
} // namespace

// kernels/read/library.py says what lies where.
std::unique_ptr<Library> library_of(const void *data, size_t size) {
  const Reader reader(data, size);
  if (memcmp(reader.part(0, 4), kMagic, 4) != 0) refuse("a Metal library does not begin with MTLB");
  {
    static std::once_flag once;
    std::call_once(once, [] {
      std::istringstream words(text_of(ask(RT_ASK_NAMES, 0, nullptr, 0)));
      std::vector<std::string> names;
      for (std::string word; words >> word;) names.push_back(word);
      publish(names);
    });
  }
  auto library = std::make_unique<Library>();
  const uint64_t list = reader.number(24, 8), bitcode = reader.number(72, 8), count = reader.number(list, 4);
  uint64_t at = list + 4;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t end = at + reader.number(at, 4);
    uint64_t kind = 0, offset = 0, bytes = 0;
    Kernel kernel;
    for (uint64_t tag = at + 4; tag + 6 <= end && memcmp(reader.part(tag, 4), "ENDT", 4) != 0;) {
      const uint64_t length = reader.number(tag + 4, 2);
      const char *value = reader.part(tag + 6, length);
      auto is = [&](const char *name) { return memcmp(reader.part(tag, 4), name, 4) == 0; };
      if (is("NAME")) kernel.name = std::string(value, strnlen(value, length));
      if (is("TYPE")) kind = reader.number(tag + 6, 1);
      if (is("OFFT")) offset = reader.number(tag + 6 + 16, 8);
      if (is("MDSZ")) bytes = reader.number(tag + 6, 8);
      tag += 6 + length;
    }
    if (end <= at) refuse("a Metal library's list of functions does not go on");
    at = end;
    if (kind != kKernel) continue;
    kernel.bitcode = std::string_view(reader.part(bitcode + offset, bytes), bytes);
    library->kernels.emplace(kernel.name, std::move(kernel));
  }
  return library;
}

void make_ready(Kernel &kernel) {
  static std::mutex lock;
  static uint64_t next = kCode;
  std::lock_guard<std::mutex> held(lock);
  if (kernel.bitcode.empty() || kernel.code) return;
  const rt_answer answer = ask(RT_ASK_KERNEL, next, kernel.bitcode.data(), kernel.bitcode.size());
  if (!answer.data_size) refuse("kernel " + kernel.name + ": " + text_of(answer));
  read_line(kernel, kernel.name + " " + text_of(answer), answer.bytes + answer.text_size);
  next += (answer.data_size + kPage - 1) / kPage * kPage;
}

std::string compiled_source(const std::string &source) {
  const rt_answer answer = ask(RT_ASK_SOURCE, 0, source.data(), source.size());
  if (!answer.data_size) refuse("Metal source does not compile:\n" + text_of(answer));
  return std::string(answer.bytes + answer.text_size, answer.data_size);
}

void watch_signals() { rt_watch(); }
int run_on_machine(const struct run &job, struct report &said) { return rt_run_watched(&job, &said); }
void flush_code(void *begin, void *end) { rt_flush_code(begin, end); }
void at_end(void (*run)()) { rt_at_end(run); }

void *opened(const std::string &path) {
  void *library = rt_open(path.c_str());
  if (!library) refuse("compiled Metal source cannot be loaded: " + path);
  return library;
}
void *found_in(void *library, const char *name) { return rt_found_in(library, name); }
} // namespace sim
