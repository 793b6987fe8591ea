/* C's own library where macOS has other values: characters and locales, error numbers, mathematics. */
#define _GNU_SOURCE
#include "system.h"
#include <complex.h>
#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <netdb.h>
#include <stdlib.h>
#include <time.h>
#include <wchar.h>
#include <wctype.h>

/* --- characters: the one locale is C's, what a process of macOS starts with; the table of isalpha and its like --- */

enum { ALPHA = 0x100, CONTROL = 0x200, DIGIT = 0x400, GRAPH = 0x800, LOWER = 0x1000, PUNCTUATION = 0x2000, SPACE = 0x4000,
       UPPER = 0x8000, HEXADECIMAL = 0x10000, BLANK = 0x20000, PRINTED = 0x40000 };
struct runes { char magic[8], encoding[32]; void *get, *put; int32_t invalid; uint32_t types[256]; int32_t lower[256], upper[256]; uint8_t rest[256]; };
struct runes darwin__DefaultRuneLocale;

static uint32_t type_of(int c) {
    uint32_t type = 0;
    if (isalpha(c)) type |= ALPHA;
    if (iscntrl(c)) type |= CONTROL;
    if (isdigit(c)) type |= DIGIT | (uint32_t)(c - '0');
    if (isgraph(c)) type |= GRAPH;
    if (islower(c)) type |= LOWER;
    if (ispunct(c)) type |= PUNCTUATION;
    if (isspace(c)) type |= SPACE;
    if (isupper(c)) type |= UPPER;
    if (isxdigit(c)) type |= HEXADECIMAL | (isdigit(c) ? 0 : (uint32_t)(tolower(c) - 'a' + 10));
    if (c == ' ' || c == '\t') type |= BLANK;
    if (isprint(c)) type |= PRINTED;
    return type;
}

/* isalpha and its like follow the process' locale, which is another's: only ASCII is looked at. */
static int lower_of(int c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }
static int upper_of(int c) { return c >= 'a' && c <= 'z' ? c - 32 : c; }

void prepare_characters(void) {
    struct runes *runes = &darwin__DefaultRuneLocale;
    memcpy(runes->magic, "RuneMagA", 8);
    memcpy(runes->encoding, "NONE", 5);
    for (int c = 0; c < 256; c++) {
        runes->types[c] = c < 128 ? type_of(c) : 0;
        runes->lower[c] = lower_of(c);
        runes->upper[c] = upper_of(c);
    }
}

int darwin___maskrune(int c, unsigned long mask) { return c >= 0 && c < 256 ? (int)(darwin__DefaultRuneLocale.types[c] & mask) : 0; }
int darwin___maskrune_l(int c, unsigned long mask, void *locale) { (void)locale; return darwin___maskrune(c, mask); }
int darwin___tolower(int c) { return lower_of(c); }
int darwin___toupper(int c) { return upper_of(c); }
int darwin____tolower_l(int c, void *locale) { (void)locale; return lower_of(c); }
int darwin____toupper_l(int c, void *locale) { (void)locale; return upper_of(c); }
int darwin____mb_cur_max(void) { return 1; }
int darwin____mb_cur_max_l(void *locale) { (void)locale; return 1; }

/* --- locales --- */

static locale_t c_locale(void) {
    static locale_t made;
    if (!made) made = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return made;
}

void *darwin_newlocale(int mask, const char *name, void *base) {
    (void)mask, (void)base;
    if (name && *name && strcmp(name, "C") && strcmp(name, "POSIX")) {
        errno = ENOENT;
        return NULL;
    }
    return c_locale();
}

void darwin_freelocale(void *locale) { (void)locale; }
void *darwin_uselocale(void *locale) { (void)locale; return (void *)-1; }                 /* the global one */
char *darwin_setlocale(int category, const char *name) {
    (void)category;
    return !name || !*name || !strcmp(name, "C") || !strcmp(name, "POSIX") ? "C" : NULL;
}

/* lconv of macOS has int_p_cs_precedes and its like in another order: for C all of them are CHAR_MAX. */
struct lconv *darwin_localeconv(void) {
    static char empty[1], point[] = ".";
    static struct lconv c;
    memset(&c, 127, sizeof c);
    c.decimal_point = point;
    c.thousands_sep = c.grouping = c.int_curr_symbol = c.currency_symbol = c.mon_decimal_point = empty;
    c.mon_thousands_sep = c.mon_grouping = c.positive_sign = c.negative_sign = empty;
    return &c;
}
struct lconv *darwin_localeconv_l(void *locale) { (void)locale; return darwin_localeconv(); }

