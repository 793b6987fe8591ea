#pragma once
#include <objc/objc.h>
#ifdef __cplusplus
extern "C" {
#endif
void sim_os_release(void *object);
#ifdef __cplusplus
}
#endif
#define os_release(object) sim_os_release((void *)(object))
