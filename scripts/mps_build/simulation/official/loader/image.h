/* Images in memory: the official wheel's libraries, mapped, bound and started in a Linux process.

   A library is opened with all that it needs. Libraries of the system are not opened: what an image takes from them is
   looked up among the providers (libraries of ours that take their place: libc++, the software Metal), then in the
   table of ../system. */
#ifndef MPS_BUILD_IMAGE_H
#define MPS_BUILD_IMAGE_H
#include "macho.h"
#include <stdlib.h>

/* --- a map from names to addresses; the names stay where they are --- */

struct name { const char *name; void *address; };
struct names { struct name *rows; uint64_t room, count; };

static inline uint64_t name_hash(const char *name) {
    uint64_t hash = 14695981039346656037ull;
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 1099511628211ull;
    return hash ^ hash >> 29;
}

static inline struct name *names_row(const struct names *names, const char *name) {
    uint64_t i = name_hash(name) & (names->room - 1);
    while (names->rows[i].name && strcmp(names->rows[i].name, name)) i = (i + 1) & (names->room - 1);
    return &names->rows[i];
}

static inline void *names_get(const struct names *names, const char *name) {
    return names->room ? names_row(names, name)->address : NULL;
}

/* The first address of a name stays. */
static inline void names_add(struct names *names, const char *name, void *address) {
    if (names->count * 2 >= names->room) {
        struct names old = *names;
        names->room = old.room ? old.room * 2 : 1024;
        names->rows = calloc(names->room, sizeof *names->rows);
        if (!names->rows) abort();
        for (uint64_t i = 0; i < old.room; i++)
            if (old.rows[i].name) *names_row(names, old.rows[i].name) = old.rows[i];
        free(old.rows);
    }
    struct name *row = names_row(names, name);
    if (!row->name) *row = (struct name){name, address}, names->count++;
}

/* --- what is open --- */

enum { MOST_IMAGES = 64 };

struct image {
    struct macho file;
    char *path;
    unsigned number;
    uint64_t slide;                             /* what is added to an address of the file */
    bool is_provider, is_bound, is_started;
    struct image *libraries[MACHO_MOST_LIBRARIES];   /* NULL: of the system, or weak and not there */
    struct names symbols;                       /* of a provider, and of an image without a list of exports */
    uint64_t thread_data, thread_filled, thread_size;   /* where it lies now; bytes that are not zero; all bytes */
    struct places *places;                      /* its symbols by their addresses; NULL: none was looked up yet */
};

extern struct image *images[MOST_IMAGES];
extern unsigned image_count;

/* --- what Python calls --- */

/* Let a library of ours stand for what the system would give; before what needs it is opened. 0, or -1. */
int official_provide(const char *path);
/* Map a library and all that it needs, bind them, run their initialisers. 0, or -1: `official_fault`. */
int official_open(const char *path);
const char *official_fault(void);
/* The address of a name of any image, such as "_PyInit__C"; NULL: none has it. */
void *official_symbol(const char *name);

/* --- between the parts of the loader --- */

bool fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct image *image_named(const char *path);
struct image *image_of(const void *address);
void *image_export(struct image *image, const char *name, bool *is_weak);
void *symbol_anywhere(const char *name);        /* images in order, then the system's table */
bool bind_image(struct image *image);
void *stub_for(const char *name, const char *library, const char *reason);
void prepare_threads(struct image *image);      /* the descriptors of its thread variables */
void start_image(struct image *image);
void watch_for_crashes(void);
/* The last symbol at an address of the image, or before it; NULL: there is none. */
const char *symbol_at(struct image *image, const void *address, uint64_t *distance);
#endif
