/* Before each file: what Apple's C library and libc++ bring along, and glibc and libstdc++ do not. */
#pragma once
#include <stdint.h>
#include <time.h>
#include <unistd.h>
#ifdef __cplusplus
#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <iostream>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#endif
#ifdef __linux__
static inline uint64_t clock_gettime_nsec_np(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}
#endif
