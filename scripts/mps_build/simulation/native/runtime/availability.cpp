// What a version of macOS lacks is absent: asked when classes are entered, and again where something was not found.
#include "availability.h"
#include <cstring>

namespace sim {
namespace {
// As clang writes it; what lies behind is not needed.
struct Protocol {
  void *isa;
  const char *name;
  struct Protocols *inherited;
};
struct Protocols {
  intptr_t count;
  Protocol *first[];
};

bool adopts(const Protocols *list, const char *name) {
  for (intptr_t i = 0; list && i < list->count; i++)
    if (!strcmp(list->first[i]->name, name) || adopts(list->first[i]->inherited, name)) return true;
  return false;
}
// Classes of ours adopt Metal's protocols; a row of a class is meant for what inherits from it.
bool is_a(const Class *type, const char *name) {
  for (; type; type = type->superclass)
    if (!strcmp(type->data->name, name) || adopts((const Protocols *)type->data->protocols, name)) return true;
  return false;
}
const Since *missing(const Class *type, const char *name) {
  for (size_t i = 0; i < since_count; i++) {
    auto &row = since_rows[i];
    if (!strcmp(row.name, name) && !is_macos_at_least(row.major, row.minor) && is_a(type, row.type)) return &row;
  }
  return nullptr;
}
} // namespace

const Since *missing_class(const Class *type) { return missing(type, ""); }
const Since *missing_method(const Class *type, const char *selector) { return missing(type, selector); }

std::string says(const Since &row, const std::string &what) {
  return what + " exists since macOS " + std::to_string(row.major) + "." + std::to_string(row.minor) + ", this answers as " +
      macos_told();
}

void need_constant(const std::string &name) {
  for (size_t i = 0; i < since_count; i++)
    if (name == since_rows[i].name && !is_macos_at_least(since_rows[i].major, since_rows[i].minor))
      refuse(says(since_rows[i], name));
}
} // namespace sim
