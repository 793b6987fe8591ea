/* Load commands, symbols and exports of a Mach-O file. */
#include "macho.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ARM64 = 0x0100000c, ARM64E = 2 };
enum { LC_SYMTAB = 0x2, LC_DYSYMTAB = 0xb, LC_LOAD_DYLIB = 0xc, LC_ID_DYLIB = 0xd, LC_SEGMENT_64 = 0x19,
       LC_DYLD_INFO = 0x22, LC_ENCRYPTION_INFO_64 = 0x2c };
#define LC_REQUIRED 0x80000000u
#define LC_LOAD_WEAK_DYLIB (0x18 | LC_REQUIRED)
#define LC_RPATH (0x1c | LC_REQUIRED)
#define LC_REEXPORT_DYLIB (0x1f | LC_REQUIRED)
#define LC_LOAD_UPWARD_DYLIB (0x23 | LC_REQUIRED)
#define LC_EXPORTS_TRIE (0x33 | LC_REQUIRED)
#define LC_CHAINED_FIXUPS (0x34 | LC_REQUIRED)
#define MOST_ADDRESSES (1ull << 36)
#define PAGE 0xfff

bool macho_fail(struct macho *image, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(image->fault, sizeof image->fault, format, list);
    va_end(list);
    return false;
}

static bool in_file(const struct macho *image, struct macho_range range) {
    return range.offset <= image->size && range.size <= image->size - range.offset;
}

/* A range that a load command names. */
static bool ranged(struct macho *image, struct macho_range *range, const uint8_t *command, const char *what) {
    *range = (struct macho_range){read32(command), read32(command + 4)};
    return in_file(image, *range) || macho_fail(image, "its %s lie outside of the file", what);
}

/* The text of a load command: it must end inside of it. */
static const char *text_of(const uint8_t *command, uint32_t size, uint32_t offset) {
    if (offset >= size || !memchr(command + offset, 0, size - offset)) return NULL;
    return (const char *)command + offset;
}

static void copy_name(char *to, const uint8_t *from) {
    memcpy(to, from, 16);
    to[16] = 0;
}

static bool add_section(struct macho *image, const struct macho_segment *segment, const uint8_t *row) {
    if (image->section_count == MACHO_MOST_SECTIONS) return macho_fail(image, "it has too many sections");
    struct macho_section *section = &image->sections[image->section_count++];
    copy_name(section->name, row);
    copy_name(section->segment, row + 16);
    section->address = read64(row + 32);
    section->size = read64(row + 40);
    section->type = read32(row + 64) & 0xff;
    section->first = read32(row + 68);
    section->stride = read32(row + 72);
    if (section->address < segment->address || section->address - segment->address > segment->size ||
        section->size > segment->size - (section->address - segment->address))
        return macho_fail(image, "section %s lies outside of segment %s", section->name, segment->name);
    uint64_t unit = section->type == MACHO_INITIALISERS            ? 8
                    : section->type == MACHO_THREAD_VARIABLES      ? 24
                    : section->type == MACHO_INITIALISER_OFFSETS   ? 4
                    : section->type == MACHO_STUBS                 ? (section->stride ? section->stride : 1)
                                                                   : 1;
    if (section->size % unit) return macho_fail(image, "section %s is not a whole number of entries", section->name);
    if (section->type == MACHO_THREAD_VARIABLES && !(segment->protection & MACHO_WRITE))
        return macho_fail(image, "section %s is not in a segment that may be written", section->name);
    return true;
}