/* Apple's mbstate_t is larger than glibc's: it holds it. C's encoding has one byte for each character. */
int darwin_btowc_l(int c, void *locale) { (void)locale; return c == EOF ? -1 : c & 0xff; }
int darwin_wctob_l(int c, void *locale) { (void)locale; return c >= 0 && c < 256 ? c : EOF; }
size_t darwin_mbrtowc_l(wchar_t *to, const char *from, size_t size, void *state, void *locale) {
    (void)state, (void)locale;
    if (!from) return 0;
    if (!size) return (size_t)-2;
    if (to) *to = (unsigned char)*from;
    return *from != 0;
}
size_t darwin_wcrtomb_l(char *to, wchar_t character, void *state, void *locale) {
    (void)state, (void)locale;
    if (!to) return 1;
    if ((uint32_t)character > 255) return errno = EILSEQ, (size_t)-1;
    *to = (char)character;
    return 1;
}
int darwin_mbtowc_l(wchar_t *to, const char *from, size_t size, void *locale) {
    return from ? (size ? (int)darwin_mbrtowc_l(to, from, size, NULL, locale) : -1) : 0;
}
size_t darwin_mbrlen_l(const char *from, size_t size, void *state, void *locale) { return darwin_mbrtowc_l(NULL, from, size, state, locale); }
size_t darwin_mbsnrtowcs_l(wchar_t *to, const char **from, size_t bytes, size_t room, void *state, void *locale) {
    (void)state, (void)locale;
    size_t done = 0;
    for (; done < bytes && (!to || done < room); done++) {
        if (to) to[done] = (unsigned char)(*from)[done];
        if ((*from)[done]) continue;
        if (to) *from = NULL;
        return done;
    }
    if (to) *from += done;
    return done;
}
size_t darwin_mbsrtowcs_l(wchar_t *to, const char **from, size_t room, void *state, void *locale) {
    return darwin_mbsnrtowcs_l(to, from, SIZE_MAX, room, state, locale);
}
size_t darwin_wcsnrtombs_l(char *to, const wchar_t **from, size_t count, size_t room, void *state, void *locale) {
    (void)state, (void)locale;
    size_t done = 0;
    for (; done < count && (!to || done < room); done++) {
        uint32_t character = (uint32_t)(*from)[done];
        if (character > 255) return errno = EILSEQ, (size_t)-1;
        if (to) to[done] = (char)character;
        if (character) continue;
        if (to) *from = NULL;
        return done;
    }
    if (to) *from += done;
    return done;
}
int darwin_strcoll_l(const char *a, const char *b, void *locale) { (void)locale; return strcmp(a, b); }
int darwin_wcscoll_l(const wchar_t *a, const wchar_t *b, void *locale) { (void)locale; return wcscmp(a, b); }
size_t darwin_strftime_l(char *to, size_t size, const char *format, const struct tm *time, void *locale) { (void)locale; return strftime_l(to, size, format, time, c_locale()); }
size_t darwin_strxfrm_l(char *to, const char *from, size_t size, void *locale) { (void)locale; return strxfrm_l(to, from, size, c_locale()); }
size_t darwin_wcsxfrm_l(wchar_t *to, const wchar_t *from, size_t size, void *locale) { (void)locale; return wcsxfrm_l(to, from, size, c_locale()); }

/* long double is double */
double darwin_strtold(const char *text, char **end) { return strtod(text, end); }
double darwin_strtod_l(const char *text, char **end, void *locale) { (void)locale; return strtod_l(text, end, c_locale()); }
double darwin_strtold_l(const char *text, char **end, void *locale) { return darwin_strtod_l(text, end, locale); }
float darwin_strtof_l(const char *text, char **end, void *locale) { (void)locale; return strtof_l(text, end, c_locale()); }
double darwin_wcstold(const wchar_t *text, wchar_t **end) { return wcstod(text, end); }

/* --- texts --- */

size_t darwin_strlcpy(char *to, const char *from, size_t size) {
    size_t length = strlen(from), copied = length < size ? length : size ? size - 1 : 0;
    if (size) memcpy(to, from, copied), to[copied] = 0;
    return length;
}

size_t darwin_strlcat(char *to, const char *from, size_t size) {
    size_t length = strnlen(to, size);
    return length == size ? size + strlen(from) : length + darwin_strlcpy(to + length, from, size - length);
}

/* The last argument is the room that the compiler knows of. */
size_t darwin___strlcpy_chk(char *to, const char *from, size_t size, size_t room) { return size > room ? abort(), 0 : darwin_strlcpy(to, from, size); }
size_t darwin___strlcat_chk(char *to, const char *from, size_t size, size_t room) { return size > room ? abort(), 0 : darwin_strlcat(to, from, size); }

void darwin_memset_pattern16(void *to, const void *pattern, size_t size) {
    for (size_t at = 0; at < size; at += 16) memcpy((char *)to + at, pattern, size - at < 16 ? size - at : 16);
}

