/* From a path to an image that is bound and started, with all that it needs. */
#define _GNU_SOURCE
#include "image.h"
#include "../system/system.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image *images[MOST_IMAGES];
unsigned image_count;
static char fault_text[1024];
/* An initialiser may open further libraries. */
static pthread_mutex_t loading = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

bool fault(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(fault_text, sizeof fault_text, format, list);
    va_end(list);
    return false;
}

const char *official_fault(void) { return fault_text; }

struct image *image_of(const void *address) {
    for (unsigned i = 0; i < image_count; i++) {
        uint64_t at = (uint64_t)address - images[i]->slide;
        if (at >= images[i]->file.low && at < images[i]->file.high) return images[i];
    }
    return NULL;
}

struct image *image_named(const char *path) {
    char real[PATH_MAX];
    const char *wanted = realpath(path, real) ? real : path;
    for (unsigned i = 0; i < image_count; i++)
        if (!strcmp(images[i]->path, wanted) || (images[i]->file.name && !strcmp(images[i]->file.name, path))) return images[i];
    return NULL;
}

/* --- into memory --- */

static bool map_segment(struct image *image, const struct macho_segment *segment, int file) {
    if (!segment->size) return true;
    int protection = (segment->protection & MACHO_READ ? PROT_READ : 0) | (segment->protection & MACHO_WRITE ? PROT_WRITE : 0) |
                     (segment->protection & MACHO_EXECUTE ? PROT_EXEC : 0);
    uint8_t *place = (uint8_t *)(segment->address + image->slide);
    uint64_t offset = image->file.slice + segment->offset;
    if (mmap(place, segment->size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return fault("%s: no memory for segment %s: %s", image->path, segment->name, strerror(errno));
    if (!segment->filled) return true;
    if (offset & 0xfff) return fault("%s: segment %s does not begin at a page of the file", image->path, segment->name);
    if (mmap(place, segment->filled, protection, MAP_PRIVATE | MAP_FIXED, file, (off_t)offset) == MAP_FAILED)
        return fault("%s: segment %s cannot be mapped: %s", image->path, segment->name, strerror(errno));
    /* The file goes on where the segment has zeros. */
    uint8_t *tail = place + segment->filled;
    if (segment->filled < segment->size && protection & PROT_WRITE) memset(tail, 0, (size_t)(-(uintptr_t)tail & 0xfff));
    return true;
}

static void find_threads(struct image *image) {
    const struct macho *file = &image->file;
    uint64_t low = UINT64_MAX, filled = 0, high = 0;
    for (unsigned i = 0; i < file->section_count; i++) {
        const struct macho_section *section = &file->sections[i];
        if (section->type != MACHO_THREAD_DATA && section->type != MACHO_THREAD_ZERO) continue;
        uint64_t end = section->address + section->size;
        if (section->address < low) low = section->address;
        if (end > high) high = end;
        if (section->type == MACHO_THREAD_DATA && end > filled) filled = end;
    }
    if (low == UINT64_MAX) return;
    image->thread_data = low + image->slide;
    image->thread_size = high - low;
    image->thread_filled = filled > low ? filled - low : 0;
}

static void index_symbols(struct image *image) {
    for (uint64_t i = 0; i < image->file.symbol_count; i++) {
        struct macho_symbol symbol;
        if (!macho_symbol(&image->file, i, &symbol) || !symbol.is_defined) continue;
        /* zig compiles its libc++ with hidden names, which a linker keeps as private ones. */
        if (symbol.is_external || (image->is_provider && symbol.is_private))
            names_add(&image->symbols, symbol.name, (void *)(symbol.address + image->slide));
    }
}

static struct image *map_image(const char *path, bool is_provider) {
    char real[PATH_MAX];
    if (!realpath(path, real)) return fault("%s: %s", path, strerror(errno)), NULL;
    if (image_count == MOST_IMAGES) return fault("%s: more than %d libraries are open", path, MOST_IMAGES), NULL;
    int file = open(real, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) || !S_ISREG(status.st_mode)) {
        fault("%s: %s", path, file < 0 ? strerror(errno) : "it is not a plain file");
        if (file >= 0) close(file);
        return NULL;
    }
    struct image *image = calloc(1, sizeof *image);
    uint64_t size = (uint64_t)status.st_size;
    uint8_t *bytes = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    if (!image || bytes == MAP_FAILED) return close(file), free(image), fault("%s: it cannot be read", path), NULL;
    image->path = strdup(real);
    image->is_provider = is_provider;
    struct macho *parsed = &image->file;
    bool is_good = macho_parse(parsed, bytes, size) || fault("%s: %s", path, parsed->fault);
    if (is_good) {
        uint64_t room = (parsed->high - parsed->low + 0xfff) & ~0xfffull;
        void *base = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        is_good = base != MAP_FAILED || fault("%s: no room for %llu bytes of addresses", path, (unsigned long long)room);
        image->slide = (uint64_t)base - parsed->low;
        for (unsigned i = 0; is_good && i < parsed->segment_count; i++) is_good = map_segment(image, &parsed->segments[i], file);
        if (!is_good && base != MAP_FAILED) munmap(base, room);
    }
    close(file);
    if (!is_good) return munmap(bytes, size), free(image->path), free(image), NULL;
    find_threads(image);
    if (is_provider || !parsed->exports.size) index_symbols(image);
    image->number = image_count;
    images[image_count++] = image;
    return image;
}

/* --- what it needs --- */

static bool of_the_system(const char *name) {
    return !strncmp(name, "/usr/lib/", 9) || !strncmp(name, "/System/Library/", 16);
}

static bool exists_at(char *found, const char *folder, const char *rest) {
    return snprintf(found, PATH_MAX, "%s%s", folder, rest) < PATH_MAX && access(found, R_OK) == 0;
}

/* Expand @loader_path and @rpath; the search paths of the image that asks come first, then those of the others. */
static bool find_library(const struct image *image, const char *name, char *found) {
    char copy[PATH_MAX];
    const char *own = (snprintf(copy, sizeof copy, "%s", image->path), dirname(copy));
    if (!strncmp(name, "@loader_path/", 13)) return exists_at(found, own, name + 12);
    if (strncmp(name, "@rpath/", 7)) return exists_at(found, "", name);
    for (unsigned j = 0; j <= image_count; j++) {
        const struct image *by = j ? images[j - 1] : image;
        char folder[PATH_MAX], base[PATH_MAX];
        snprintf(base, sizeof base, "%s", by->path);
        dirname(base);
        for (unsigned i = 0; i < by->file.rpath_count; i++) {
            const char *rpath = by->file.rpaths[i];
            bool is_relative = !strncmp(rpath, "@loader_path", 12);
            if (snprintf(folder, sizeof folder, "%s%s", is_relative ? base : "", is_relative ? rpath + 12 : rpath) >= PATH_MAX) continue;
            if (exists_at(found, folder, name + 6)) return true;
        }
    }
    return exists_at(found, own, name + 6);
}

static struct image *open_with_needs(const char *path, bool is_provider) {
    struct image *image = image_named(path);
    if (image) return image;
    if (!(image = map_image(path, is_provider))) return NULL;
    for (unsigned i = 0; i < image->file.library_count; i++) {
        const struct macho_library *library = &image->file.libraries[i];
        char found[PATH_MAX];
        if (of_the_system(library->name) || (image->libraries[i] = image_named(library->name))) continue;
        if (find_library(image, library->name, found)) {
            if (!(image->libraries[i] = open_with_needs(found, false))) return NULL;
        } else if (!library->is_weak) {
            return fault("%s: it needs %s, which is not there", image->path, library->name), NULL;
        }
    }
    return image;
}

/* --- open --- */

static bool bind_all(void) {
    for (unsigned i = 0; i < image_count; i++) {
        struct image *image = images[i];
        if (image->is_bound) continue;
        if (!bind_image(image)) return false;
        prepare_threads(image);
        image->is_bound = true;
    }
    return true;
}

/* What an image needs is started before it; a circle is entered where it is met first. */
static void start_in_order(struct image *image) {
    if (image->is_started) return;
    image->is_started = true;
    for (unsigned i = 0; i < image->file.library_count; i++)
        if (image->libraries[i]) start_in_order(image->libraries[i]);
    start_image(image);
}

/* Images that could not be opened are forgotten; what they had mapped stays, for others may point there. */
static void forget_from(unsigned count) { image_count = count; }

int official_provide(const char *path) {
    pthread_mutex_lock(&loading);
    unsigned before = image_count;
    struct image *image = open_with_needs(path, true);
    if (!image) forget_from(before);
    pthread_mutex_unlock(&loading);
    return image ? 0 : -1;
}

int official_open(const char *path) {
    pthread_mutex_lock(&loading);
    unsigned before = image_count;
    static bool is_prepared, is_watched;
    if (!is_prepared) is_prepared = true, prepare_streams(), prepare_characters();
    struct image *image = open_with_needs(path, false);
    bool is_good = image && bind_all();
    if (!is_good) forget_from(before);
    if (is_good && !is_watched) is_watched = true, watch_for_crashes();
    for (unsigned i = 0; is_good && i < image_count; i++)
        if (images[i]->is_provider) start_in_order(images[i]);
    if (is_good) start_in_order(image);
    pthread_mutex_unlock(&loading);
    return is_good ? 0 : -1;
}

void *official_symbol(const char *name) {
    for (unsigned i = 0; i < image_count; i++) {
        bool is_weak;
        void *address = image_export(images[i], name, &is_weak);
        if (address) return address;
    }
    return NULL;
}

/* --- from an address to a name --- */

/* An image's symbols by the page in which they begin: those of page p are order[start[p]] up to order[start[p + 1]]. A
   search of all takes 20 ms in libtorch_cpu, and each error of an older PyTorch names its frames when it is made: 30
   such searches. The memory is the system's own, since a crash looks up names as well, and the heap may be broken. */
struct places { uint32_t *order; uint32_t start[]; };
enum { PAGE_BITS = 12 };

static bool has_place(const struct macho *file, uint64_t i, struct macho_symbol *symbol) {
    return macho_symbol(file, i, symbol) && symbol->is_defined && symbol->address >= file->low && symbol->address < file->high;
}

static const struct places *places_of(struct image *image) {
    const struct macho *file = &image->file;
    struct places *places = __atomic_load_n(&image->places, __ATOMIC_ACQUIRE), *first = NULL;
    if (places) return places;
    uint64_t pages = ((file->high - file->low) >> PAGE_BITS) + 1;
    uint64_t size = sizeof *places + sizeof *places->start * (pages + 2 + file->symbol_count);
    places = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (places == MAP_FAILED) return NULL;
    places->order = places->start + pages + 2;
    /* Counted two rows further, then summed up, so that each row has moved to its page's end when all are placed. */
    struct macho_symbol symbol;
    for (uint64_t i = 0; i < file->symbol_count; i++)
        if (has_place(file, i, &symbol)) places->start[((symbol.address - file->low) >> PAGE_BITS) + 2]++;
    for (uint64_t page = 2; page < pages + 2; page++) places->start[page] += places->start[page - 1];
    for (uint64_t i = 0; i < file->symbol_count; i++)
        if (has_place(file, i, &symbol)) places->order[places->start[((symbol.address - file->low) >> PAGE_BITS) + 1]++] = (uint32_t)i;
    if (__atomic_compare_exchange_n(&image->places, &first, places, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return places;
    munmap(places, size);                       /* another thread was first */
    return first;
}

const char *symbol_at(struct image *image, const void *address, uint64_t *distance) {
    const struct places *places = places_of(image);
    uint64_t at = (uint64_t)address - image->slide, nearest = image->file.low;
    const char *name = NULL;
    if (!places || at < nearest) return NULL;
    for (uint64_t page = ((at - nearest) >> PAGE_BITS) + 1; !name && page-- > 0;)
        for (uint32_t i = places->start[page]; i < places->start[page + 1]; i++) {
            struct macho_symbol symbol;
            if (!macho_symbol(&image->file, places->order[i], &symbol) || symbol.address > at || symbol.address < nearest) continue;
            nearest = symbol.address;
            name = symbol.name;
        }
    *distance = at - nearest;
    return name;
}
