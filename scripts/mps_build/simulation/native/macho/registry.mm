// What host code asks IOKit and CoreFoundation: how many cores the GPU has. Objects of CoreFoundation are ours.
#include <CoreFoundation/CoreFoundation.h>
#include <Foundation/Foundation.h>
#include <IOKit/IOKitLib.h>
#include <atomic>
#include <cstring>
#include "../runtime/objects.h"

namespace {
constexpr int kCores = 8; // assumed, as of an M1
constexpr io_object_t kGpu = 1;
std::atomic<io_iterator_t> last_iterator{kGpu};
thread_local io_iterator_t used_iterator = 0;
} // namespace

extern "C" {
const CFAllocatorRef kCFAllocatorDefault = nullptr;
const mach_port_t kIOMainPortDefault = 0, kIOMasterPortDefault = 0;

CFMutableDictionaryRef IOServiceMatching(const char *name) {
  return (CFMutableDictionaryRef)[[NSString stringWithUTF8String:name] retain];
}
// Takes the description, and gives an iterator over one service: the GPU, whatever the description says.
kern_return_t IOServiceGetMatchingServices(mach_port_t, CFDictionaryRef description, io_iterator_t *found) {
  objc_release((void *)description);
  *found = ++last_iterator;
  return 0;
}
io_object_t IOIteratorNext(io_iterator_t iterator) {
  if (used_iterator == iterator) return 0;
  used_iterator = iterator;
  return kGpu;
}
io_registry_entry_t IORegistryEntryFromPath(mach_port_t, const io_string_t) { return 0; }
CFTypeRef IORegistryEntryCreateCFProperty(io_registry_entry_t entry, CFStringRef key, CFAllocatorRef, IOOptionBits) {
  const bool is_known = entry == kGpu && [(NSString *)key isEqualToString:@"gpu-core-count"];
  return is_known ? (CFTypeRef)[[NSNumber numberWithInt:kCores] retain] : nullptr;
}
kern_return_t IOObjectRelease(io_object_t) { return 0; }

void CFRelease(CFTypeRef object) { objc_release((void *)object); }
Boolean CFNumberGetValue(CFNumberRef given, CFNumberType type, void *value) {
  auto *number = (NSNumber *)given;
  switch (type) {
    case kCFNumberSInt8Type: case kCFNumberCharType: *(char *)value = [number charValue]; return true;
    case kCFNumberSInt16Type: case kCFNumberShortType: *(short *)value = [number shortValue]; return true;
    case kCFNumberSInt32Type: case kCFNumberIntType: *(int *)value = [number intValue]; return true;
    case kCFNumberSInt64Type: case kCFNumberLongType: case kCFNumberLongLongType: case kCFNumberCFIndexType:
    case kCFNumberNSIntegerType: *(long *)value = [number longValue]; return true;
    case kCFNumberFloat32Type: case kCFNumberFloatType: *(float *)value = [number floatValue]; return true;
    case kCFNumberFloat64Type: case kCFNumberDoubleType: case kCFNumberCGFloatType:
      *(double *)value = [number doubleValue];
      return true;
  }
  return false;
}
Boolean CFStringGetCString(CFStringRef given, char *text, CFIndex size, CFStringEncoding) {
  const char *bytes = [(NSString *)given UTF8String];
  const auto length = (CFIndex)strlen(bytes);
  if (length >= size) return false;
  memcpy(text, bytes, (size_t)length + 1);
  return true;
}
}
