/* Characters, locales, texts. The one locale is C's: what a process of macOS starts with. */
#define _GNU_SOURCE
#include "system.h"
#include <ctype.h>
#include <locale.h>
#include <stdlib.h>
#include <time.h>
#include <wchar.h>
#include <wctype.h>

/* --- the table that isalpha and its like of macOS' headers look into --- */

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

/* isalpha and its like follow the process' locale, which is another's: only ASCII is asked. */
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
