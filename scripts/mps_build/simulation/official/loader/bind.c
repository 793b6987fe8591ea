/* Names to addresses: what each pointer of an image is set to. */
#define _GNU_SOURCE
#include "image.h"
#include "../system/system.h"
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>

enum { DEEPEST = 16 };
enum outcome { FOUND, STUB, REFUSED };
struct answer { void *address; enum outcome outcome; const char *reason; };

/* --- where a name is looked for --- */

static void *export_of(struct image *image, const char *name, bool *is_weak, int depth) {
    if (image->symbols.room) {
        *is_weak = false;
        void *address = names_get(&image->symbols, name);
        if (address) return address;
    } else if (image->file.exports.size) {
        struct macho_export found;
        if (macho_export(&image->file, name, &found) == 1) {
            *is_weak = found.is_weak;
            if (!found.other) return (void *)(found.address + (found.is_absolute ? 0 : image->slide));
            struct image *other = image->libraries[found.library - 1];
            if (other && depth < DEEPEST) return export_of(other, *found.other ? found.other : name, is_weak, depth + 1);
            return NULL;
        }
    }
    for (unsigned i = 0; i < image->file.library_count && depth < DEEPEST; i++) {
        if (!image->file.libraries[i].is_reexported || !image->libraries[i]) continue;
        void *address = export_of(image->libraries[i], name, is_weak, depth + 1);
        if (address) return address;
    }
    return NULL;
}

void *image_export(struct image *image, const char *name, bool *is_weak) { return export_of(image, name, is_weak, 0); }

static void *from_providers(const char *name) {
    for (unsigned i = 0; i < image_count; i++) {
        void *address = images[i]->is_provider ? names_get(&images[i]->symbols, name) : NULL;
        if (address) return address;
    }
    return NULL;
}

/* One definition for all images: the first that is not weak, else the first. */
static void *one_for_all(const char *name) {
    static struct names known;
    void *address = names_get(&known, name);
    for (unsigned i = 0; i < image_count && !address; i++) {
        bool is_weak = false;
        void *found = image_export(images[i], name, &is_weak);
        if (found && !is_weak) address = found;
    }
    for (unsigned i = 0; i < image_count && !address; i++) {
        bool is_weak;
        address = image_export(images[i], name, &is_weak);
    }
    if (address) names_add(&known, name, address);
    return address;
}

