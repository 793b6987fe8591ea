#pragma once
#include <mach-o/dyld.h>
#ifdef __cplusplus
extern "C"
#endif
    uint8_t *
    getsectiondata(const struct mach_header_64 *header, const char *segment, const char *section, unsigned long *size);
