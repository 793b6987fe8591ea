// The system: its version, what a version of macOS has, its log.
#include <Foundation/Foundation.h>
#include <os/mps_build_os.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "../runtime/availability.h"

namespace {
struct Version {
  long major = 0, minor = 0;
};
Version given() {
  Version said;
  sscanf(sim::macos_told().c_str(), "%ld.%ld", &said.major, &said.minor);
  return said;
}
} // namespace

namespace sim {
// MPS_BUILD_MACOS as 14.4; the session sets it.
std::string macos_told() {
  const char *text = getenv("MPS_BUILD_MACOS");
  return text ? text : "15.2";
}
bool is_macos_at_least(long major, long minor) {
  static const Version now = given();
  return now.major > major || (now.major == major && now.minor >= minor);
}
} // namespace sim

@implementation NSProcessInfo
+ (NSProcessInfo *)processInfo {
  static auto *one = [NSProcessInfo new];
  return one;
}
- (BOOL)isOperatingSystemAtLeastVersion:(NSOperatingSystemVersion)version {
  return sim::is_macos_at_least(version.majorVersion, version.minorVersion);
}
@end

extern "C" {
void sim_os_release(void *) {}
os_log_t os_log_create(const char *, const char *) { return (os_log_t)[NSObject new]; }
bool os_signpost_enabled(os_log_t) { return false; }
os_signpost_id_t os_signpost_id_generate(os_log_t) { return 1; }
os_signpost_id_t os_signpost_id_make_with_pointer(os_log_t, const void *pointer) { return (os_signpost_id_t)pointer; }
void _os_signpost_emit_with_name_impl(
    void *, os_log_t, os_signpost_type_t, os_signpost_id_t, const char *, const char *, uint8_t *, uint32_t) {}
// `@available` of a .mm: clang calls this with the version that the code asks for.
int32_t __isPlatformVersionAtLeast(uint32_t, uint32_t major, uint32_t minor, uint32_t) {
  return sim::is_macos_at_least(major, minor);
}
int32_t __isOSVersionAtLeast(int32_t major, int32_t minor, int32_t) { return sim::is_macos_at_least(major, minor); }
}

// What a version of macOS lacks is absent: looked up when classes are entered, and again where something was not found.
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
