#pragma once
/* A C boundary on purpose: a C++ exception or type never crosses from one image to the other,
   so it does not matter whether libc++ is the system's or linked in (as zig does). */
#include <stddef.h>
#include <stdint.h>

#define SAMPLE_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/** The number of operators. */
SAMPLE_API size_t sample_operator_count(void);
/** The name of an operator, NULL beyond the last. */
SAMPLE_API const char* sample_operator_name(size_t index);
/** Applies an operator in place; 0 if it is done, -1 if there is none of that name. */
SAMPLE_API int sample_apply(const char* name, double* values, size_t count);
/** A fingerprint of the operator table. */
SAMPLE_API uint64_t sample_fingerprint(void);
/** 1 if this library was built with MPS, else 0. */
SAMPLE_API int sample_mps_built(void);
/** Multiplies on the GPU, in place; NULL if it is done, else what went wrong (valid until the next call). */
SAMPLE_API const char* sample_scale_on_gpu(float* values, size_t count, float factor);

#ifdef __cplusplus
}
#endif