static bool add_segment(struct macho *image, const uint8_t *command, uint32_t size) {
    if (size < 72) return macho_fail(image, "a segment command is too short");
    if (image->segment_count == MACHO_MOST_SEGMENTS) return macho_fail(image, "it has too many segments");
    struct macho_segment *segment = &image->segments[image->segment_count++];
    copy_name(segment->name, command + 8);
    segment->address = read64(command + 24);
    segment->size = read64(command + 32);
    segment->offset = read64(command + 40);
    segment->filled = read64(command + 48);
    segment->protection = read32(command + 60) & 7;
    uint32_t count = read32(command + 64);
    if (segment->filled > segment->size || !in_file(image, (struct macho_range){segment->offset, segment->filled}))
        return macho_fail(image, "segment %s lies outside of the file", segment->name);
    if (segment->address & PAGE || segment->size > MOST_ADDRESSES || segment->address > UINT64_MAX - MOST_ADDRESSES)
        return macho_fail(image, "segment %s has an impossible address or size", segment->name);
    if ((segment->protection & MACHO_WRITE) && (segment->protection & MACHO_EXECUTE))
        return macho_fail(image, "segment %s may be written and executed", segment->name);
    if (count > (size - 72) / 80) return macho_fail(image, "the sections of segment %s exceed its command", segment->name);
    for (uint32_t i = 0; i < count; i++)
        if (!add_section(image, segment, command + 72 + 80 * i)) return false;
    return true;
}

static bool add_library(struct macho *image, uint32_t kind, const uint8_t *command, uint32_t size) {
    const char *name = size < 24 ? NULL : text_of(command, size, read32(command + 8));
    if (!name) return macho_fail(image, "a library's name exceeds its command");
    if (kind == LC_ID_DYLIB) {
        image->name = name;
        return true;
    }
    if (image->library_count == MACHO_MOST_LIBRARIES) return macho_fail(image, "it needs too many libraries");
    image->libraries[image->library_count++] =
        (struct macho_library){name, kind == LC_LOAD_WEAK_DYLIB, kind == LC_REEXPORT_DYLIB};
    return true;
}

static bool add_symbols(struct macho *image, const uint8_t *command) {
    struct macho_range table = {read32(command + 8), (uint64_t)read32(command + 12) * 16};
    if (!in_file(image, table) || !ranged(image, &image->strings, command + 16, "symbols' names"))
        return macho_fail(image, "its symbols lie outside of the file");
    image->symbols = table.offset;
    image->symbol_count = table.size / 16;
    return true;
}

static bool add_command(struct macho *image, uint32_t kind, const uint8_t *command, uint32_t size) {
    switch (kind) {
    case LC_SEGMENT_64:
        return add_segment(image, command, size);
    case LC_LOAD_DYLIB: case LC_LOAD_WEAK_DYLIB: case LC_REEXPORT_DYLIB: case LC_LOAD_UPWARD_DYLIB: case LC_ID_DYLIB:
        return add_library(image, kind, command, size);
    case LC_RPATH: {
        const char *path = size < 12 ? NULL : text_of(command, size, read32(command + 8));
        if (!path || image->rpath_count == MACHO_MOST_RPATHS) return macho_fail(image, "its search paths are damaged");
        image->rpaths[image->rpath_count++] = path;
        return true;
    }
    case LC_SYMTAB:
        return size >= 24 ? add_symbols(image, command) : macho_fail(image, "its symbol command is too short");
    case LC_DYSYMTAB: {
        if (size < 80) return macho_fail(image, "its indirect symbol command is too short");
        image->indirect = (struct macho_range){read32(command + 56), (uint64_t)read32(command + 60) * 4};
        return in_file(image, image->indirect) || macho_fail(image, "its indirect symbols lie outside of the file");
    }
    case LC_DYLD_INFO: case LC_DYLD_INFO | LC_REQUIRED:
        if (size < 48) return macho_fail(image, "its fixup command is too short");
        return ranged(image, &image->rebases, command + 8, "rebases") && ranged(image, &image->binds, command + 16, "binds") &&
               ranged(image, &image->weak_binds, command + 24, "weak binds") &&
               ranged(image, &image->lazy_binds, command + 32, "lazy binds") &&
               ranged(image, &image->exports, command + 40, "exports");
    case LC_EXPORTS_TRIE:
        return size >= 16 ? ranged(image, &image->exports, command + 8, "exports") : macho_fail(image, "its exports command is too short");
    case LC_CHAINED_FIXUPS:
        return size >= 16 ? ranged(image, &image->chains, command + 8, "fixups") : macho_fail(image, "its fixup command is too short");
    case LC_ENCRYPTION_INFO_64:
        return (size >= 20 && read32(command + 16) == 0) || macho_fail(image, "it is encrypted");
    default:
        return true;
    }
}

