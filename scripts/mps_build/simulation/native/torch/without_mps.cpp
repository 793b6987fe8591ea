// What only a libtorch without MPS needs. First: what its files that are compiled again call, and it keeps to itself; what
// of that is called all the same says that it is not simulated.
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

// What torch.mps._compile_shader needs: Debian's bindings leave out the part of torch/csrc/mps/Module.cpp that stands
// behind USE_MPS. Python's side is mps_build_simulated.py; the classes of the host code are PyTorch's own.
#if __has_include(<ATen/native/mps/MetalShaderLibrary.h>) // from 2.6 on
#include <ATen/ATen.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <torch/custom_class.h>

namespace {
using at::native::mps::DynamicMetalShaderLibrary;
using at::native::mps::MetalKernelFunction;
using Numbers = std::vector<int64_t>;

std::vector<uint64_t> unsigned_of(const Numbers &numbers) { return {numbers.begin(), numbers.end()}; }

struct Kernel : torch::CustomClassHolder {
  std::shared_ptr<MetalKernelFunction> function;
  explicit Kernel(std::shared_ptr<MetalKernelFunction> made) : function(std::move(made)) {}

  // `is_value`: the bytes of a tensor on the CPU are the argument. No group size: the host code chooses one.
  void launch(const std::vector<at::Tensor> &arguments, const Numbers &is_value, const Numbers &threads, const Numbers &group) {
    const auto lengths = unsigned_of(threads), groups = unsigned_of(group);
    function->runCommandBlock([&] {
      function->startEncoding();
      for (size_t i = 0; i < arguments.size(); i++) {
        if (is_value.at(i)) function->setArg(i, arguments[i].data_ptr(), arguments[i].nbytes());
        else function->setArg(i, arguments[i]);
      }
      if (groups.empty()) function->dispatch(lengths);
      else function->dispatch(lengths, groups);
    });
  }
};
struct Library : torch::CustomClassHolder {
  DynamicMetalShaderLibrary library;
  explicit Library(const std::string &source) : library(source) {}
};
using KernelPtr = c10::intrusive_ptr<Kernel>;
using LibraryPtr = c10::intrusive_ptr<Library>;

TORCH_LIBRARY(mps_build_simulated, module) {
  module.class_<Kernel>("Kernel")
      .def("launch", &Kernel::launch)
      .def("max_threads_per_threadgroup", [](const KernelPtr &self) { return (int64_t)self->function->getMaxThreadsPerThreadgroup(); })
      .def("thread_execution_width", [](const KernelPtr &self) { return (int64_t)self->function->getThreadExecutionWidth(); })
      .def("static_thread_group_memory_length", [](const KernelPtr &self) {
        return (int64_t)self->function->getStaticThreadGroupMemoryLength();
      });
  module.class_<Library>("Library")
      .def(torch::init<std::string>())
      .def("names", [](const LibraryPtr &self) { return self->library.getFunctionNames(); })
      .def("kernel", [](const LibraryPtr &self, const std::string &name) {
        return c10::make_intrusive<Kernel>(self->library.getKernelFunction(name));
      });
}
} // namespace
#endif
