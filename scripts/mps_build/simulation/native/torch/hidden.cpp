// What Copy.cpp calls and libtorch keeps to itself. None of it has to do with MPS; what is asked for all the same says so.
#include <ATen/core/Tensor.h>
#include "../runtime/objects.h"

namespace at::metal {
Tensor &metal_copy_(Tensor &, const Tensor &) { sim::refuse("the old Metal back end is not simulated"); }
} // namespace at::metal
namespace at::vulkan {
Tensor &vulkan_copy_(Tensor &, const Tensor &) { sim::refuse("Vulkan is not simulated"); }
} // namespace at::vulkan
namespace at::native {
Tensor &quantized_copy_from_float_(Tensor &, const Tensor &) { sim::refuse("a copy from float to a quantized tensor is not simulated"); }
} // namespace at::native