/* All segments are there: they must not overlap, and one must hold the header. */
static bool check_addresses(struct macho *image) {
    image->low = UINT64_MAX;
    bool has_header = false;
    for (unsigned i = 0; i < image->segment_count; i++) {
        const struct macho_segment *one = &image->segments[i];
        if (!one->size) continue;
        if (one->address < image->low) image->low = one->address;
        if (one->address + one->size > image->high) image->high = one->address + one->size;
        if (one->offset == 0 && one->filled >= 32 && !has_header) has_header = true, image->header = one->address;
        for (unsigned j = 0; j < i; j++) {
            const struct macho_segment *other = &image->segments[j];
            uint64_t end = (one->address + one->size + PAGE) & ~(uint64_t)PAGE;
            uint64_t other_end = (other->address + other->size + PAGE) & ~(uint64_t)PAGE;
            if (other->size && one->address < other_end && other->address < end)
                return macho_fail(image, "segments %s and %s overlap", one->name, other->name);
        }
    }
    if (!has_header) return macho_fail(image, "no segment holds its header");
    return image->high - image->low <= MOST_ADDRESSES || macho_fail(image, "its segments lie too far apart");
}

static bool parse_thin(struct macho *image) {
    const uint8_t *bytes = image->bytes;
    if (image->size < 32 || read32(bytes) != 0xfeedfacf) return macho_fail(image, "it is not a 64-bit Mach-O file");
    if (read32(bytes + 4) != ARM64) return macho_fail(image, "it is not for arm64");
    if ((read32(bytes + 8) & 0xffffff) == ARM64E) return macho_fail(image, "it is for arm64e, whose pointers are signed");
    uint32_t type = read32(bytes + 12), count = read32(bytes + 16), left = read32(bytes + 20);
    if (type != 6 && type != 8) return macho_fail(image, "it is neither a library nor a bundle (type %u)", type);
    if (left > image->size - 32) return macho_fail(image, "its load commands exceed the file");
    for (const uint8_t *command = bytes + 32; count--;) {
        uint32_t size = left < 8 ? 0 : read32(command + 4);
        if (size < 8 || size > left || size % 4) return macho_fail(image, "a load command has an impossible size");
        if (!add_command(image, read32(command), command, size)) return false;
        command += size;
        left -= size;
    }
    return check_addresses(image);
}

bool macho_parse(struct macho *image, const uint8_t *bytes, uint64_t size) {
    memset(image, 0, sizeof *image);
    image->bytes = bytes;
    image->size = size;
    uint32_t magic = size < 8 ? 0 : read_big32(bytes);
    if (magic != 0xcafebabe && magic != 0xcafebabf) return parse_thin(image);
    uint32_t count = read_big32(bytes + 4), row = magic == 0xcafebabf ? 32 : 20;
    if (count > (size - 8) / row || count > 64) return macho_fail(image, "its list of architectures exceeds the file");
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *at = bytes + 8 + (uint64_t)row * i;
        if (read_big32(at) != ARM64 || (read_big32(at + 4) & 0xffffff) == ARM64E) continue;
        uint64_t offset = row == 32 ? read_big64(at + 8) : read_big32(at + 8);
        uint64_t length = row == 32 ? read_big64(at + 16) : read_big32(at + 12);
        if (!in_file(image, (struct macho_range){offset, length}) || offset & PAGE)
            return macho_fail(image, "its arm64 part lies outside of the file");
        image->bytes = bytes + offset;
        image->size = length;
        image->slice = offset;
        return parse_thin(image);
    }
    return macho_fail(image, "it is a universal file without an arm64 part");
}

const struct macho_section *macho_section(const struct macho *image, const char *segment, const char *name) {
    for (unsigned i = 0; i < image->section_count; i++)
        if (!strcmp(image->sections[i].name, name) && (!segment || !strcmp(image->sections[i].segment, segment)))
            return &image->sections[i];
    return NULL;
}

