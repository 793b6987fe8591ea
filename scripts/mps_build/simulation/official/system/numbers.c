/* Mathematics under names or with results of macOS. */
#define _GNU_SOURCE
#include "system.h"
#include <complex.h>
#include <math.h>

struct two_doubles { double sine, cosine; };
struct two_floats { float sine, cosine; };

struct two_doubles darwin___sincos_stret(double x) { struct two_doubles both; sincos(x, &both.sine, &both.cosine); return both; }
struct two_floats darwin___sincosf_stret(float x) { struct two_floats both; sincosf(x, &both.sine, &both.cosine); return both; }
double darwin___exp10(double x) { return exp10(x); }
float darwin___exp10f(float x) { return exp10f(x); }

/* long double is double */
double darwin_nexttoward(double x, double y) { return nextafter(x, y); }
float darwin_nexttowardf(float x, double y) { return (double)x == y ? (float)y : nextafterf(x, y > (double)x ? INFINITY : -INFINITY); }

/* the compiler's own */
extern unsigned __int128 __udivti3(unsigned __int128, unsigned __int128);
extern unsigned __int128 __umodti3(unsigned __int128, unsigned __int128);
extern __int128 __divti3(__int128, __int128);
extern __int128 __modti3(__int128, __int128);
extern double complex __muldc3(double, double, double, double);
extern float complex __mulsc3(float, float, float, float);
extern double complex __divdc3(double, double, double, double);
extern float complex __divsc3(float, float, float, float);
unsigned __int128 darwin___udivti3(unsigned __int128 a, unsigned __int128 b) { return __udivti3(a, b); }
unsigned __int128 darwin___umodti3(unsigned __int128 a, unsigned __int128 b) { return __umodti3(a, b); }
__int128 darwin___divti3(__int128 a, __int128 b) { return __divti3(a, b); }
__int128 darwin___modti3(__int128 a, __int128 b) { return __modti3(a, b); }
double complex darwin___muldc3(double a, double b, double c, double d) { return __muldc3(a, b, c, d); }
float complex darwin___mulsc3(float a, float b, float c, float d) { return __mulsc3(a, b, c, d); }
double complex darwin___divdc3(double a, double b, double c, double d) { return __divdc3(a, b, c, d); }
float complex darwin___divsc3(float a, float b, float c, float d) { return __divsc3(a, b, c, d); }
