/* The SDK that the code is compiled for: 15.2. */
#pragma once
#define __MAC_13_0 130000
#define __MAC_13_1 130100
#define __MAC_13_2 130200
#define __MAC_13_3 130300
#define __MAC_14_0 140000
#define __MAC_14_2 140200
#define __MAC_14_4 140400
#define __MAC_15_0 150000
#define __MAC_15_1 150100
#define __MAC_15_2 150200
#include <os/availability.h>
