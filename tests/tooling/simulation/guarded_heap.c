/* A heap for LD_PRELOAD that notices writes behind a block and writes after `free`: nothing that is freed is used again, so
   that whoever writes late is found when the process ends. Each find is a line on standard error, with who allocated. */
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);

enum { FRAMES = 6, SKIPPED = 3, BEHIND = 32, BEHIND_BYTE = 0xCA, FREED_BYTE = 0xDD, KEPT = 400000 };
static const uint64_t LIVE = 0x6c6976656c697665, FREED = 0x6672656566726565;
static const size_t KEPT_BYTES = (size_t)600 << 20;

struct block {
    uint64_t state;
    size_t size;
    void *raw;
    struct block *next;
    void *frames[FRAMES];
};
_Static_assert(sizeof(struct block) % 16 == 0, "a block's data is aligned to 16 bytes");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *first, *last;
static size_t count, bytes;
static __thread int is_inside; /* of backtrace, which allocates at first */

static unsigned char *data_of(struct block *block) { return (unsigned char *)(block + 1); }

static void report(const char *what, struct block *block, size_t at) {
    char text[160];
    is_inside = 1;
    const int size = snprintf(text, sizeof text, "guarded heap: %s, at byte %zu of %zu, allocated by\n", what, at, block->size);
    if (write(STDERR_FILENO, text, (size_t)size) > 0) backtrace_symbols_fd(block->frames, FRAMES, STDERR_FILENO);
    is_inside = 0;
}

static void check(struct block *block, size_t from, size_t to, int byte, const char *what) {
    for (size_t at = from; at < to; at++) {
        if (data_of(block)[at] == byte) continue;
        report(what, block, at);
        return;
    }
}

static void *made(size_t size, size_t align) {
    align = align < 16 ? 16 : align;
    char *raw = __libc_malloc(size + sizeof(struct block) + align + BEHIND);
    if (!raw) return errno = ENOMEM, NULL;
    const uintptr_t at = ((uintptr_t)raw + sizeof(struct block) + align - 1) / align * align;
    struct block *block = (struct block *)at - 1;
    *block = (struct block){.state = LIVE, .size = size, .raw = raw};
    if (!is_inside) {
        void *frames[FRAMES + SKIPPED] = {0};
        is_inside = 1;
        backtrace(frames, FRAMES + SKIPPED);
        is_inside = 0;
        memcpy(block->frames, frames + SKIPPED, sizeof block->frames);
    }
    memset(data_of(block) + size, BEHIND_BYTE, BEHIND);
    return data_of(block);
}

static void dropped(struct block *block) {
    check(block, 0, block->size, FREED_BYTE, "written after it was freed");
    check(block, block->size, block->size + BEHIND, BEHIND_BYTE, "written behind its end");
    __libc_free(block->raw);
}

void *malloc(size_t size) { return made(size, 16); }
void *memalign(size_t align, size_t size) { return made(size, align); }
void *aligned_alloc(size_t align, size_t size) { return made(size, align); }
int posix_memalign(void **out, size_t align, size_t size) { return (*out = made(size, align)) ? 0 : ENOMEM; }
size_t malloc_usable_size(void *data) { return data ? ((struct block *)data - 1)->size : 0; }
void *calloc(size_t number, size_t each) {
    size_t size;
    if (__builtin_mul_overflow(number, each, &size)) return errno = ENOMEM, NULL;
    void *data = made(size, 16);
    return data ? memset(data, 0, size) : NULL;
}

void free(void *data) {
    if (!data) return;
    const int error = errno;
    struct block *block = (struct block *)data - 1, *due = NULL;
    if (block->state != LIVE) {
        report(block->state == FREED ? "freed again" : "freed, and is no block or was written before its begin", block, 0);
        abort();
    }
    check(block, block->size, block->size + BEHIND, BEHIND_BYTE, "written behind its end");
    block->state = FREED;
    memset(data, FREED_BYTE, block->size);
    pthread_mutex_lock(&lock);
    if (last) last->next = block;
    else first = block;
    last = block, count++, bytes += block->size;
    if (count > KEPT || bytes > KEPT_BYTES) {
        due = first, first = first->next, count--, bytes -= due->size;
        if (!first) last = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (due) dropped(due);
    errno = error;
}

void *realloc(void *data, size_t size) {
    void *other = made(size, 16);
    if (!data || !other) return other;
    const size_t before = malloc_usable_size(data);
    memcpy(other, data, before < size ? before : size);
    free(data);
    return other;
}
void *reallocarray(void *data, size_t number, size_t each) {
    size_t size;
    return __builtin_mul_overflow(number, each, &size) ? (errno = ENOMEM, NULL) : realloc(data, size);
}

__attribute__((destructor)) static void end(void) {
    static const char said[] = "guarded heap: end\n";
    while (first) {
        struct block *block = first;
        first = block->next;
        dropped(block);
    }
    last = NULL;
    if (write(STDERR_FILENO, said, sizeof said - 1) < 0) abort();
}