void *darwin_catopen(const char *name, int flag) { (void)name, (void)flag; errno = ENOENT; return (void *)-1; }
char *darwin_catgets(void *catalogue, int set, int number, const char *text) { (void)catalogue, (void)set, (void)number; return (char *)text; }
int darwin_catclose(void *catalogue) { (void)catalogue; return 0; }

/* --- errno, by macOS' numbers --- */

/* Those from 1 to 34 are equal, but 11; {macOS, Linux}. */
static const short numbers[][2] = {
    {11, EDEADLK}, {35, EAGAIN}, {36, EINPROGRESS}, {37, EALREADY}, {38, ENOTSOCK}, {39, EDESTADDRREQ}, {40, EMSGSIZE},
    {41, EPROTOTYPE}, {42, ENOPROTOOPT}, {43, EPROTONOSUPPORT}, {44, ESOCKTNOSUPPORT}, {45, EOPNOTSUPP}, {46, EPFNOSUPPORT},
    {47, EAFNOSUPPORT}, {48, EADDRINUSE}, {49, EADDRNOTAVAIL}, {50, ENETDOWN}, {51, ENETUNREACH}, {52, ENETRESET},
    {53, ECONNABORTED}, {54, ECONNRESET}, {55, ENOBUFS}, {56, EISCONN}, {57, ENOTCONN}, {58, ESHUTDOWN}, {59, ETOOMANYREFS},
    {60, ETIMEDOUT}, {61, ECONNREFUSED}, {62, ELOOP}, {63, ENAMETOOLONG}, {64, EHOSTDOWN}, {65, EHOSTUNREACH},
    {66, ENOTEMPTY}, {68, EUSERS}, {69, EDQUOT}, {70, ESTALE}, {71, EREMOTE}, {77, ENOLCK}, {78, ENOSYS}, {84, EOVERFLOW},
    {89, ECANCELED}, {90, EIDRM}, {91, ENOMSG}, {92, EILSEQ}, {94, EBADMSG}, {95, EMULTIHOP}, {96, ENODATA}, {97, ENOLINK},
    {98, ENOSR}, {99, ENOSTR}, {100, EPROTO}, {101, ETIME}, {104, ENOTRECOVERABLE}, {105, EOWNERDEAD},
};
enum { COUNT = sizeof numbers / sizeof *numbers };

int darwin_error_number(int number) {
    for (int i = 0; i < COUNT; i++)
        if (numbers[i][1] == number) return numbers[i][0];
    return number <= 34 ? number : 22;
}

int linux_error_number(int number) {
    for (int i = 0; i < COUNT; i++)
        if (numbers[i][0] == number) return numbers[i][1];
    return number <= 34 ? number : number == 102 ? EOPNOTSUPP : EINVAL;
}

/* The images read and write errno in a place of their own. Whenever they ask where it is, what the C library set since
   is taken over; a mark in its own errno, which no call sets, tells that it set nothing. */
enum { UNTOUCHED = 0x6d7073 };
static __thread int own_errno;

int *darwin___error(void) {
    if (errno != UNTOUCHED) own_errno = darwin_error_number(errno);
    errno = UNTOUCHED;
    return &own_errno;
}

/* For what reads the C library's own: Python's errors, perror. */
void restore_errno(void) {
    if (errno == UNTOUCHED) errno = linux_error_number(own_errno);
}

char *darwin_strerror(int number) { return strerror(linux_error_number(number)); }

int darwin_strerror_r(int number, char *buffer, size_t size) {
    const char *text = strerror(linux_error_number(number));
    snprintf(buffer, size, "%s", text);
    return strlen(text) < size ? 0 : ERANGE;
}

void darwin_perror(const char *text) {
    restore_errno();
    perror(text);
}

/* getaddrinfo's: macOS' EAI_* are positive. */
static const short lookups[][2] = {{2, EAI_AGAIN}, {3, EAI_BADFLAGS}, {4, EAI_FAIL}, {5, EAI_FAMILY}, {6, EAI_MEMORY},
                                   {8, EAI_NONAME}, {9, EAI_SERVICE}, {10, EAI_SOCKTYPE}, {11, EAI_SYSTEM}, {14, EAI_OVERFLOW}};

int darwin_lookup_error(int number) {
    for (unsigned i = 0; i < sizeof lookups / sizeof *lookups; i++)
        if (lookups[i][1] == number) return lookups[i][0];
    return number ? 4 : 0;
}

const char *darwin_gai_strerror(int number) {
    for (unsigned i = 0; i < sizeof lookups / sizeof *lookups; i++)
        if (lookups[i][0] == number) return gai_strerror(lookups[i][1]);
    return "Unknown error";
}

/* --- mathematics under names or with results of macOS --- */

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
