// metal_stdlib as C++ of this machine, as far as PyTorch's kernels that are compiled at run time use it.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#define kernel
#define device
#define constant const
#define thread
#define threadgroup
#define __METAL_VERSION__ 310
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;
typedef __bf16 bfloat;
// Casts between the two, which C++ has not: a cast that is written `half(x)` is one of these.
template <class S> half sim_half(S a) {
  if constexpr (std::is_same_v<S, bfloat>) return half(float(a));
  else return half(a);
}
template <class S> bfloat sim_bfloat(S a) {
  if constexpr (std::is_same_v<S, half>) return bfloat(float(a));
  else return bfloat(a);
}

template <class S>
constexpr bool sim_is_scalar = std::is_arithmetic_v<S> || std::is_same_v<S, half> || std::is_same_v<S, bfloat>;
#define SIM_IF_SCALAR(A) class A, class = std::enable_if_t<sim_is_scalar<A>>
// Two, three or four components. Metal aligns three like four; what is packed only like its components.
template <class T, int N, bool packed = false> struct sim_vec;
#define SIM_OPERATOR(op)                                                                                        \
  template <class S> auto operator op(const S &b) const {                                                       \
    if constexpr (sim_is_scalar<S>)                                                                             \
      return each([&](T a) { return T(a op b); });                                                              \
    else                                                                                                        \
      return both(b, [](T a, T c) { return T(a op c); });                                                       \
  }                                                                                                             \
  template <class S> auto &operator op##=(const S &b) { return *this = sim_vec(*this op b); }
#define SIM_COMMON                                                                                              \
  T &operator[](int i) { return (&x)[i]; }                                                                      \
  const T &operator[](int i) const { return (&x)[i]; }                                                          \
  SIM_OPERATOR(+) SIM_OPERATOR(-) SIM_OPERATOR(*) SIM_OPERATOR(/) SIM_OPERATOR(%)                               \
  sim_vec operator-() const { return each([](T a) { return T(-a); }); }
#define SIM_ALIGN(n) alignas(packed ? sizeof(T) : (n) * sizeof(T))
template <class T, bool packed> struct SIM_ALIGN(2) sim_vec<T, 2, packed> {
  T x, y;
  sim_vec() = default;
  template <SIM_IF_SCALAR(A)> sim_vec(A a) : x(T(a)), y(T(a)) {}
  template <class A, class B> sim_vec(A a, B b) : x(T(a)), y(T(b)) {}
  template <class O, bool p> sim_vec(const sim_vec<O, 2, p> &o) : x(T(o.x)), y(T(o.y)) {}
  template <class F> sim_vec each(F f) const { return {f(x), f(y)}; }
  template <class V, class F> sim_vec both(const V &o, F f) const { return {f(x, T(o.x)), f(y, T(o.y))}; }
  SIM_COMMON
};
template <class T, bool packed> struct SIM_ALIGN(4) sim_vec<T, 3, packed> {
  T x, y, z;
  sim_vec() = default;
  template <SIM_IF_SCALAR(A)> sim_vec(A a) : x(T(a)), y(T(a)), z(T(a)) {}
  template <class A, class B, class C> sim_vec(A a, B b, C c) : x(T(a)), y(T(b)), z(T(c)) {}
  template <class O, bool p> sim_vec(const sim_vec<O, 3, p> &o) : x(T(o.x)), y(T(o.y)), z(T(o.z)) {}
  template <class F> sim_vec each(F f) const { return {f(x), f(y), f(z)}; }
  template <class V, class F> sim_vec both(const V &o, F f) const { return {f(x, T(o.x)), f(y, T(o.y)), f(z, T(o.z))}; }
  SIM_COMMON
};
template <class T, bool packed> struct SIM_ALIGN(4) sim_vec<T, 4, packed> {
  union {
    struct {
      T x, y, z, w;
    };
    struct {
      sim_vec<T, 2, true> xy, zw;
    };
  };
  sim_vec() = default;
  template <SIM_IF_SCALAR(A)> sim_vec(A a) : x(T(a)), y(T(a)), z(T(a)), w(T(a)) {}
  template <class A, class B, class C, class D> sim_vec(A a, B b, C c, D d) : x(T(a)), y(T(b)), z(T(c)), w(T(d)) {}
  template <class O, bool p> sim_vec(const sim_vec<O, 4, p> &o) : x(T(o.x)), y(T(o.y)), z(T(o.z)), w(T(o.w)) {}
  template <class F> sim_vec each(F f) const { return {f(x), f(y), f(z), f(w)}; }
  template <class V, class F> sim_vec both(const V &o, F f) const {
    return {f(x, T(o.x)), f(y, T(o.y)), f(z, T(o.z)), f(w, T(o.w))};
  }
  SIM_COMMON
};
// A scalar before a vector: it is taken for each component.
#define SIM_SCALAR_FIRST(op)                                                                                    \
  template <SIM_IF_SCALAR(A), class T, int N, bool p> sim_vec<T, N, p> operator op(A a, const sim_vec<T, N, p> &b) { \
    return b.each([&](T c) { return T(T(a) op c); });                                                           \
  }
