// What host code asks IOKit and CoreFoundation: how many cores the GPU has. Objects of CoreFoundation are ours.
#include <Foundation/Foundation.h>
#include <atomic>
#include <cstring>
#include "../runtime/objects.h"

namespace {
constexpr int kCores = 8; // assumed, as of the smallest M1 but one
constexpr unsigned kGpu = 1;
std::atomic<unsigned> last_iterator{kGpu};
thread_local unsigned used_iterator = 0;
} // namespace

extern "C" {
const void *kCFAllocatorDefault = nullptr;
unsigned kIOMainPortDefault = 0, kIOMasterPortDefault = 0;

const void *IOServiceMatching(const char *name) {
  return [[NSString stringWithUTF8String:name] retain];
}
// Takes the description, and gives an iterator over one service: the GPU, whatever is asked for.
int IOServiceGetMatchingServices(unsigned, const void *description, unsigned *found) {
  objc_release((void *)description);
  *found = ++last_iterator;
  return 0;
}
unsigned IOIteratorNext(unsigned iterator) {
  if (used_iterator == iterator) return 0;
  used_iterator = iterator;
  return kGpu;
}
unsigned IORegistryEntryFromPath(unsigned, const char *) { return 0; }
const void *IORegistryEntryCreateCFProperty(unsigned entry, const void *key, const void *, unsigned) {
  const bool is_known = entry == kGpu && [(NSString *)key isEqualToString:@"gpu-core-count"];
  return is_known ? [[NSNumber numberWithInt:kCores] retain] : nil;
}
int IOObjectRelease(unsigned) { return 0; }

void CFRelease(const void *object) { objc_release((void *)object); }
unsigned char CFNumberGetValue(const void *given, long type, void *value) {
  auto *number = (NSNumber *)given;
  switch (type) {
    case 1: case 7: *(char *)value = [number charValue]; return 1;
    case 2: case 8: *(short *)value = [number shortValue]; return 1;
    case 3: case 9: *(int *)value = [number intValue]; return 1;
    case 4: case 10: case 11: case 14: *(long long *)value = [number longLongValue]; return 1;
    case 5: case 12: *(float *)value = [number floatValue]; return 1;
    case 6: case 13: *(double *)value = [number doubleValue]; return 1;
    default: return 0;
  }
}
unsigned char CFStringGetCString(const void *given, char *text, long size, unsigned) {
  const char *bytes = [(NSString *)given UTF8String];
  const size_t length = strlen(bytes);
  if (size <= 0 || length >= (size_t)size) return 0;
  memcpy(text, bytes, length + 1);
  return 1;
}
}
