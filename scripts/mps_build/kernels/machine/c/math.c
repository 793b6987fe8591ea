/* The elementary functions, computed in double and rounded once, and the conversions that a compiler calls.
   A GPU's own functions are up to a few units in the last place worse: what is judged here is a kernel's formula. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define ONE(name) float rt_##name(float x) { return (float)name((double)x); }
ONE(exp) ONE(exp2) ONE(log) ONE(log2) ONE(log10) ONE(sin) ONE(cos) ONE(tan) ONE(asin) ONE(acos) ONE(atan)
ONE(sinh) ONE(cosh) ONE(tanh) ONE(asinh) ONE(acosh) ONE(atanh)
float rt_exp10(float x) { return (float)pow(10.0, (double)x); }
float rt_pow(float x, float y) { return (float)pow((double)x, (double)y); }
float rt_powr(float x, float y) { return x < 0 ? NAN : (float)pow((double)x, (double)y); }
float rt_atan2(float y, float x) { return (float)atan2((double)y, (double)x); }
float rt_fmod(float x, float y) { return (float)fmod((double)x, (double)y); }
float rt_nextafter(float x, float y) { return nextafterf(x, y); }
float rt_rsqrt(float x) { return (float)(1.0 / sqrt((double)x)); }

/* Exact at the integers and the halves, where reflection formulas need it. */
static double turn(double x, int is_cosine) {
    const double pi = 3.14159265358979323846;
    if (!isfinite(x)) return NAN;
    double r = fmod(fabs(x), 2.0);
    if (is_cosine) r = fmod(r + 0.5, 2.0);
    double sign = 1;
    if (r >= 1) r -= 1, sign = -1;
    if (r > 0.5) r = 1 - r;
    double value = sign * sin(pi * r);
    return !is_cosine && x < 0 ? -value : value;
}
float rt_sinpi(float x) { return x == 0 ? x : (float)turn((double)x, 0); }
float rt_cospi(float x) { return (float)turn((double)x, 1); }
float rt_tanpi(float x) { return (float)(turn((double)x, 0) / turn((double)x, 1)); }

uint16_t rt_double_to_half(double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    int exponent = (int)(bits >> 52 & 2047) - 1023;
    if (value != value) return sign | 0x7E00;
    if (exponent < -25) return sign;
    if (exponent > 15) return sign | 0x7C00;
    uint64_t fraction = (bits & 0xFFFFFFFFFFFFFu) | 1ull << 52;
    int drop = exponent < -14 ? 42 + (-14 - exponent) : 42;
    uint64_t kept = fraction >> drop, rest = fraction & ((1ull << drop) - 1), half = 1ull << (drop - 1);
    if (rest > half || (rest == half && kept & 1)) kept++;
    if (exponent < -14) return sign | (uint16_t)kept;
    return sign | (uint16_t)(((uint64_t)(exponent + 14) << 10) + kept);
}

uint16_t rt_double_to_bfloat(double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    int exponent = (int)(bits >> 52 & 2047) - 1023;
    if (value != value) return sign | 0x7FC0;
    if (exponent < -134) return sign;
    if (exponent > 127) return sign | 0x7F80;
    uint64_t fraction = (bits & 0xFFFFFFFFFFFFFu) | 1ull << 52;
    int drop = exponent < -126 ? 45 + (-126 - exponent) : 45;
    uint64_t kept = fraction >> drop, rest = fraction & ((1ull << drop) - 1), half = 1ull << (drop - 1);
    if (rest > half || (rest == half && kept & 1)) kept++;
    if (exponent < -126) return sign | (uint16_t)kept;
    return sign | (uint16_t)(((uint64_t)(exponent + 126) << 7) + kept);
}

/* A 16-bit value travels in the low bits of a vector register, as a float does. */
static float carry(uint16_t bits) {
    uint32_t wide = bits;
    float f;
    memcpy(&f, &wide, 4);
    return f;
}
static uint16_t carried(float f) {
    uint32_t wide;
    memcpy(&wide, &f, 4);
    return (uint16_t)wide;
}
float rt_truncsfhf2(float x) { return carry(rt_double_to_half(x)); }
float rt_truncdfhf2(double x) { return carry(rt_double_to_half(x)); }
float rt_truncsfbf2(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (x != x) return carry((uint16_t)(bits >> 16 | 0x40));
    return carry((uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16));
}
float rt_truncdfbf2(double x) { return carry(rt_double_to_bfloat(x)); }
float rt_extendhfsf2(float x) {
    uint16_t h = carried(x);
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023, bits;
    float f;
    if (exponent == 31) bits = sign | 0x7F800000 | fraction << 13;
    else if (exponent) bits = sign | (exponent + 112) << 23 | fraction << 13;
    else {
        f = (float)fraction * 0x1p-24f;
        memcpy(&bits, &f, 4);
        bits |= sign;
    }
    memcpy(&f, &bits, 4);
    return f;
}