SIM_SCALAR_FIRST(+) SIM_SCALAR_FIRST(-) SIM_SCALAR_FIRST(*) SIM_SCALAR_FIRST(/) SIM_SCALAR_FIRST(%)
#define SIM_NAMES(T)                                                                                            \
  typedef sim_vec<T, 2> T##2;                                                                                   \
  typedef sim_vec<T, 3> T##3;                                                                                   \
  typedef sim_vec<T, 4> T##4;                                                                                   \
  typedef sim_vec<T, 2, true> packed_##T##2;                                                                    \
  typedef sim_vec<T, 3, true> packed_##T##3;                                                                    \
  typedef sim_vec<T, 4, true> packed_##T##4;
SIM_NAMES(char) SIM_NAMES(uchar) SIM_NAMES(short) SIM_NAMES(ushort) SIM_NAMES(int) SIM_NAMES(uint) SIM_NAMES(long)
SIM_NAMES(ulong) SIM_NAMES(half) SIM_NAMES(bfloat) SIM_NAMES(float) SIM_NAMES(bool)

namespace metal {
template <class T> constexpr bool sim_is_whole = std::is_integral_v<T>;
// Functions of float; half and bfloat are computed as float.
#define SIM_FUNCTION(name, value)                                                                               \
  template <class T> auto name(T v) {                                                                           \
    const float f = float(v);                                                                                   \
    return value;                                                                                               \
  }
// Of turns by a half: exact where the result is a whole number. A C library of Linux has them since 2024 only.
inline float sim_sinpi(float f) {
  const double turn = std::remainder(double(f), 2.0);
  return std::fabs(turn) == 1 ? 0.0f : float(std::sin(turn * 3.14159265358979323846));
}
inline float sim_cospi(float f) {
  const double turn = std::fabs(std::remainder(double(f), 2.0));
  return turn == 0.5 ? 0.0f : float(std::cos(turn * 3.14159265358979323846));
}
// C++ has templates of two types under these names as well: what is not a template comes before them.
#define SIM_OF_TWO(name, T, S)                                                                                  \
  inline float name(T a, S b) { return std::name(float(a), float(b)); }
#define SIM_FUNCTION_OF_TWO(name)                                                                               \
  template <class T, class S> float name(T a, S b) { return std::name(float(a), float(b)); }                    \
  SIM_OF_TWO(name, float, int) SIM_OF_TWO(name, int, float) SIM_OF_TWO(name, float, uint)                       \
  SIM_OF_TWO(name, uint, float) SIM_OF_TWO(name, float, long) SIM_OF_TWO(name, long, float)                     \
  SIM_OF_TWO(name, float, half) SIM_OF_TWO(name, half, float) SIM_OF_TWO(name, half, half) SIM_OF_TWO(name, half, int)
#define SIM_FUNCTIONS                                                                                           \
  SIM_FUNCTION(exp, std::exp(f)) SIM_FUNCTION(exp2, std::exp2(f)) SIM_FUNCTION(log, std::log(f))                \
  SIM_FUNCTION(log2, std::log2(f)) SIM_FUNCTION(log10, std::log10(f)) SIM_FUNCTION(sqrt, std::sqrt(f))          \
  SIM_FUNCTION(rsqrt, 1.0f / std::sqrt(f)) SIM_FUNCTION(sin, std::sin(f)) SIM_FUNCTION(cos, std::cos(f))        \
  SIM_FUNCTION(tan, std::tan(f)) SIM_FUNCTION(asin, std::asin(f)) SIM_FUNCTION(acos, std::acos(f))              \
  SIM_FUNCTION(atan, std::atan(f)) SIM_FUNCTION(sinh, std::sinh(f)) SIM_FUNCTION(cosh, std::cosh(f))            \
  SIM_FUNCTION(tanh, std::tanh(f)) SIM_FUNCTION(floor, std::floor(f)) SIM_FUNCTION(ceil, std::ceil(f))          \
  SIM_FUNCTION(trunc, std::trunc(f)) SIM_FUNCTION(round, std::round(f)) SIM_FUNCTION(rint, std::rint(f))        \
  SIM_FUNCTION(fract, std::fmin(f - std::floor(f), 0x1.fffffep-1f)) SIM_FUNCTION(fabs, std::fabs(f)) SIM_FUNCTION(isnan, std::isnan(f)) SIM_FUNCTION(isinf, std::isinf(f))        \
  SIM_FUNCTION_OF_TWO(pow) SIM_FUNCTION_OF_TWO(fmod) SIM_FUNCTION_OF_TWO(atan2) SIM_FUNCTION_OF_TWO(copysign)     \
  SIM_FUNCTION_OF_TWO(fmin) SIM_FUNCTION_OF_TWO(fmax) SIM_FUNCTION_OF_TWO(fdim)                                  \
  SIM_FUNCTION(sinpi, sim_sinpi(f)) SIM_FUNCTION(cospi, sim_cospi(f)) SIM_FUNCTION(tanpi, sim_sinpi(f) / sim_cospi(f)) \
  SIM_FUNCTION(asinh, std::asinh(f)) SIM_FUNCTION(acosh, std::acosh(f)) SIM_FUNCTION(atanh, std::atanh(f))       \
  SIM_FUNCTION(exp10, std::pow(10.0f, f))
SIM_FUNCTIONS
// A step of the type itself, not of float.
template <class T> T nextafter(T a, T b) { return std::nextafter(a, b); }
template <class T> T sim_nextafter(T a, T b) {
  if (std::isnan(float(a)) || std::isnan(float(b))) return T(NAN);
  if (a == b) return b;
  ushort bits;
  std::memcpy(&bits, &a, 2);
  if (float(a) == 0) bits = float(b) < 0 ? 0x8001 : 1;
  else bits += (float(a) < float(b)) == (float(a) > 0) ? 1 : -1;
  std::memcpy(&a, &bits, 2);
  return a;
}
inline half nextafter(half a, half b) { return sim_nextafter(a, b); }
inline bfloat nextafter(bfloat a, bfloat b) { return sim_nextafter(a, b); }
namespace precise {
SIM_FUNCTIONS
}
namespace fast {
SIM_FUNCTIONS
}
template <class T> T abs(T v) { return v < T(0) ? T(-v) : v; }
template <class T> T max(T a, T b) { return a < b ? b : a; }
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T clamp(T v, T least, T most) { return min(max(v, least), most); }
template <class T, int N, bool p> T dot(const sim_vec<T, N, p> &a, const sim_vec<T, N, p> &b) {
  T sum = T(0);
  for (int i = 0; i < N; i++) sum = T(sum + a[i] * b[i]);
  return sum;
}
inline float3 cross(float3 a, float3 b) {
  return float3{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
inline half3 cross(half3 a, half3 b) {
  return half3{half(a[1] * b[2] - a[2] * b[1]), half(a[2] * b[0] - a[0] * b[2]), half(a[0] * b[1] - a[1] * b[0])};
}
template <class T, int N> struct array {
  T elements[N];
  T &operator[](unsigned i) { return elements[i]; }
  const T &operator[](unsigned i) const { return elements[i]; }
};
template <class T, class S> T as_type(S v) {
  static_assert(sizeof(T) == sizeof(S));
  T out;
  std::memcpy(&out, &v, sizeof(T));
  return out;
}
// Relaxed, as all of PyTorch's are.
template <class T> struct sim_atomic { T value; };
template <class T> using atomic = sim_atomic<T>;
typedef sim_atomic<int> atomic_int;
typedef sim_atomic<uint> atomic_uint;
enum memory_order { memory_order_relaxed };
template <class T> T atomic_load_explicit(const sim_atomic<T> *at, memory_order) {
  return __atomic_load_n(&at->value, __ATOMIC_RELAXED);
}
template <class T> void atomic_store_explicit(sim_atomic<T> *at, T value, memory_order) {
  __atomic_store_n(&at->value, value, __ATOMIC_RELAXED);
}
template <class T> T atomic_fetch_add_explicit(sim_atomic<T> *at, T value, memory_order) {
  if constexpr (std::is_integral_v<T>) {
    return __atomic_fetch_add(&at->value, value, __ATOMIC_RELAXED);
  } else {
    T old, sum;
    __atomic_load(&at->value, &old, __ATOMIC_RELAXED);
    do sum = old + value;
    while (!__atomic_compare_exchange(&at->value, &old, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
  }
}
template <class T>
bool atomic_compare_exchange_weak_explicit(sim_atomic<T> *at, T *expected, T wanted, memory_order, memory_order) {
  return __atomic_compare_exchange_n(&at->value, expected, wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
} // namespace metal
using namespace metal;

// What the wrappers use: an id as the type that the kernel names, and how many bytes a reference needs (-1: a pointer).
template <class T> T sim_id(const unsigned *ids) {
  if constexpr (std::is_arithmetic_v<T>) {
    return T(ids[0]);
  } else {
    T out;
    for (unsigned i = 0; i < sizeof(T) / sizeof(out.x) && i < 3; i++) out[i] = ids[i];
    return out;
  }
}
// How many bytes a reference refers to; of a pointer to a structure, how many one has, as a negative number; else -1.
template <class T> constexpr long sim_size() {
  using Pointed = std::remove_pointer_t<T>;
  if constexpr (std::is_reference_v<T>) return (long)sizeof(std::remove_reference_t<T>);
  else if constexpr (std::is_pointer_v<T> && std::is_class_v<Pointed>) return -(long)sizeof(Pointed);
  else return -1;
}
// The ids of thread k of a row, of whose first thread they are given (kernels/machine/c/runtime.h).
struct sim_ids {
  unsigned words[32];
  sim_ids of(unsigned k) const {
    sim_ids out = *this;
    out.words[0] += k, out.words[6] += k, out.words[20] += k;
    out.words[18] = out.words[20] % 32, out.words[19] = out.words[20] / 32;
    return out;
  }
};
// A kernel's function for the threads of a row. What they have in common is copied: no write of theirs reaches it.
#define SIM_ROW(name, taken, ...)                                                                               \
  static void sim_row_##name(void **sim_slots, const unsigned *sim_first, unsigned sim_count) {                 \
    void *slots[(taken) + 1];                                                                                   \
    sim_ids sim_row;                                                                                            \
    std::memcpy(slots, sim_slots, sizeof(void *) * (taken));                                                    \
    std::memcpy(&sim_row, sim_first, sizeof sim_row);                                                           \
    for (unsigned sim_k = 0; sim_k < sim_count; sim_k++) {                                                      \
      const sim_ids sim_own = sim_row.of(sim_k);                                                                \
      const unsigned *ids = sim_own.words;                                                                      \
      __VA_ARGS__                                                                                               \
    }                                                                                                           \
  }
struct sim_exported {
  const char *name;
  void *entry, *row;
  int argument_count;
  struct {
    int index, slot;
    long size;
  } arguments[31];
};
struct sim_constant {
  long index, size;
  void *at;
};
