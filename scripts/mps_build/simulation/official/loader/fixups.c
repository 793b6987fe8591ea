/* The pointers of an image that depend on where it and others lie: chained fixups (macOS 12 and newer), and opcodes. */
#include "macho.h"

/* --- both --- */

struct walk { struct macho *image; macho_visitor visit; void *context; uint64_t left; };

static bool emit(struct walk *walk, const struct macho_fixup *fixup) {
    /* No file has more pointers than room for them: what says so would never end. */
    if (!walk->left--) return macho_fail(walk->image, "it has more fixups than room for them");
    return walk->visit(walk->context, fixup);
}

static const struct macho_segment *writable(struct walk *walk, uint64_t place) {
    for (unsigned i = 0; i < walk->image->segment_count; i++) {
        const struct macho_segment *segment = &walk->image->segments[i];
        if (place >= segment->address && segment->size >= 8 && place - segment->address <= segment->size - 8 &&
            segment->protection & MACHO_WRITE)
            return segment;
    }
    macho_fail(walk->image, "a fixup lies outside of what may be written");
    return NULL;
}

/* --- chained: each pointer holds the distance to the next of its page --- */

enum { IMPORT = 1, IMPORT_ADDEND = 2, IMPORT_ADDEND64 = 3, POINTER_64 = 2, POINTER_64_OFFSET = 6, NO_POINTER = 0xffff };

struct chains { const uint8_t *at; uint64_t size, imports, names; uint32_t import_count, format; };

static int ordinal_of(uint32_t number, unsigned bits) {
    uint32_t most = (1u << bits) - 1;
    return number > most - 15 ? (int)number - (int)most - 1 : (int)number;  /* the last ones are negative */
}

static bool read_import(struct macho *image, const struct chains *chains, uint32_t i, struct macho_import *import, uint64_t *addend) {
    if (i >= chains->import_count) return macho_fail(image, "a fixup names an import that is not there");
    uint64_t name;
    *addend = 0;
    if (chains->format == IMPORT_ADDEND64) {
        const uint8_t *row = chains->at + chains->imports + 16ull * i;
        uint64_t word = read64(row);
        *import = (struct macho_import){NULL, ordinal_of(word & 0xffff, 16), word >> 16 & 1};
        name = word >> 32;
        *addend = read64(row + 8);
    } else {
        const uint8_t *row = chains->at + chains->imports + (chains->format == IMPORT ? 4ull : 8ull) * i;
        uint32_t word = read32(row);
        *import = (struct macho_import){NULL, ordinal_of(word & 0xff, 8), word >> 8 & 1};
        name = word >> 9;
        if (chains->format == IMPORT_ADDEND) *addend = (uint64_t)(int64_t)(int32_t)read32(row + 4);
    }
    if (import->library > (int)image->library_count || import->library < MACHO_WEAK)
        return macho_fail(image, "an import names a library that is not there");
    uint64_t at = chains->names + name;
    if (at >= chains->size || !memchr(chains->at + at, 0, chains->size - at))
        return macho_fail(image, "an import's name lies outside of the file");
    import->name = (const char *)chains->at + at;
    return true;
}

static bool walk_chain(struct walk *walk, const struct chains *chains, const struct macho_segment *segment, uint64_t at, uint16_t format) {
    struct macho *image = walk->image;
    for (;;) {
        if (segment->filled < 8 || at > segment->filled - 8 || !writable(walk, segment->address + at))
            return macho_fail(image, "a fixup lies outside of what may be written");
        uint64_t word = read64(image->bytes + segment->offset + at), next = word >> 51 & 0xfff;
        struct macho_fixup fixup = {.place = segment->address + at, .is_bind = word >> 63};
        if (fixup.is_bind) {
            if (!read_import(image, chains, word & 0xffffff, &fixup.import, &fixup.value)) return false;
            fixup.value += word >> 24 & 0xff;
        } else {
            fixup.value = (word & 0xfffffffffull) + (format == POINTER_64_OFFSET ? image->header : 0) + ((word >> 36 & 0xff) << 56);
        }
        if (!emit(walk, &fixup)) return false;
        if (!next) return true;
        at += next * 4;
    }
}

