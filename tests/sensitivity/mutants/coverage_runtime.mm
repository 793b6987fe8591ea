// Which blocks of host code ran: what -fsanitize-coverage=trace-pc-guard,pc-table calls, and how Python reads it.
// Compiled into the instrumented library alone.
#include <ATen/native/mps/OperationUtils.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstring>

namespace {
constexpr uint32_t kMost = 1 << 20;
uint8_t hit[kMost];
uint32_t count = 1; // 0: a guard that was not numbered yet
const uintptr_t* places = nullptr;
uintptr_t places_count = 0;

// A graph that an earlier case made would hide the lines that make it: private, since only a test wants to forget.
using Graphs = std::unordered_map<at::native::mps::MPSCacheKey, at::native::mps::MPSGraphCache::CacheEntry>;
template <auto Member>
struct Opened {
  friend auto& graphs(at::native::mps::MPSGraphCache& cache) { return cache.*Member; }
};
auto& graphs(at::native::mps::MPSGraphCache& cache);
template struct Opened<&at::native::mps::MPSGraphCache::cache_>;
} // namespace

extern "C" {
void __sanitizer_cov_trace_pc_guard_init(uint32_t* start, uint32_t* stop) {
  if (start == stop || *start)
    return;
  for (auto* guard = start; guard < stop; ++guard)
    *guard = count++;
}

void __sanitizer_cov_pcs_init(const uintptr_t* start, const uintptr_t* stop) {
  places = start;
  places_count = (stop - start) / 2;
}

void __sanitizer_cov_trace_pc_guard(uint32_t* guard) { hit[*guard] = 1; }

uint32_t mps_build_blocks() { return count - 1; }

// The blocks' places in the library's file, in the guards' order.
void mps_build_block_places(uint64_t* into) {
  Dl_info found{};
  dladdr(reinterpret_cast<void*>(places[0]), &found);
  for (uintptr_t i = 0; i < places_count; ++i)
    into[i] = places[2 * i] - reinterpret_cast<uintptr_t>(found.dli_fbase);
}

void mps_build_take_blocks(uint8_t* into) {
  memcpy(into, hit + 1, count - 1);
  memset(hit, 0, count);
}

void mps_build_forget_graphs() {
  auto* cache = at::native::mps::MPSGraphCache::getInstance();
  auto& all = graphs(*cache);
  for (auto& each : all)
    delete each.second.cachedGraph_;
  all.clear();
}
}
