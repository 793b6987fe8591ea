#include <MetalPerformanceShaders/MetalPerformanceShaders.h>
