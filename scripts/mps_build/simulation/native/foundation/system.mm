// What the code asks of the system: its version, its log, its loaded images.
#include <Foundation/Foundation.h>
#include <os/mps_build_os.h>
#include <cstdio>
#include <cstdlib>
#include "../runtime/availability.h"

namespace {
struct Version {
  long major = 0, minor = 0;
};
Version told() {
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
  static const Version now = told();
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