static bool walk_segment(struct walk *walk, const struct chains *chains, const struct macho_segment *segment, const uint8_t *starts, uint64_t size) {
    if (size < 22) return macho_fail(walk->image, "the fixups of segment %s are cut off", segment->name);
    uint16_t page = read16(starts + 4), format = read16(starts + 6), count = read16(starts + 20);
    if (format != POINTER_64 && format != POINTER_64_OFFSET)
        return macho_fail(walk->image, "its fixups have the pointer format %u, which is not known", format);
    if (count > (size - 22) / 2 || !page) return macho_fail(walk->image, "the fixups of segment %s are cut off", segment->name);
    for (uint32_t i = 0; i < count; i++) {
        uint16_t first = read16(starts + 22 + 2 * i);
        if (first == NO_POINTER) continue;
        if (first >= page) return macho_fail(walk->image, "the fixups of segment %s are damaged", segment->name);
        if (!walk_chain(walk, chains, segment, (uint64_t)page * i + first, format)) return false;
    }
    return true;
}

static bool chained(struct walk *walk) {
    struct macho *image = walk->image;
    struct chains chains = {.at = image->bytes + image->chains.offset, .size = image->chains.size};
    if (chains.size < 28) return macho_fail(image, "its fixups are cut off");
    uint64_t starts = read32(chains.at + 4);
    chains.imports = read32(chains.at + 8);
    chains.names = read32(chains.at + 12);
    chains.import_count = read32(chains.at + 16);
    chains.format = read32(chains.at + 20);
    if (chains.format < IMPORT || chains.format > IMPORT_ADDEND64 || read32(chains.at + 24))
        return macho_fail(image, "its imports are of a kind that is not known");
    uint64_t row = chains.format == IMPORT ? 4 : chains.format == IMPORT_ADDEND ? 8 : 16;
    if (chains.imports > chains.size || chains.import_count > (chains.size - chains.imports) / row)
        return macho_fail(image, "its imports exceed its fixups");
    if (starts > chains.size || chains.size - starts < 4) return macho_fail(image, "its fixups are cut off");
    uint32_t count = read32(chains.at + starts);
    if (count > image->segment_count || count > (chains.size - starts - 4) / 4)
        return macho_fail(image, "its fixups name more segments than it has");
    for (uint32_t i = 0; i < count; i++) {
        uint64_t offset = read32(chains.at + starts + 4 + 4ull * i);
        if (!offset) continue;
        if (offset > chains.size - starts) return macho_fail(image, "its fixups are cut off");
        if (!walk_segment(walk, &chains, &image->segments[i], chains.at + starts + offset, chains.size - starts - offset))
            return false;
    }
    return true;
}

/* --- opcodes: a little program that moves over the segments --- */

static bool place_of(struct walk *walk, unsigned segment, uint64_t offset, uint64_t *place) {
    if (segment >= walk->image->segment_count) return macho_fail(walk->image, "a fixup names a segment that is not there");
    *place = walk->image->segments[segment].address + offset;
    return true;
}

static bool rebase_run(struct walk *walk, uint64_t *place, uint64_t count, uint64_t step) {
    for (; count; count--, *place += step) {
        if (!writable(walk, *place)) return false;
        const uint8_t *at = macho_bytes(walk->image, *place, 8);
        struct macho_fixup fixup = {.place = *place, .value = at ? read64(at) : 0};
        if (!emit(walk, &fixup)) return false;
    }
    return true;
}