bool macho_symbol(const struct macho *image, uint64_t i, struct macho_symbol *symbol) {
    if (i >= image->symbol_count) return false;
    const uint8_t *row = image->bytes + image->symbols + 16 * i;
    uint32_t at = read32(row);
    if (at >= image->strings.size) return false;
    const char *name = (const char *)image->bytes + image->strings.offset + at;
    if (!memchr(name, 0, image->strings.size - at)) return false;
    bool is_debug = row[4] & 0xe0;
    *symbol = (struct macho_symbol){.name = name,
                                    .address = read64(row + 8),
                                    .is_defined = !is_debug && (row[4] & 0x0e) == 0x0e,
                                    .is_external = !is_debug && row[4] & 0x01,
                                    .is_private = !is_debug && row[4] & 0x10};
    return true;
}

void macho_called(const struct macho *image, macho_name_visitor visit, void *context) {
    for (unsigned i = 0; i < image->section_count; i++) {
        const struct macho_section *section = &image->sections[i];
        if (section->type != MACHO_STUBS || !section->stride) continue;
        for (uint64_t j = 0; j < section->size / section->stride; j++) {
            uint64_t at = (section->first + j) * 4;
            struct macho_symbol symbol;
            if (at + 4 > image->indirect.size) return;
            if (macho_symbol(image, read32(image->bytes + image->indirect.offset + at), &symbol)) visit(context, symbol.name);
        }
    }
}

const uint8_t *macho_bytes(const struct macho *image, uint64_t address, uint64_t size) {
    for (unsigned i = 0; i < image->segment_count; i++) {
        const struct macho_segment *segment = &image->segments[i];
        if (address < segment->address || address - segment->address > segment->filled) continue;
        if (size <= segment->filled - (address - segment->address))
            return image->bytes + segment->offset + (address - segment->address);
    }
    return NULL;
}

bool macho_is_executable(const struct macho *image, uint64_t address) {
    for (unsigned i = 0; i < image->segment_count; i++) {
        const struct macho_segment *segment = &image->segments[i];
        if (address >= segment->address && address - segment->address < segment->size && !(address & 3))
            return segment->protection & MACHO_EXECUTE;
    }
    return false;
}

/* --- the exports trie: each node has what is exported under the name so far, and edges with more of the name --- */

static int read_export(struct macho *image, struct cursor node, struct macho_export *found) {
    uint64_t flags = read_uleb(&node);
    *found = (struct macho_export){.is_weak = flags & 4, .is_thread_local = (flags & 3) == 1, .is_absolute = (flags & 3) == 2};
    if (flags & 8) {
        uint64_t library = read_uleb(&node);
        found->other = read_text(&node);
        if (!found->other || library == 0 || library > image->library_count)
            return macho_fail(image, "a re-export names no library of the image") - 1;
        found->library = (int)library;
        return 1;
    }
    found->address = read_uleb(&node);
    if (node.is_damaged) return macho_fail(image, "an export is damaged") - 1;
    if (!found->is_absolute) {
        found->address += image->header;
        if (found->address < image->low || found->address >= image->high)
            return macho_fail(image, "an export lies outside of the image") - 1;
    }
    return 1;
}

int macho_export(struct macho *image, const char *name, struct macho_export *found) {
    if (!image->exports.size) return 0;
    const uint8_t *trie = image->bytes + image->exports.offset, *end = trie + image->exports.size;
    uint64_t at = 0;
    for (;;) {
        struct cursor node = {trie + at, end, false};
        uint64_t terminal = read_uleb(&node);
        if (node.is_damaged || terminal > (uint64_t)(end - node.at)) break;
        struct cursor children = {node.at + terminal, end, false};
        if (!*name) return terminal ? read_export(image, (struct cursor){node.at, node.at + terminal, false}, found) : 0;
        uint64_t count = read_byte(&children);
        const char *rest = NULL;
        while (count-- && !rest) {
            const char *edge = read_text(&children);
            uint64_t child = read_uleb(&children);
            if (!edge || !*edge || children.is_damaged || child >= image->exports.size)
                return macho_fail(image, "its exports are damaged") - 1;
            size_t length = strlen(edge);
            if (!strncmp(name, edge, length)) rest = name + length, at = child;
        }
        if (children.is_damaged) break;
        if (!rest) return 0;
        name = rest;
    }
    return macho_fail(image, "its exports are damaged") - 1;
}
