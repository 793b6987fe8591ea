#pragma once
#include <stdint.h>
struct mach_header {
  uint32_t magic;
};
struct mach_header_64 {
  uint32_t magic;
};
#ifdef __cplusplus
extern "C" {
#endif
uint32_t _dyld_image_count(void);
const char *_dyld_get_image_name(uint32_t index);
const struct mach_header *_dyld_get_image_header(uint32_t index);
#ifdef __cplusplus
}
#endif
