#include <metal_stdlib>

kernel void scale(device float* values [[buffer(0)]],
                  constant float& factor [[buffer(1)]],
                  uint index [[thread_position_in_grid]]) {
  values[index] *= factor;
}
