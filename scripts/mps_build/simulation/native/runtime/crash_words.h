// The words of a crash, made of the names of its frames: in C, for the loader of macOS wheels as well. Nothing here
// allocates, since the heap may be what is damaged.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// As many characters of frames as fit into the reason of a case.
enum { CRASH_CHARACTERS = 500, CRASH_NAME = 400 };

struct crash_words {
  char frames[CRASH_CHARACTERS + 200], last[CRASH_NAME], operation[200], selector[300];
  const char *file; // of the last frame, as it was given
  size_t used;
};

// `_ZN2at6native3dotERKNS_6TensorES3_` -> `at::native::dot`, a block within it too; any other name as it is.
static inline void crash_plain(char *to, size_t room, const char *name) {
  const char *mangled = name;
  while (strncmp(mangled, "__", 2) == 0) mangled++; // of a block
  const char *at = strncmp(mangled, "_Z", 2) == 0 ? strpbrk(mangled, "N123456789") : NULL;
  size_t used = 0;
  if (at && *at == 'N') at += strspn(at + 1, "KVrRO") + 1;
  while (at && *at >= '1' && *at <= '9') {
    char *end;
    const size_t length = strtoul(at, &end, 10);
    if (strlen(end) < length || used + length + 3 > room) break;
    if (used) used += (size_t)snprintf(to + used, room - used, "::");
    const int is_nameless = strncmp(end, "_GLOBAL__N", 10) == 0;
    used += (size_t)snprintf(to + used, room - used, "%.*s", is_nameless ? 1 : (int)length, is_nameless ? "~" : end);
    at = end + length;
    if (*at == 'L') at++; // a function of one file
  }
  if (!used) snprintf(to, room, "%s", name);
}

// Adds a frame, the innermost first. `file`: said where it differs from the last frame's; NULL: not said at all. A frame
// without a name, or an overload of the last one, is left out. Returns whether there is room for more.
static inline int crash_frame(struct crash_words *words, const char *name, const char *file) {
  char plain[CRASH_NAME];
  if (words->used >= CRASH_CHARACTERS) return 0;
  if (!name) return 1;
  crash_plain(plain, sizeof plain, name);
  if (!*words->selector && (strncmp(plain, "-[", 2) == 0 || strncmp(plain, "+[", 2) == 0))
    snprintf(words->selector, sizeof words->selector, "%.299s", plain);
  if (!*words->operation && strncmp(plain, "at::_ops::", 10) == 0) {
    snprintf(words->operation, sizeof words->operation, "%.199s", plain + 10);
    char *end = strstr(words->operation, "::");
    if (end) *end = 0;
  }
  if (strcmp(plain, words->last) == 0) return 1;
  const size_t room = sizeof words->frames - words->used;
  const int is_new = file && (!words->file || strcmp(file, words->file) != 0);
  words->used += (size_t)snprintf(words->frames + words->used, room, "%s%s%.60s%s%.90s", words->used ? " < " : "", is_new ? "[" : "",
                                  is_new ? file : "", is_new ? "] " : "", plain);
  words->file = file ? file : words->file;
  snprintf(words->last, sizeof words->last, "%s", plain);
  return 1;
}

// Two lines: who reads a process's last ones has what stood before them as well, such as a failed assertion. `operation`,
// where no frame says it, and `command`, what the GPU ran, may be NULL. Returns the number of characters.
static inline size_t crash_said(const struct crash_words *words, char *to, size_t room, int number, const char *signal,
                                const char *operation, const char *command) {
  operation = *words->operation ? words->operation : operation ? operation : "(none)";
  snprintf(to, room, "software Metal: signal %d (%s), operator %s, selector %s%s%.120s\nnative frames: %s\n", number, signal,
           operation, *words->selector ? words->selector : "(none)", command ? ", the GPU ran " : "", command ? command : "",
           words->frames);
  return strlen(to);
}
