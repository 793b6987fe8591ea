#pragma once
#include <stdint.h>
typedef uint8_t UInt8;
typedef uint32_t UInt32;
typedef int32_t SInt32;
typedef uint32_t OSStatus;
typedef unsigned char Boolean;
