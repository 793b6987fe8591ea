/* The table at work. */
#include "system.h"
#include <stddef.h>

extern const struct system_row system_rows[], system_families[];
extern const size_t system_row_count, system_family_count;

const struct system_row *system_row(const char *name) {
    for (size_t low = 0, high = system_row_count; low < high;) {
        size_t middle = (low + high) / 2;
        int order = strcmp(name, system_rows[middle].name);
        if (!order) return &system_rows[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    for (size_t i = 0; i < system_family_count; i++)
        if (!strncmp(name, system_families[i].name, strlen(system_families[i].name))) return &system_families[i];
    return NULL;
}

void system_prepare(void) {
    static bool is_prepared;
    if (is_prepared) return;
    is_prepared = true;
    prepare_streams();
    prepare_characters();
}
