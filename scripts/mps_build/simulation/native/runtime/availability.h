// Since which macOS things exist: the rows are made of availability.yaml by the builder.
#pragma once
#include <string>
#include "objects.h"

namespace sim {
struct Since {
  const char *type, *name; // a selector, a constant, or "": the type itself
  long major, minor;
};
extern const Since since_rows[];
extern const size_t since_count;

bool is_macos_at_least(long major, long minor);
// The macOS that this answers as: "14.4".
std::string macos_told();
// The row by which a class, or one of its methods, is not there yet; nullptr: it is there, or unknown.
const Since *missing_class(const Class *type);
const Since *missing_method(const Class *type, const char *selector);
// "-[MPSGraph topKWithSourceTensor:axis:k:name:] exists since macOS 14.0, this answers as 13.3"
std::string says(const Since &row, const std::string &what);
// Refuses a constant that this macOS does not have.
void need_constant(const std::string &name);
} // namespace sim
