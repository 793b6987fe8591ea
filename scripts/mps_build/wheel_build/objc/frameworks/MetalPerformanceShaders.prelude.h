#include <Metal/Metal.h>
