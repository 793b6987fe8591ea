// A second device on host memory, as PyTorch's PrivateUse1 back end: what the CPU in the device's place cannot show
// (operands on two devices, an operator that is missing, fallbacks to the CPU, backward on the device's own thread).
// Views are made here; every other operator is computed by the CPU on copies, and counted.

#include <torch/extension.h>

#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace {

using at::IntArrayRef;
using at::Tensor;
using std::optional;

constexpr auto kTwin = c10::DeviceType::PrivateUse1;
constexpr auto kKey = c10::DispatchKey::PrivateUse1;

// Memory.

struct HostAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* block = bytes ? std::malloc(bytes) : nullptr;
    TORCH_CHECK(!bytes || block, "twin: out of memory");
    return {block, block, &std::free, c10::Device(kTwin, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &std::free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};
HostAllocator allocator;
REGISTER_ALLOCATOR(kTwin, &allocator);

// One device, one stream, and events that are over at once: backward needs them, and the stock guard has none.

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static c10::Device only() { return {kTwin, 0}; }
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, only()); }
  c10::DeviceType type() const override { return kTwin; }
  c10::Device exchangeDevice(c10::Device) const override { return only(); }
  c10::Device getDevice() const override { return only(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const override { return stream(); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(c10::DeviceIndex) const override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  at::Device getDeviceFromPtr(void*) const override { return Guard::only(); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();  // the CPU computes, and draws
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    at::native::resize_bytes_cpu(storage.unsafeGetStorageImpl(), bytes);
  }
};
Hooks hooks;

// The operators that are done here: making, copying, looking at the same memory in another way.

Tensor empty(
    c10::SymIntArrayRef size, optional<at::ScalarType> dtype, optional<at::Layout>, optional<at::Device>,
    optional<bool>, optional<at::MemoryFormat> format) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  return at::detail::empty_generic(
      sizes, &allocator, c10::DispatchKeySet(kKey), c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(
    c10::SymIntArrayRef size, c10::SymIntArrayRef stride, optional<at::ScalarType> dtype, optional<at::Layout>,
    optional<at::Device>, optional<bool>) {
  return at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &allocator, c10::DispatchKeySet(kKey),
      c10::dtype_or_default(dtype));
}

Tensor on_host(const Tensor& x) {
  if (x.is_cpu()) return x;
  const auto options = x.options().device(at::kCPU);
  auto host = x.numel()
      ? at::for_blob(x.data_ptr(), x.sizes()).strides(x.strides()).options(options).make_tensor()
      : at::empty_strided(x.sizes(), x.strides(), options);
  host._set_conj(x.is_conj());
  host._set_neg(x.is_neg());
  return host;
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool) {
  on_host(to).copy_(on_host(from));
  return to;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

Tensor convolution(
    const Tensor& input, const Tensor& weight, const optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
    IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups) {
  const auto host_bias = bias && bias->defined() ? optional<Tensor>(bias->cpu()) : std::nullopt;
  return at::convolution(
             input.cpu(), weight.cpu(), host_bias, stride, padding, dilation, transposed, output_padding, groups)
      .to(input.device());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad, const Tensor& input, const Tensor& weight, IntArrayRef stride, IntArrayRef padding,
    IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups, std::array<bool, 3> mask) {
  const auto bias = transposed ? weight.size(1) * groups : weight.size(0);
  auto [x, w, b] = at::convolution_backward(
      grad.cpu(), input.cpu(), weight.cpu(), at::OptionalIntArrayRef({bias}), stride, padding, dilation, transposed,
      output_padding, groups, mask);
  const auto back = [&](const Tensor& y) { return y.defined() ? y.to(input.device()) : y; };
  return {back(x), back(w), back(b)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("unfold", at::native::unfold);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("resize_", at::native::resize_);
  m.impl("set_.source_Storage_storage_offset", at::native::set_storage_cpu_);
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolution_backward);
}

// Everything else.

struct State {
  std::mutex lock;
  std::map<std::string, int64_t> fallbacks;
  std::set<std::string> missing;
  bool warns = false;
  bool mixes = false;
};
State state;

void refuse_mixture(const std::string& name, const torch::jit::Stack& stack, size_t arguments) {
  // An index may lie on the host, and so may lengths; a number is none of a device's.
  static const std::set<std::string> may = {
      "aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_", "aten::_pack_padded_sequence"};
  bool host = false, device = false;
  const auto look = [&](const Tensor& x) {
    if (x.defined() && x.dim()) (x.is_cpu() ? host : device) = true;
  };
  for (const auto& value : torch::jit::last(stack, arguments)) {
    if (value.isTensor()) look(value.toTensor());
    if (value.isTensorList())
      for (const Tensor& each : value.toTensorVector()) look(each);
  }
  TORCH_CHECK(
      !host || !device || may.count(name),
      "Expected all tensors to be on the same device, but found at least two devices, twin:0 and cpu! (", name, ")");
}

void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string& name = op.operator_name().name;
  bool warns = false;
  {
    const std::lock_guard<std::mutex> held(state.lock);
    // As torch.mps words it (aten/src/ATen/mps/MPSFallback.mm).
    TORCH_CHECK_NOT_IMPLEMENTED(
        !state.missing.count(name), "The operator '", name, "' is not currently implemented for the TWIN device.");
    ++state.fallbacks[name];
    warns = state.warns;
  }
  if (!state.mixes) refuse_mixture(name, *stack, op.schema().arguments().size());
  if (warns)
    TORCH_WARN("The operator '", name, "' is not currently supported on the TWIN backend and will fall back to run on the CPU.");
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("register_hooks", [] { at::RegisterPrivateUse1HooksInterface(&hooks); });
  m.def("take_fallbacks", [] {
    const std::lock_guard<std::mutex> held(state.lock);
    return std::exchange(state.fallbacks, {});
  });
  m.def("lack", [](std::set<std::string> names) {
    const std::lock_guard<std::mutex> held(state.lock);
    state.missing = std::move(names);
  });
  m.def("warn", [](bool warns) { state.warns = warns; });
  m.def("mix", [](bool mixes) { state.mixes = mixes; });
}
