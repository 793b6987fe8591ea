/* What the loader's parser says of a file, and whether damaged ones do any harm. Run natively, under sanitizers.

   parse_probe describe FILE            its description, line by line; 1: it is refused
   parse_probe damage FILE SEED COUNT   parse COUNT mutants of it; how many were refused */
#include "../../../../scripts/mps_build/simulation/official/loader/macho.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seen, state;

static bool print_fixup(void *context, const struct macho_fixup *fixup) {
    (void)context;
    if (fixup->is_bind) printf("bind %#llx %s %d %lld\n", (unsigned long long)fixup->place, fixup->import.name, fixup->import.library, (long long)fixup->value);
    else printf("rebase %#llx %#llx\n", (unsigned long long)fixup->place, (unsigned long long)fixup->value);
    return true;
}

static bool read_fixup(void *context, const struct macho_fixup *fixup) {
    struct macho *image = context;
    struct macho_export found;
    seen += fixup->place;
    if (fixup->is_bind && macho_export(image, fixup->import.name, &found) == 1) seen += found.address;
    return true;
}

static void print_name(void *context, const char *name) { (void)context, printf("called %s\n", name); }
static void read_name(void *context, const char *name) { (void)context, seen += strlen(name); }

static int describe(const uint8_t *bytes, size_t size) {
    static struct macho image;
    struct macho_export found;
    if (!macho_parse(&image, bytes, size)) return printf("refused: %s\n", image.fault), 1;
    for (unsigned i = 0; i < image.segment_count; i++) printf("segment %s %u\n", image.segments[i].name, image.segments[i].protection);
    for (unsigned i = 0; i < image.library_count; i++) printf("library %s\n", image.libraries[i].name);
    if (!macho_fixups(&image, print_fixup, NULL)) return printf("refused: %s\n", image.fault), 1;
    macho_called(&image, print_name, NULL);
    if (macho_export(&image, "_own_function", &found) == 1) printf("export %#llx\n", (unsigned long long)found.address);
    printf("others %d %d\n", macho_export(&image, "_own", &found), macho_export(&image, "_own_function_more", &found));
    return 0;
}

static uint64_t draw(uint64_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % below;
}

/* Where a file says something: damage to zeros that nobody reads finds nothing. */
static size_t place(const uint8_t *bytes, size_t size) {
    size_t at = draw(size);
    for (int i = 0; i < 64 && !bytes[at]; i++) at = draw(size);
    return at;
}

static void damage_one(uint8_t *bytes, size_t size) {
    static const uint32_t words[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff0, 0x1000, 24};
    size_t at = place(bytes, size);
    switch (draw(4)) {
    case 0: bytes[at] = (uint8_t)draw(256); break;
    case 1: bytes[at] ^= (uint8_t)(1u << draw(8)); break;
    case 2: if (at + 4 <= size) memcpy(bytes + (at & ~(size_t)3), &words[draw(8)], 4); break;
    default: bytes[at] = 0xff;
    }
}

static int damage(const uint8_t *bytes, size_t size, uint64_t seed, unsigned long count) {
    static struct macho image;
    unsigned long refused = 0;
    state = seed * 0x9e3779b97f4a7c15ull + 1;
    for (unsigned long i = 0; i < count; i++) {
        size_t length = draw(8) ? size : draw(size);
        uint8_t *mutant = malloc(length + !length);
        struct macho_symbol symbol;
        struct macho_export found;
        memcpy(mutant, bytes, length);
        for (uint64_t j = length ? draw(4) + 1 : 0; j--;) damage_one(mutant, length);
        bool is_good = macho_parse(&image, mutant, length) && macho_fixups(&image, read_fixup, &image);
        if (is_good) {
            macho_called(&image, read_name, NULL);
            for (uint64_t j = 0; macho_symbol(&image, j, &symbol); j++) seen += macho_export(&image, symbol.name, &found) == 1;
            const uint8_t *at = macho_bytes(&image, image.low, 8);
            seen += at ? *at : 0;
        }
        refused += !is_good;
        free(mutant);
    }
    printf("%lu of %lu refused\n", refused, count);
    return 0;
}

int main(int count, char **words) {
    FILE *file = count > 2 ? fopen(words[2], "rb") : NULL;
    if (!file || fseek(file, 0, SEEK_END)) return 2;
    size_t size = (size_t)ftell(file);
    uint8_t *bytes = malloc(size + !size);
    rewind(file);
    int result = fread(bytes, 1, size, file) != size          ? 2
                 : !strcmp(words[1], "describe")               ? describe(bytes, size)
                                                               : damage(bytes, size, strtoull(words[3], NULL, 10), strtoul(words[4], NULL, 10));
    free(bytes);
    fclose(file);
    return result;
}
