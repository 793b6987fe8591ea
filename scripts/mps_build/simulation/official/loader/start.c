/* Thread variables, initialisers, and what the images ask of dyld. */
#define _GNU_SOURCE
#include "image.h"
#include "../system/system.h"
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* --- thread variables: each image has a block in each thread, made when it is first used --- */

__thread void **thread_blocks __attribute__((tls_model("initial-exec")));
extern char thread_variable[];
static pthread_key_t blocks_key;
static pthread_once_t blocks_once = PTHREAD_ONCE_INIT;

/* Runs after the destructors of thread variables, which glibc calls first. */
static void free_blocks(void *blocks) {
    for (unsigned i = 0; i < MOST_IMAGES; i++) free(((void **)blocks)[i]);
    free(blocks);
    thread_blocks = NULL;
}

static void make_key(void) {
    if (pthread_key_create(&blocks_key, free_blocks)) abort();
}

void *make_thread_block(uint64_t number) {
    const struct image *image = images[number];
    void *block;
    if (!thread_blocks) {
        pthread_once(&blocks_once, make_key);
        if (!(thread_blocks = calloc(MOST_IMAGES, sizeof *thread_blocks))) abort();
        pthread_setspecific(blocks_key, thread_blocks);
    }
    if (posix_memalign(&block, 128, image->thread_size)) abort();
    memcpy(block, (void *)image->thread_data, image->thread_filled);
    memset((char *)block + image->thread_filled, 0, image->thread_size - image->thread_filled);
    return thread_blocks[number] = block;
}

struct descriptor { void *thunk; uint64_t number, offset; };

void prepare_threads(struct image *image) {
    for (unsigned i = 0; i < image->file.section_count; i++) {
        const struct macho_section *section = &image->file.sections[i];
        if (section->type != MACHO_THREAD_VARIABLES) continue;
        struct descriptor *descriptors = (void *)(section->address + image->slide);
        for (uint64_t j = 0; j < section->size / sizeof *descriptors; j++) {
            descriptors[j].thunk = thread_variable;
            descriptors[j].number = image->number;
        }
    }
}

/* --- initialisers --- */

typedef void (*initialiser)(int, char **, char **, char **, void *);

static void call_initialiser(const struct image *image, uint64_t address) {
    static char *arguments[] = {"python", NULL}, *apple[] = {NULL};
    if (!macho_is_executable(&image->file, address - image->slide)) {
        fprintf(stderr, "mps-build: %s: an initialiser lies outside of its code\n", image->path);
        abort();
    }
    ((initialiser)address)(1, arguments, environ, apple, NULL);
}

void start_image(struct image *image) {
    /* The software Metal takes the classes, categories and selectors of each image that is not its own. */
    static const char hook[] = "_sim_enter_image";
    for (unsigned i = 0; i < image_count; i++) {
        void (*enter)(void *) = images[i]->is_provider && images[i] != image ? names_get(&images[i]->symbols, hook) : NULL;
        if (enter && macho_section(&image->file, NULL, "__objc_imageinfo")) enter((void *)(image->file.header + image->slide));
    }
    for (unsigned i = 0; i < image->file.section_count; i++) {
        const struct macho_section *section = &image->file.sections[i];
        const uint8_t *at = (uint8_t *)(section->address + image->slide);
        if (section->type == MACHO_INITIALISERS)
            for (uint64_t j = 0; j < section->size / 8; j++) call_initialiser(image, ((uint64_t *)at)[j]);
        if (section->type == MACHO_INITIALISER_OFFSETS)
            for (uint64_t j = 0; j < section->size / 4; j++)
                call_initialiser(image, image->file.header + image->slide + ((uint32_t *)at)[j]);
    }
}

/* --- dyld's own interface --- */

struct unwind_sections { const void *header; const void *frames; uint64_t frames_size; const void *compact; uint64_t compact_size; };

int darwin__dyld_find_unwind_sections(const void *address, struct unwind_sections *sections) {
    const struct image *image = image_of(address);
    if (!image) return 0;
    const struct macho_section *compact = macho_section(&image->file, "__TEXT", "__unwind_info");
    const struct macho_section *frames = macho_section(&image->file, "__TEXT", "__eh_frame");
    *sections = (struct unwind_sections){
        (void *)(image->file.header + image->slide),
        frames ? (void *)(frames->address + image->slide) : NULL, frames ? frames->size : 0,
        compact ? (void *)(compact->address + image->slide) : NULL, compact ? compact->size : 0};
    return 1;
}

void darwin__dyld_register_func_for_remove_image(void *callback) { (void)callback; }  /* none is ever removed */
uint32_t darwin__dyld_image_count(void) { return image_count; }
const char *darwin__dyld_get_image_name(uint32_t i) { return i < image_count ? images[i]->path : NULL; }
const void *darwin__dyld_get_image_header(uint32_t i) { return i < image_count ? (void *)(images[i]->file.header + images[i]->slide) : NULL; }
long darwin__dyld_get_image_vmaddr_slide(uint32_t i) { return i < image_count ? (long)images[i]->slide : 0; }

void *darwin_getsectiondata(const void *header, const char *segment, const char *name, uint64_t *size) {
    const struct image *image = image_of(header);
    const struct macho_section *section = image ? macho_section(&image->file, segment, name) : NULL;
    *size = section ? section->size : 0;
    return section ? (void *)(section->address + image->slide) : NULL;
}

int darwin__NSGetExecutablePath(char *buffer, uint32_t *size) {
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length < 0) return -1;
    if ((uint32_t)length >= *size) return *size = (uint32_t)length + 1, -1;
    memcpy(buffer, path, (size_t)length);
    buffer[length] = 0;
    return 0;
}

char ***darwin__NSGetEnviron(void) { return &environ; }

static __thread const char *said;               /* what dlerror says, once */

/* A library of the system, or of ours that is not a Mach-O file, is not there. */
void *darwin_dlopen(const char *path, int flags) {
    if (!path) return (void *)-2;
    struct image *image = image_named(path);
    if (!image && !(flags & 0x10) && !official_open(path)) image = image_named(path);      /* 0x10: RTLD_NOLOAD */
    if (!image) said = flags & 0x10 ? "it is not open" : official_fault();
    return image;
}

int darwin_dlclose(void *handle) { (void)handle; return 0; }

void *darwin_dlsym(void *handle, const char *name) {
    char symbol[2048];
    bool is_weak;
    void *address = NULL;
    struct image *image = NULL;
    if (snprintf(symbol, sizeof symbol, "_%s", name) < (int)sizeof symbol) {
        for (unsigned i = 0; i < image_count; i++) image = handle == images[i] ? images[i] : image;
        address = image ? image_export(image, symbol, &is_weak) : symbol_anywhere(symbol);
    }
    if (!address) said = "the symbol is not there";
    return address;
}

char *darwin_dlerror(void) {
    char *text = (char *)said;
    said = NULL;
    return text;
}

int darwin_dladdr(const void *address, Dl_info *info) {
    struct image *image = image_of(address);
    if (!image) return dladdr(address, info);
    uint64_t distance;
    const char *name = symbol_at(image, address, &distance);
    *info = (Dl_info){image->path, (void *)(image->file.header + image->slide), name ? name + (*name == '_') : NULL,
                      name ? (char *)address - distance : NULL};
    return 1;
}
