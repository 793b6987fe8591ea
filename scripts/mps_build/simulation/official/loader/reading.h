/* Numbers and texts out of bytes that nobody vouches for. */
#ifndef MPS_BUILD_READING_H
#define MPS_BUILD_READING_H
#include "macho.h"
#include <string.h>

bool macho_fail(struct macho *image, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline uint16_t read16(const uint8_t *at) { uint16_t value; memcpy(&value, at, 2); return value; }
static inline uint32_t read32(const uint8_t *at) { uint32_t value; memcpy(&value, at, 4); return value; }
static inline uint64_t read64(const uint8_t *at) { uint64_t value; memcpy(&value, at, 8); return value; }
static inline uint32_t read_big32(const uint8_t *at) { return __builtin_bswap32(read32(at)); }
static inline uint64_t read_big64(const uint8_t *at) { return __builtin_bswap64(read64(at)); }

/* What is left of a stream; once it ended too early it stays damaged, and gives zeros. */
struct cursor { const uint8_t *at, *end; bool is_damaged; };

static inline uint8_t read_byte(struct cursor *cursor) {
    if (cursor->at < cursor->end) return *cursor->at++;
    cursor->is_damaged = true;
    return 0;
}

static inline uint64_t read_leb(struct cursor *cursor, bool is_signed) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = read_byte(cursor);
        if (cursor->is_damaged || shift > 63) {
            cursor->is_damaged = true;
            return 0;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80) continue;
        if (is_signed && byte & 0x40 && shift < 57) value |= ~0ull << (shift + 7);
        return value;
    }
}

static inline uint64_t read_uleb(struct cursor *cursor) { return read_leb(cursor, false); }
static inline int64_t read_sleb(struct cursor *cursor) { return (int64_t)read_leb(cursor, true); }

/* A text that ends inside of the stream, or NULL. */
static inline const char *read_text(struct cursor *cursor) {
    const char *text = (const char *)cursor->at;
    const uint8_t *stop = cursor->at < cursor->end ? memchr(cursor->at, 0, (size_t)(cursor->end - cursor->at)) : NULL;
    cursor->is_damaged |= !stop;
    if (stop) cursor->at = stop + 1;
    return stop ? text : NULL;
}
#endif
