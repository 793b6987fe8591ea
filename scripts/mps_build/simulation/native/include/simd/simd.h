#pragma once
#include <simd/vector_types.h>
