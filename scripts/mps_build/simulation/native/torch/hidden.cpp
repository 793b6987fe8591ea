// What the files of libtorch that are compiled again call, and libtorch keeps to itself. None of it has to do with MPS; what is asked for all the same says so.
#include <ATen/core/Tensor.h>
#include <ATen/native/ConvUtils.h>
#include "../runtime/objects.h"

namespace at::metal {
Tensor &metal_copy_(Tensor &, const Tensor &) { sim::refuse("the old Metal back end is not simulated"); }
} // namespace at::metal
namespace at::vulkan {
Tensor &vulkan_copy_(Tensor &, const Tensor &) { sim::refuse("Vulkan is not simulated"); }
} // namespace at::vulkan
namespace at::native::xnnpack {
// Of phones: it is never chosen where XNNPACK is not compiled in, which is so in Debian's libtorch.
Tensor convolution2d(
    const Tensor &, const Tensor &, const Tensor &, IntArrayRef, IntArrayRef, IntArrayRef, int64_t) {
  sim::refuse("a convolution by XNNPACK is not simulated");
}
} // namespace at::native::xnnpack
namespace at::native {
Tensor NestedTensor_matmul(const Tensor &, const Tensor &) { sim::refuse("attention of nested tensors is not simulated"); }
Tensor NestedTensor_times_Tensor_plus_Tensor_addmm(
    const Tensor &, const Tensor &, const Tensor &, const Scalar &, const Scalar &, c10::optional<bool>) {
  sim::refuse("attention of nested tensors is not simulated");
}
// Of the CPU: the function for any dilation, which can be reached, gives the same for none.
std::tuple<Tensor, Tensor, Tensor> slow_conv3d_backward_cpu(
    const Tensor &gradient, const Tensor &input, const Tensor &weight, IntArrayRef kernel, IntArrayRef stride,
    IntArrayRef padding, std::array<bool, 3> mask) {
  const std::array<int64_t, 3> plain{1, 1, 1};
  return slow_conv_dilated3d_backward_stub(kCPU, gradient, input, weight, kernel, stride, padding, IntArrayRef(plain), mask);
}
Tensor &quantized_copy_from_float_(Tensor &, const Tensor &) { sim::refuse("a copy from float to a quantized tensor is not simulated"); }
} // namespace at::native