static bool rebases(struct walk *walk, struct macho_range range) {
    struct cursor in = {walk->image->bytes + range.offset, walk->image->bytes + range.offset + range.size, false};
    uint64_t place = 0, count;
    bool goes_on = true;
    while (goes_on && in.at < in.end && !in.is_damaged) {
        uint8_t byte = read_byte(&in), low = byte & 15;
        switch (byte & 0xf0) {
        case 0x00: goes_on = false; break;
        case 0x10: break;                                                       /* the type: always a pointer */
        case 0x20: if (!place_of(walk, low, read_uleb(&in), &place)) return false; break;
        case 0x30: place += read_uleb(&in); break;
        case 0x40: place += 8 * low; break;
        case 0x50: if (!rebase_run(walk, &place, low, 8)) return false; break;
        case 0x60: count = read_uleb(&in); if (in.is_damaged || !rebase_run(walk, &place, count, 8)) return false; break;
        case 0x70: if (!rebase_run(walk, &place, 1, 8 + read_uleb(&in))) return false; break;
        case 0x80: count = read_uleb(&in); if (!rebase_run(walk, &place, count, 8 + read_uleb(&in))) return false; break;
        default: return macho_fail(walk->image, "a rebase has the opcode %#x, which is not known", byte);
        }
    }
    return !in.is_damaged || macho_fail(walk->image, "its rebases are cut off");
}

static bool bind_run(struct walk *walk, uint64_t *place, const struct macho_fixup *what, uint64_t count, uint64_t step) {
    if (!what->import.name) return macho_fail(walk->image, "a bind has no name");
    for (; count; count--, *place += step) {
        if (!writable(walk, *place)) return false;
        struct macho_fixup fixup = *what;
        fixup.place = *place;
        if (!emit(walk, &fixup)) return false;
    }
    return true;
}

/* Lazy binds have an end after each; of weak ones the library is what all images give. */
static bool binds(struct walk *walk, struct macho_range range, bool is_lazy, bool is_weak) {
    struct macho *image = walk->image;
    struct cursor in = {image->bytes + range.offset, image->bytes + range.offset + range.size, false};
    struct macho_fixup what = {.is_bind = true, .is_optional = is_weak, .import = {NULL, is_weak ? MACHO_WEAK : MACHO_SELF, false}};
    uint64_t place = 0, count;
    bool goes_on = true;
    while (goes_on && in.at < in.end && !in.is_damaged) {
        uint8_t byte = read_byte(&in), low = byte & 15;
        switch (byte & 0xf0) {
        case 0x00: goes_on = is_lazy; break;
        case 0x10: what.import.library = low; break;
        case 0x20: count = read_uleb(&in); what.import.library = count > MACHO_MOST_LIBRARIES ? MACHO_MOST_LIBRARIES + 1 : (int)count; break;
        case 0x30: what.import.library = low ? (int)low - 16 : 0; break;
        case 0x40: what.import.name = read_text(&in); what.import.is_weak = low & 1; break;
        case 0x50: break;                                                       /* the type: always a pointer */
        case 0x60: what.value = (uint64_t)read_sleb(&in); break;
        case 0x70: if (!place_of(walk, low, read_uleb(&in), &place)) return false; break;
        case 0x80: place += read_uleb(&in); break;
        case 0x90: if (!bind_run(walk, &place, &what, 1, 8)) return false; break;
        case 0xa0: if (!bind_run(walk, &place, &what, 1, 8 + read_uleb(&in))) return false; break;
        case 0xb0: if (!bind_run(walk, &place, &what, 1, 8 + 8 * low)) return false; break;
        case 0xc0: count = read_uleb(&in); if (!bind_run(walk, &place, &what, count, 8 + read_uleb(&in))) return false; break;
        default: return macho_fail(image, "a bind has the opcode %#x, which is not known", byte);
        }
        if (what.import.library > (int)image->library_count || what.import.library < MACHO_WEAK)
            return macho_fail(image, "an import names a library that is not there");
    }
    return !in.is_damaged || macho_fail(image, "its binds are cut off");
}

bool macho_fixups(struct macho *image, macho_visitor visit, void *context) {
    struct walk walk = {image, visit, context, (image->high - image->low) / 4 + 1};
    if (image->chains.size) return chained(&walk);
    return rebases(&walk, image->rebases) && binds(&walk, image->binds, false, false) &&
           binds(&walk, image->lazy_binds, true, false) && binds(&walk, image->weak_binds, false, true);
}
