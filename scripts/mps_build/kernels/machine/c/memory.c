/* Buffers that end, or begin, at a page nobody may touch, and strided copies. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, SLOTS = 96 };
static const size_t REACH = (size_t)1 << 37; /* address space of a slot: far accesses hit nothing either */

struct slot { char *base; size_t low, high; /* bytes that are open from the middle down, and up */ };
static struct slot slots[SLOTS];

static size_t pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

/* Returns room for `size` bytes that ends (is_begin 0) or begins (1) at a closed page; NULL if there is none.
   Buffers that end at the page lie below the first half of a slot, those that begin at one in the second half. */
char *rt_place(uint32_t index, size_t size, size_t alignment, int is_begin) {
    if (index >= SLOTS || size > REACH / 2 - (1 << 25)) return NULL;
    struct slot *slot = &slots[index];
    if (!slot->base) {
        char *base = mmap(NULL, REACH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED) return NULL;
        slot->base = base;
    }
    char *end = slot->base + REACH / 2 - (1 << 24), *begin = slot->base + REACH / 2 + (1 << 24);
    size_t wanted = pages(size ? size : 1);
    if (is_begin) {
        if (wanted > slot->high) {
            if (mprotect(begin + slot->high, wanted - slot->high, PROT_READ | PROT_WRITE)) return NULL;
            slot->high = wanted;
        }
        return begin;
    }
    if (wanted > slot->low) {
        if (mprotect(end - wanted, wanted - slot->low, PROT_READ | PROT_WRITE)) return NULL;
        slot->low = wanted;
    }
    return end - (size + alignment - 1) / alignment * alignment;
}

/* Writes `byte` around a buffer, as far as its open pages and 4096 bytes go; rt_spoiled finds what changed. */
static void around(uint32_t index, char *p, size_t size, int is_begin, char **before, char **after, size_t *n, size_t *m) {
    struct slot *slot = &slots[index];
    char *end = slot->base + REACH / 2 - (1 << 24), *begin = slot->base + REACH / 2 + (1 << 24);
    char *low = is_begin ? begin : end - slot->low, *high = is_begin ? begin + slot->high : end;
    *n = (size_t)(p - low) < PAGE ? (size_t)(p - low) : PAGE;
    *before = p - *n;
    *after = p + size;
    *m = (size_t)(high - *after) < PAGE ? (size_t)(high - *after) : PAGE;
}

void rt_surround(uint32_t index, char *p, size_t size, int is_begin, int byte) {
    char *before, *after;
    size_t n, m;
    around(index, p, size, is_begin, &before, &after, &n, &m);
    memset(before, byte, n);
    memset(after, byte, m);
}

/* Returns 0, or how far from the buffer's first byte a byte has changed that is not the buffer's. */
int64_t rt_spoiled(uint32_t index, char *p, size_t size, int is_begin, int byte) {
    char *before, *after;
    size_t n, m;
    around(index, p, size, is_begin, &before, &after, &n, &m);
    for (size_t i = n; i-- > 0;)
        if ((uint8_t)before[i] != (uint8_t)byte) return (int64_t)(before + i - p);
    for (size_t i = 0; i < m; i++)
        if ((uint8_t)after[i] != (uint8_t)byte) return (int64_t)(after + i - p);
    return 0;
}

/* A mapping at a fixed place with a closed page at both ends, for threadgroup memory; 0 if it is taken. */
uint64_t rt_map_fixed(uint64_t address, size_t size) {
    char *p = mmap((void *)address, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return p == MAP_FAILED ? 0 : (uint64_t)p;
}
int rt_unmap(uint64_t address, size_t size) { return munmap((void *)address, size); }

/* Puts code at a fixed place, where it may be run and read, no longer written; -1 if the place is taken. */
int rt_load_code(uint64_t address, const char *code, size_t size) {
    size_t whole = pages(size);
    if (!rt_map_fixed(address, whole)) return -1;
    memcpy((void *)address, code, size);
    __builtin___clear_cache((char *)address, (char *)address + size);
    return mprotect((void *)address, whole, PROT_READ | PROT_EXEC);
}

/* Copies between a dense and a strided block; sizes and strides outermost first, strides in bytes. */
void rt_strided(char *dense, char *strided, uint64_t element, uint32_t ndim, const int64_t *sizes,
                const int64_t *strides, int to_strided) {
    int64_t index[16] = {0}, count = 1, offset = 0;
    for (uint32_t d = 0; d < ndim; d++) count *= sizes[d];
    for (int64_t i = 0; i < count; i++) {
        if (to_strided) memcpy(strided + offset, dense, element);
        else memcpy(dense, strided + offset, element);
        dense += element;
        for (uint32_t d = ndim; d-- > 0;) {
            offset += strides[d];
            if (++index[d] < sizes[d]) break;
            offset -= strides[d] * sizes[d];
            index[d] = 0;
        }
    }
}

/* Returns the first element that differs, or -1. kind: 0 bits, 1 half, 2 bfloat, 3 float (any NaN equals any). */
int64_t rt_differs(const char *a, const char *b, uint64_t count, uint64_t element, int kind) {
    for (uint64_t i = 0; i < count; i++, a += element, b += element) {
        if (!memcmp(a, b, element)) continue;
        if (kind == 3) {
            float x, y;
            memcpy(&x, a, 4), memcpy(&y, b, 4);
            if (x != x && y != y) continue;
        } else if (kind) {
            uint16_t x, y, infinite = kind == 1 ? 0x7C00 : 0x7F80;
            memcpy(&x, a, 2), memcpy(&y, b, 2);
            if ((x & 0x7FFF) > infinite && (y & 0x7FFF) > infinite) continue;
        }
        return (int64_t)i;
    }
    return -1;
}

/* Writes every NaN as the same bits; kind: 1 half, 2 bfloat, 3 float. */
void rt_canonical(char *data, uint64_t count, int kind) {
    for (uint64_t i = 0; i < count; i++) {
        if (kind == 3) {
            uint32_t bits;
            memcpy(&bits, data + 4 * i, 4);
            if ((bits & 0x7FFFFFFF) > 0x7F800000) bits = 0x7FC00000;
            memcpy(data + 4 * i, &bits, 4);
        } else {
            uint16_t bits, infinite = kind == 1 ? 0x7C00 : 0x7F80, quiet = kind == 1 ? 0x7E00 : 0x7FC0;
            memcpy(&bits, data + 2 * i, 2);
            if ((bits & 0x7FFF) > infinite) bits = quiet;
            memcpy(data + 2 * i, &bits, 2);
        }
    }
}

/* Closes all buffers and gives their pages back: what comes next begins as zero. */
void rt_release(void) {
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot = &slots[i];
        if (!slot->base) continue;
        char *end = slot->base + REACH / 2 - (1 << 24), *begin = slot->base + REACH / 2 + (1 << 24);
        if (slot->low) madvise(end - slot->low, slot->low, MADV_DONTNEED), mprotect(end - slot->low, slot->low, PROT_NONE);
        if (slot->high) madvise(begin, slot->high, MADV_DONTNEED), mprotect(begin, slot->high, PROT_NONE);
        slot->low = slot->high = 0;
    }
}

void rt_fill(char *at, const char *data, size_t size) { memcpy(at, data, size); }
