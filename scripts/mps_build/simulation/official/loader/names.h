/* A map from names to addresses; the names stay where they are. */
#ifndef MPS_BUILD_NAMES_H
#define MPS_BUILD_NAMES_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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
#endif
