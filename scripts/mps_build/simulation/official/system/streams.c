/* stdio. A macOS program looks into FILE itself (putc counts a number down), so it gets streams of its own. */
#define _GNU_SOURCE
#include "system.h"
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <wchar.h>

/* The first words are what putc and getc of macOS' headers use: with nothing left to read or write they call us. */
struct darwin_file { unsigned char *at; int readable, writable; short flags, descriptor; uint64_t buffer[2]; int line; uint8_t rest[116]; FILE *real; };

static struct darwin_file standard[3];
struct darwin_file *darwin___stdinp = &standard[0], *darwin___stdoutp = &standard[1], *darwin___stderrp = &standard[2];

void prepare_streams(void) {
    standard[0].real = stdin;
    standard[1].real = stdout;
    standard[2].real = stderr;
}

FILE *linux_file(void *file) { return file ? ((struct darwin_file *)file)->real : NULL; }

static void *wrapped(FILE *real) {
    struct darwin_file *file = real ? calloc(1, sizeof *file) : NULL;
    if (real && !file) fclose(real);
    if (file) file->real = real;
    return file;
}

static int released(struct darwin_file *file, int result) {
    if (file < standard || file > standard + 2) free(file);
    return result;
}

void *darwin_fopen(const char *path, const char *mode) { return wrapped(fopen(path, mode)); }
void *darwin_fdopen(int descriptor, const char *mode) { return wrapped(fdopen(descriptor, mode)); }
void *darwin_popen(const char *command, const char *mode) { return wrapped(popen(command, mode)); }
void *darwin_tmpfile(void) { return wrapped(tmpfile()); }
int darwin_fclose(void *file) { return released(file, fclose(linux_file(file))); }
int darwin_pclose(void *file) { return released(file, pclose(linux_file(file))); }

void *darwin_freopen(const char *path, const char *mode, struct darwin_file *file) {
    FILE *real = freopen(path, mode, file->real);
    if (!real) return NULL;
    file->real = real;
    return file;
}

int darwin_fflush(void *file) { return fflush(linux_file(file)); }
int darwin_fputc(int byte, void *file) { return fputc(byte, linux_file(file)); }
int darwin_fputs(const char *text, void *file) { return fputs(text, linux_file(file)); }
int darwin_getc(void *file) { return getc(linux_file(file)); }
int darwin_ungetc(int byte, void *file) { return ungetc(byte, linux_file(file)); }
char *darwin_fgets(char *buffer, int size, void *file) { return fgets(buffer, size, linux_file(file)); }
size_t darwin_fread(void *to, size_t size, size_t count, void *file) { return fread(to, size, count, linux_file(file)); }
size_t darwin_fwrite(const void *from, size_t size, size_t count, void *file) { return fwrite(from, size, count, linux_file(file)); }
int darwin_fseek(void *file, long offset, int whence) { return fseek(linux_file(file), offset, whence); }
int darwin_fseeko(void *file, off_t offset, int whence) { return fseeko(linux_file(file), offset, whence); }
long darwin_ftell(void *file) { return ftell(linux_file(file)); }
off_t darwin_ftello(void *file) { return ftello(linux_file(file)); }
void darwin_rewind(void *file) { rewind(linux_file(file)); }
int darwin_fileno(void *file) { return fileno(linux_file(file)); }
int darwin_feof(void *file) { return feof(linux_file(file)); }
int darwin_ferror(void *file) { return ferror(linux_file(file)); }
void darwin_clearerr(void *file) { clearerr(linux_file(file)); }
void darwin_flockfile(void *file) { flockfile(linux_file(file)); }
void darwin_funlockfile(void *file) { funlockfile(linux_file(file)); }
ssize_t darwin_getline(char **line, size_t *size, void *file) { return getline(line, size, linux_file(file)); }
void darwin_setbuf(void *file, char *buffer) { setbuf(linux_file(file), buffer); }
wint_t darwin_fputwc(wchar_t character, void *file) { return fputwc(character, linux_file(file)); }
wint_t darwin_getwc(void *file) { return getwc(linux_file(file)); }
wint_t darwin_ungetwc(wint_t character, void *file) { return ungetwc(character, linux_file(file)); }
int darwin_setvbuf(void *file, char *buffer, int mode, size_t size) { return setvbuf(linux_file(file), buffer, mode, size); }

int darwin___swbuf(int byte, struct darwin_file *file) {
    file->writable = 0;
    return fputc((unsigned char)byte, file->real);
}

