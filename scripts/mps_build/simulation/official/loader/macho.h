/* What the file of a Mach-O image says: read from bytes, nothing mapped, nothing believed.

   No function here allocates beyond the description, calls the system, or reads outside of the bytes it was given: it
   is compiled for the loader and, by the tests, for the machine they run on. */
#ifndef MPS_BUILD_MACHO_H
#define MPS_BUILD_MACHO_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MACHO_MOST_SEGMENTS = 32, MACHO_MOST_SECTIONS = 256, MACHO_MOST_LIBRARIES = 250, MACHO_MOST_RPATHS = 32 };
enum { MACHO_READ = 1, MACHO_WRITE = 2, MACHO_EXECUTE = 4 };
/* Where a name is looked up: a number from 1 is a library of the image. */
enum { MACHO_SELF = 0, MACHO_PROGRAM = -1, MACHO_FLAT = -2, MACHO_WEAK = -3 };
enum { MACHO_ZEROFILL = 0x1, MACHO_STUBS = 0x8, MACHO_INITIALISERS = 0x9, MACHO_THREAD_DATA = 0x11,
       MACHO_THREAD_ZERO = 0x12, MACHO_THREAD_VARIABLES = 0x13, MACHO_INITIALISER_OFFSETS = 0x16 };

struct macho_range { uint64_t offset, size; };
struct macho_segment { char name[17]; uint64_t address, size, offset, filled; uint32_t protection; };
struct macho_section { char segment[17], name[17]; uint64_t address, size; uint32_t type, first, stride; };
struct macho_library { const char *name; bool is_weak, is_reexported; };
struct macho_symbol { const char *name; uint64_t address; bool is_defined, is_external, is_private; };

struct macho {
    const uint8_t *bytes;                       /* of one architecture: a slice of a universal file */
    uint64_t size, slice;                       /* slice: where it begins in the file */
    const char *name;                           /* what it calls itself, or NULL */
    struct macho_segment segments[MACHO_MOST_SEGMENTS];
    struct macho_section sections[MACHO_MOST_SECTIONS];
    struct macho_library libraries[MACHO_MOST_LIBRARIES];
    const char *rpaths[MACHO_MOST_RPATHS];
    unsigned segment_count, section_count, library_count, rpath_count;
    uint64_t low, high, header;                 /* the addresses it wants; header: of its first byte */
    struct macho_range rebases, binds, weak_binds, lazy_binds, exports, chains, strings, indirect;
    uint64_t symbols, symbol_count;
    char fault[200];                            /* why something failed */
};

/* Describe a file, thin or universal; false: `fault` says why not. The bytes must outlive the description. */
bool macho_parse(struct macho *image, const uint8_t *bytes, uint64_t size);

const struct macho_section *macho_section(const struct macho *image, const char *segment, const char *name);
/* The i-th symbol; false: there is none, or its name lies outside of the file. */
bool macho_symbol(const struct macho *image, uint64_t i, struct macho_symbol *symbol);

struct macho_export { uint64_t address; bool is_weak, is_absolute, is_thread_local; int library; const char *other; };
/* What the exports trie says of a name: 1 found, 0 not exported, -1 the trie is damaged (`fault`).
   `other`: it is re-exported from that library, under that name; "" is its own name. */
int macho_export(struct macho *image, const char *name, struct macho_export *found);

struct macho_import { const char *name; int library; bool is_weak; };
/* One pointer to write: an address of the image (rebase), or an import plus an addend (bind). `is_optional`: where
   nothing has the name, what stands there stays. */
struct macho_fixup { uint64_t place; bool is_bind, is_optional; uint64_t value; struct macho_import import; };
typedef bool (*macho_visitor)(void *context, const struct macho_fixup *fixup);
/* Visit each pointer that must be written, in order; false: the visitor said so, or the fixups are damaged (`fault`
   is set then). Every place is inside of a segment that may be written. */
bool macho_fixups(struct macho *image, macho_visitor visit, void *context);

/* Visit the imports that are called as functions, by the image's stubs. */
typedef void (*macho_name_visitor)(void *context, const char *name);
void macho_called(const struct macho *image, macho_name_visitor visit, void *context);

/* The bytes of a range of addresses, or NULL where the file does not hold all of it. */
const uint8_t *macho_bytes(const struct macho *image, uint64_t address, uint64_t size);
bool macho_is_executable(const struct macho *image, uint64_t address);

/* --- numbers and texts out of bytes that nobody vouches for --- */

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
