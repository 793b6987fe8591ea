// The one image that host code asks for, and its sections: what a wheel's libtorch_cpu.dylib has.
#include <mach-o/dyld.h>
#include <mach-o/getsect.h>
#include "../metal/kernels.h"

extern "C" {
uint32_t _dyld_image_count(void) { return 1; }
const char *_dyld_get_image_name(uint32_t) { return "/libtorch_cpu.dylib"; }
const struct mach_header *_dyld_get_image_header(uint32_t) { return nullptr; }
uint8_t *getsectiondata(const struct mach_header_64 *, const char *, const char *name, unsigned long *size) {
  return (uint8_t *)sim::section(name, size);
}
}