int darwin___srget(struct darwin_file *file) {
    file->readable = 0;
    return getc(file->real);
}

/* --- formats: `L` means nothing where long double is double --- */

enum { LONGEST = 4096 };

/* A format without the `L`s of numbers; of what is scanned they become `l`. */
static const char *own_format(const char *format, char *own, bool is_scanned) {
    if (!strchr(format, 'L') || strlen(format) >= LONGEST) return format;
    char *to = own;
    while (*format) {
        *to++ = *format;
        if (*format++ != '%') continue;
        if (*format == '%') {
            *to++ = *format++;
            continue;
        }
        while (*format && strchr("0123456789+-# '.*$hljztqL", *format)) {
            if (*format != 'L') *to++ = *format;
            else if (is_scanned) *to++ = 'l';
            format++;
        }
    }
    *to = 0;
    return own;
}

#define FORMATTED(rest, is_scanned)                      \
    char own[LONGEST];                                   \
    const char *plain = own_format(format, own, is_scanned); \
    ARGUMENTS(list, rest)

int darwin_printf(const char *format, void *rest) { FORMATTED(rest, false); return vprintf(plain, list); }
int darwin_fprintf(void *file, const char *format, void *rest) { FORMATTED(rest, false); return vfprintf(linux_file(file), plain, list); }
int darwin_dprintf(int file, const char *format, void *rest) { FORMATTED(rest, false); return vdprintf(file, plain, list); }
int darwin_sprintf(char *to, const char *format, void *rest) { FORMATTED(rest, false); return vsprintf(to, plain, list); }
int darwin_snprintf(char *to, size_t size, const char *format, void *rest) { FORMATTED(rest, false); return vsnprintf(to, size, plain, list); }
int darwin_asprintf(char **to, const char *format, void *rest) { FORMATTED(rest, false); return vasprintf(to, plain, list); }
int darwin_sscanf(const char *from, const char *format, void *rest) { FORMATTED(rest, true); return vsscanf(from, plain, list); }
int darwin_fscanf(void *file, const char *format, void *rest) { FORMATTED(rest, true); return vfscanf(linux_file(file), plain, list); }
int darwin_swprintf(wchar_t *to, size_t size, const wchar_t *format, void *rest) { ARGUMENTS(list, rest); return vswprintf(to, size, format, list); }
int darwin___sprintf_chk(char *to, int flag, size_t room, const char *format, void *rest) {
    (void)flag;
    FORMATTED(rest, false);
    int size = vsnprintf(to, room, plain, list);
    if (size >= 0 && (size_t)size >= room) abort();
    return size;
}
int darwin___snprintf_chk(char *to, size_t size, int flag, size_t room, const char *format, void *rest) {
    (void)flag;
    if (size > room) abort();
    FORMATTED(rest, false);
    return vsnprintf(to, size, plain, list);
}
int darwin___vsnprintf_chk(char *to, size_t size, int flag, size_t room, const char *format, void *rest) { return darwin___snprintf_chk(to, size, flag, room, format, rest); }
/* The locale of each of these is C's. */
int darwin_snprintf_l(char *to, size_t size, void *locale, const char *format, void *rest) { (void)locale; return darwin_snprintf(to, size, format, rest); }
int darwin_asprintf_l(char **to, void *locale, const char *format, void *rest) { (void)locale; return darwin_asprintf(to, format, rest); }
int darwin_sscanf_l(const char *from, void *locale, const char *format, void *rest) { (void)locale; return darwin_sscanf(from, format, rest); }

/* A va_list of macOS is the place of the arguments. */
int darwin_vprintf(const char *format, void *rest) { return darwin_printf(format, rest); }
int darwin_vfprintf(void *file, const char *format, void *rest) { return darwin_fprintf(file, format, rest); }
int darwin_vsnprintf(char *to, size_t size, const char *format, void *rest) { return darwin_snprintf(to, size, format, rest); }
int darwin_vsprintf(char *to, const char *format, void *rest) { return darwin_sprintf(to, format, rest); }
int darwin_vasprintf(char **to, const char *format, void *rest) { return darwin_asprintf(to, format, rest); }
int darwin_vsscanf(const char *from, const char *format, void *rest) { return darwin_sscanf(from, format, rest); }
int darwin_vfscanf(void *file, const char *format, void *rest) { return darwin_fscanf(file, format, rest); }
