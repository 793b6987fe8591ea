/* What RNN.cpp and Convolution.cpp see of oneDNN's C++ wrapper through ATen/native/mkldnn/Utils.h: names, and two questions. */
#pragma once
namespace ideep {
class attr_t;
enum class algorithm;
/* oneDNN computes bfloat16 from AVX-512 with BW and DQ on, float16 only with AVX512-FP16. */
inline bool has_bf16_type_support() {
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
inline bool has_fp16_type_support() { return __builtin_cpu_supports("avx512fp16"); }
} // namespace ideep
