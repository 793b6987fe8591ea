/* What clang calls by itself and libSystem lacks, for libraries that a whole rehearsal links (mps-build).
   zig's own runtime is one object with a memcpy and a cosine of its own, which would take libSystem's place. */
#pragma GCC visibility push(hidden)

typedef struct {
  unsigned platform, version;
} BuildVersion;

extern __attribute__((visibility("default"))) _Bool _availability_version_check(unsigned count, BuildVersion versions[]);

/* Behind @available. */
int __isPlatformVersionAtLeast(unsigned platform, unsigned major, unsigned minor, unsigned patch) {
  BuildVersion wanted = {platform, (major & 0xffff) << 16 | (minor & 0xff) << 8 | (patch & 0xff)};
  return _availability_version_check(1, &wanted);
}

/* Division of complex numbers, scaled by the divisor's exponent; not finite where C's annex G asks for it. */
#define DIVISION(name, real, logb, scalbn, fmax, fabs, copysign)                                        \
  real _Complex name(real a, real b, real c, real d) {                                                  \
    const real exponent = logb(fmax(fabs(c), fabs(d)));                                                 \
    int scale = 0;                                                                                      \
    if (__builtin_isfinite(exponent)) {                                                                 \
      scale = -(int)exponent;                                                                           \
      c = scalbn(c, scale);                                                                             \
      d = scalbn(d, scale);                                                                             \
    }                                                                                                   \
    const real norm = c * c + d * d;                                                                    \
    real x = scalbn((a * c + b * d) / norm, scale), y = scalbn((b * c - a * d) / norm, scale);          \
    if (__builtin_isnan(x) && __builtin_isnan(y)) {                                                     \
      const _Bool big = __builtin_isinf(a) || __builtin_isinf(b);                                       \
      const _Bool by_big = __builtin_isinf(c) || __builtin_isinf(d);                                    \
      if (norm == 0 && !(__builtin_isnan(a) && __builtin_isnan(b))) {                                   \
        x = copysign((real)__builtin_inf(), c) * a;                                                     \
        y = copysign((real)__builtin_inf(), c) * b;                                                     \
      } else if (big && __builtin_isfinite(c) && __builtin_isfinite(d)) {                               \
        a = copysign(__builtin_isinf(a) ? 1 : 0, a);                                                    \
        b = copysign(__builtin_isinf(b) ? 1 : 0, b);                                                    \
        x = (real)__builtin_inf() * (a * c + b * d);                                                    \
        y = (real)__builtin_inf() * (b * c - a * d);                                                    \
      } else if (by_big && __builtin_isfinite(a) && __builtin_isfinite(b)) {                            \
        c = copysign(__builtin_isinf(c) ? 1 : 0, c);                                                    \
        d = copysign(__builtin_isinf(d) ? 1 : 0, d);                                                    \
        x = 0 * (a * c + b * d);                                                                        \
        y = 0 * (b * c - a * d);                                                                        \
      }                                                                                                 \
    }                                                                                                   \
    return __builtin_complex(x, y);                                                                     \
  }

DIVISION(__divdc3, double, __builtin_logb, __builtin_scalbn, __builtin_fmax, __builtin_fabs, __builtin_copysign)
DIVISION(__divsc3, float, __builtin_logbf, __builtin_scalbnf, __builtin_fmaxf, __builtin_fabsf, __builtin_copysignf)
