// What a libtorch without USE_MPS leaves out of Convolution.cpp: the choice of the MPS back end, as kernels of its key.
#include <ATen/ATen.h>
#include <torch/library.h>

namespace {
at::Tensor forward(
    const at::Tensor &input, const at::Tensor &weight, const std::optional<at::Tensor> &bias, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding, int64_t groups) {
  if (!transposed) return at::_mps_convolution(input, weight, bias, padding, stride, dilation, groups);
  auto out = at::_mps_convolution_transpose(input, weight, padding, output_padding, stride, dilation, groups);
  if (!bias || !bias->defined()) return out;
  std::vector<int64_t> along(input.dim(), 1);
  along[1] = -1;
  return out.add_(bias->reshape(along));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> backward(
    const at::Tensor &gradient, const at::Tensor &input, const at::Tensor &weight, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding, int64_t groups,
    std::array<bool, 3> mask) {
  if (!transposed) return at::mps_convolution_backward(input, gradient, weight, padding, stride, dilation, groups, mask);
  auto found = at::mps_convolution_transpose_backward(
      input, gradient, weight, padding, output_padding, stride, dilation, groups, {mask[0], mask[1]});
  at::Tensor bias;
  if (mask[2]) {
    std::vector<int64_t> over{0};
    for (int64_t i = 2; i < gradient.dim(); i++) over.push_back(i);
    bias = gradient.sum(over);
  }
  return {std::get<0>(found), std::get<1>(found), bias};
}
} // namespace

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("convolution_overrideable", forward);
  m.impl("convolution_backward_overrideable", backward);
}