static const struct system_row *system_row(const char *name) {
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

static struct answer from_table(const char *name) {
    const struct system_row *row = system_row(name);
    if (!row) {
        /* Python's own interface has the layouts of the Python that runs; what differs in it is in the table. */
        if (!strcmp(name, "__PyRuntime")) return (struct answer){python_runtime(), FOUND, NULL};
        /* The machine of the kernels is a library of Linux (native/linux/machine.h). */
        bool is_of_linux = !strncmp(name, "_Py", 3) || !strncmp(name, "__Py", 4) || !strncmp(name, "_rt_", 4);
        void *address = is_of_linux ? dlsym(RTLD_DEFAULT, name + 1) : NULL;
        return (struct answer){address, address ? FOUND : STUB, "nothing here gives it"};
    }
    if (row->kind == SYSTEM_REFUSED) return (struct answer){NULL, STUB, row->text};
    if (row->kind == SYSTEM_ALONE && from_providers("_objc_msgSend")) {
        /* A class is there, and says at the first message that it is not: else a wheel with one new class would not open. */
        void *(*absent)(const char *) = from_providers("_sim_absent_class");
        void *class = absent ? absent(name) : NULL;
        return (struct answer){class, class ? FOUND : STUB, "the software Metal does not have it"};
    }
    void *address = row->kind == SYSTEM_SAME ? dlsym(RTLD_DEFAULT, row->text) : (void *)row->address;
    return (struct answer){address, address ? FOUND : STUB, "this system does not have it"};
}

/* What a wheel frees the software Metal may keep for a while: a copy that nobody waited for may reach it. */
static void *of_the_system(const struct image *image, const char *name) {
    void *watched = image->is_provider || strcmp(name, "_free") ? NULL : from_providers("_sim_free");
    return watched ? watched : from_providers(name);
}

static struct answer look_up(struct image *image, const struct macho_import *import) {
    struct image *library = import->library > 0 ? image->libraries[import->library - 1] : NULL;
    bool is_weak;
    void *address = NULL;
    if (import->library == MACHO_SELF) address = image_export(image, import->name, &is_weak);
    else if (import->library == MACHO_WEAK) address = one_for_all(import->name);
    else if (library) address = image_export(library, import->name, &is_weak);
    else if (import->library > 0) address = of_the_system(image, import->name);
    else address = official_symbol(import->name);
    if (address) return (struct answer){address, FOUND, NULL};
    if (library) return (struct answer){NULL, STUB, "that library does not have it"};
    return from_table(import->name);
}

void *symbol_anywhere(const char *name) {
    void *address = official_symbol(name);
    return address ? address : from_table(name).address;
}

/* --- a pass over one image --- */

/* `known`: what its names were bound to, those of one definition for all images apart from the others. */
struct pass { struct image *image; struct names known[2], called; };

static void add_called(void *context, const char *name) { names_add(context, name, (void *)1); }

static bool is_datum(const struct pass *pass, const char *name) {
    return !names_get(&pass->called, name);
}

static const char *library_of(const struct image *image, const struct macho_import *import) {
    return import->library > 0 ? image->file.libraries[import->library - 1].name : "any library";
}

/* A name that nothing gives: absent where the image allows it, a stub where it is called, else refused. */
static struct answer settled(const struct pass *pass, const struct macho_import *import) {
    struct answer answer = look_up(pass->image, import);
    if (answer.outcome == FOUND) return answer;
    if (import->is_weak) return (struct answer){NULL, FOUND, NULL};
    if (is_datum(pass, import->name)) answer.outcome = REFUSED;
    return answer;
}

static char stays[1];                           /* stands for an address: nothing is written */

static bool write_fixup(void *context, const struct macho_fixup *fixup) {
    struct pass *pass = context;
    uint8_t *place = (uint8_t *)(fixup->place + pass->image->slide);
    uint64_t value = fixup->value + pass->image->slide;
    if (fixup->is_bind) {
        const struct macho_import *import = &fixup->import;
        struct names *known = &pass->known[import->library == MACHO_WEAK];
        struct name *row = known->room ? names_row(known, import->name) : NULL;
        if (!row || !row->name) {
            struct answer answer = settled(pass, import);
            const char *library = library_of(pass->image, import);
            if (fixup->is_optional && !answer.address) answer = (struct answer){stays, FOUND, NULL};
            if (answer.outcome == REFUSED)
                return fault("%s takes %s from %s: %s", pass->image->path, import->name, library, answer.reason);
            if (answer.outcome == STUB) answer.address = stub_for(import->name, library, answer.reason);
            names_add(known, import->name, answer.address);
            row = names_row(known, import->name);
        }
        if (row->address == stays) return true;
        value = (uint64_t)row->address + (row->address ? fixup->value : 0);
    }
    memcpy(place, &value, sizeof value);
    return true;
}

bool bind_image(struct image *image) {
    struct pass pass = {.image = image};
    struct macho *file = &image->file;
    file->fault[0] = 0;
    macho_called(file, add_called, &pass.called);
    bool is_good = macho_fixups(file, write_fixup, &pass) || (file->fault[0] && fault("%s: %s", image->path, file->fault));
    free(pass.known[0].rows);
    free(pass.known[1].rows);
    free(pass.called.rows);
    return is_good;
}

/* --- stubs: code that names what was called, and raises --- */

struct stub { const char *name, *library, *reason; };
extern char stub_entry[];

void *stub_for(const char *name, const char *library, const char *reason) {
    static uint32_t *code, *end;
    if (code == end) {
        size_t size = 1 << 16;
        code = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (code == MAP_FAILED) abort();
        end = code + size / 4;
    }
    struct stub *stub = malloc(sizeof *stub);
    if (!stub) abort();
    *stub = (struct stub){name, library, reason};
    uint32_t *own = code;
    void *entry = stub_entry;
    own[0] = 0x58000070;                        /* ldr x16, the entry */
    own[1] = 0x58000091;                        /* ldr x17, the stub */
    own[2] = 0xd61f0200;                        /* br x16 */
    memcpy(own + 3, &entry, 8);
    memcpy(own + 5, &stub, 8);
    code += 8;
    __builtin___clear_cache((char *)own, (char *)code);
    return own;
}

struct thrown { void *object, *type, *destroy, *throw; };

/* What `stub_entry` goes on with: the arguments of __cxa_throw, for the caller of the stub to be unwound from. */
void prepare_throw(const struct stub *stub, const void *caller, struct thrown *thrown) {
    struct image *image = image_of(caller);
    char text[1024];
    snprintf(text, sizeof text, "%s calls %s of %s, which cannot be had in a simulation: %s", image ? image->path : "something",
             stub->name + (stub->name[0] == '_'), stub->library, stub->reason);
    fprintf(stderr, "mps-build: %s\n", text);
    void *(*allocate)(size_t) = from_providers("___cxa_allocate_exception");
    void (*construct)(void *, const char *) = from_providers("__ZNSt13runtime_errorC1EPKc");
    *thrown = (struct thrown){NULL, from_providers("__ZTISt13runtime_error"), from_providers("__ZNSt13runtime_errorD1Ev"),
                              from_providers("___cxa_throw")};
    if (!allocate || !construct || !thrown->type || !thrown->throw) abort();
    thrown->object = allocate(16);
    construct(thrown->object, text);
}
