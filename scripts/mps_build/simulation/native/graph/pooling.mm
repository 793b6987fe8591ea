// Pooling of two dimensions, and its gradients.
#include "graph.h"
using namespace sim;
using T = MPSGraphTensor;

struct Pool {
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1}, before[2] = {}, after[2] = {}; // height, width
  int64_t style = 0, layout = 0;
  uint32_t index_type = MPSDataTypeInt32;
  bool is_ceil = false, counts_padding = false;
};
@interface MPSGraphPooling2DOpDescriptor () {
 @public
  Pool pool;
}
@end
@implementation MPSGraphPooling2DOpDescriptor
+ (instancetype)descriptorWithKernelWidth:(NSUInteger)kernel_width
                             kernelHeight:(NSUInteger)kernel_height
                                strideInX:(NSUInteger)stride_x
                                strideInY:(NSUInteger)stride_y
                          dilationRateInX:(NSUInteger)dilation_x
                          dilationRateInY:(NSUInteger)dilation_y
                              paddingLeft:(NSUInteger)left
                             paddingRight:(NSUInteger)right
                               paddingTop:(NSUInteger)top
                            paddingBottom:(NSUInteger)bottom
                             paddingStyle:(MPSGraphPaddingStyle)style
                               dataLayout:(MPSGraphTensorNamedDataLayout)layout {
  auto *made = [[MPSGraphPooling2DOpDescriptor new] autorelease];
  Pool pool;
  auto set = [](int64_t *pair, NSUInteger height, NSUInteger width) {
    pair[0] = (int64_t)height;
    pair[1] = (int64_t)width;
  };
  set(pool.kernel, kernel_height, kernel_width);
  set(pool.stride, stride_y, stride_x);
  set(pool.dilation, dilation_y, dilation_x);
  set(pool.before, top, left);
  set(pool.after, bottom, right);
  pool.style = (int64_t)style;
  pool.layout = (int64_t)layout;
  made->pool = pool;
  return made;
}
- (instancetype)init {
  pool = Pool{};
  return self;
}
// A descriptor that is filled in one by one, as PyTorch 1.13 does.
#define POOLED(property, place) \
  -(void)set##property : (NSUInteger)value { pool.place = (int64_t)value; }
POOLED(KernelHeight, kernel[0])
POOLED(KernelWidth, kernel[1])
POOLED(StrideInY, stride[0])
POOLED(StrideInX, stride[1])
POOLED(DilationRateInY, dilation[0])
POOLED(DilationRateInX, dilation[1])
POOLED(PaddingTop, before[0])
POOLED(PaddingLeft, before[1])
POOLED(PaddingBottom, after[0])
POOLED(PaddingRight, after[1])
POOLED(PaddingStyle, style)
POOLED(DataLayout, layout)
- (void)setCeilMode:(BOOL)is_ceil {
  pool.is_ceil = is_ceil;
}
- (void)setIncludeZeroPadToAverage:(BOOL)counts {
  pool.counts_padding = counts;
}
- (void)setReturnIndicesDataType:(MPSDataType)type {
  pool.index_type = type;
}
- (void)setReturnIndicesMode:(MPSGraphPoolingReturnIndicesMode)mode {
}
@end

namespace {
Sizes pair_of(const int64_t *values) { return {values[0], values[1]}; }
bool is_nhwc(const Pool &p) { return p.layout == MPSGraphTensorNamedDataLayoutNHWC; }
at::Tensor nchw(const at::Tensor &x, const Pool &p) { return is_nhwc(p) ? x.permute({0, 3, 1, 2}) : x; }
at::Tensor as_given(const at::Tensor &x, const Pool &p) { return is_nhwc(p) ? x.permute({0, 2, 3, 1}) : x; }
Pool checked(const Pool &p) {
  if (p.style != MPSGraphPaddingStyleExplicit) refuse_with("MPSGraph pooling: padding style ", p.style);
  return p;
}
int64_t reach_of(const Pool &p, int i) { return p.dilation[i] * (p.kernel[i] - 1) + 1; }
// What is added behind the padding, so that the last window fits where sizes are rounded up. Assumed: as in ATen, a
// window begins inside of the picture or of what pads its left. What is added here counts where padding counts: PyTorch
// calls that a mismatch with the CPU, and pads by itself instead.
int64_t rest_of(const Pool &p, int i, int64_t size) {
  if (!p.is_ceil) return 0;
  const int64_t whole = size + p.before[i] + p.after[i];
  int64_t last = (whole - reach_of(p, i) + p.stride[i] - 1) / p.stride[i] * p.stride[i];
  if (last >= size + p.before[i]) last -= p.stride[i];
  return std::max<int64_t>(last + reach_of(p, i) - whole, 0);
}
// The two sides may have different paddings; ATen's pooling then works without one.
at::Tensor padded(const at::Tensor &x, const Pool &p, const at::Scalar &with) {
  return at::constant_pad_nd(x, {p.before[1], p.after[1], p.before[0], p.after[0]}, with);
}
at::Tensor rounded_up(const at::Tensor &x, const at::Tensor &source, const Pool &p, const at::Scalar &with) {
  return at::constant_pad_nd(x, {0, rest_of(p, 1, source.size(-1)), 0, rest_of(p, 0, source.size(-2))}, with);
}
at::Tensor inner(const at::Tensor &x, const at::Tensor &source, const Pool &p) {
  return x.narrow(-2, p.before[0], source.size(-2)).narrow(-1, p.before[1], source.size(-1));
}
at::Scalar least_of(at::ScalarType type) {
  if (at::isFloatingType(type)) return -INFINITY;
  at::Scalar least;
  AT_DISPATCH_INTEGRAL_TYPES(type, "least_of", [&] { least = (int64_t)std::numeric_limits<scalar_t>::lowest(); });
  return least;
}
// Padding is less than every number. No whole number is, where a byte is 0: those that Double holds are Double here.
at::Tensor filled_with_least(const at::Tensor &given, const Pool &p) {
  const bool is_short = at::isIntegralType(given.scalar_type(), true) && given.scalar_type() != at::kLong;
  const auto x = is_short ? given.to(at::kDouble) : given;
  const auto least = least_of(x.scalar_type());
  return rounded_up(padded(x, p, least), x, p, least);
}
// Results, and the place of each in the plane that was padded.
std::tuple<at::Tensor, at::Tensor> most(const at::Tensor &filled, const Pool &p) {
  return at::max_pool2d_with_indices(filled, pair_of(p.kernel), pair_of(p.stride), {0, 0}, pair_of(p.dilation), false);
}
at::Tensor sums(const at::Tensor &x, const Pool &p) {
  return at::avg_pool2d(x, pair_of(p.kernel), pair_of(p.stride), {0, 0}, false, true, 1);
}
// How many elements each average is of; for a picture, or a batch of them.
at::Tensor counts(const at::Tensor &x, const Pool &p) {
  auto one = at::ones({1, x.size(-2), x.size(-1)}, x.options().dtype(at::kFloat));
  const int outside = p.counts_padding ? 1 : 0;
  return sums(rounded_up(padded(one, p, outside), x, p, outside), p).to(x.scalar_type());
}
} // namespace

@implementation MPSGraph (Pooling)
- (T *)maxPooling2DWithSourceTensor:(T *)source descriptor:(MPSGraphPooling2DOpDescriptor *)about name:(NSString *)name {
  return node(self, "maxPooling2D", {source}, [p = checked(about->pool)](auto &x) {
    return as_given(std::get<0>(most(filled_with_least(nchw(x[0], p), p), p)).to(x[0].scalar_type()), p);
  });
}
- (NSArray *)maxPooling2DReturnIndicesWithSourceTensor:(T *)source
                                            descriptor:(MPSGraphPooling2DOpDescriptor *)about
                                                  name:(NSString *)name {
  return listed(nodes(self, "maxPooling2DReturnIndices", {source}, [p = checked(about->pool)](const Tensors &x) {
    auto source = nchw(x[0], p), filled = filled_with_least(source, p);
    auto [found, places] = most(filled, p);
    auto row = at::div(places, filled.size(-1), "floor") - p.before[0], column = at::remainder(places, filled.size(-1)) - p.before[1];
    places = row * source.size(-1) + column;
    return Tensors{as_given(found.to(source.scalar_type()), p), as_given(places.to(torch_type(p.index_type)), p)};
  }, 2));
}
- (T *)maxPooling2DGradientWithGradientTensor:(T *)gradient
                                 sourceTensor:(T *)source
                                   descriptor:(MPSGraphPooling2DOpDescriptor *)about
                                         name:(NSString *)name {
  return node(self, "maxPooling2DGradient", {gradient, source}, [p = checked(about->pool)](auto &x) {
    auto source = nchw(x[1], p), filled = filled_with_least(source, p);
    auto out = at::max_pool2d_with_indices_backward(
        nchw(x[0], p), filled.to(x[0].scalar_type()), pair_of(p.kernel), pair_of(p.stride), {0, 0}, pair_of(p.dilation), false,
        std::get<1>(most(filled, p)));
    return as_given(inner(out, source, p), p);
  });
}
- (T *)avgPooling2DWithSourceTensor:(T *)source descriptor:(MPSGraphPooling2DOpDescriptor *)about name:(NSString *)name {
  return node(self, "avgPooling2D", {source}, [p = checked(about->pool)](auto &x) {
    auto source = nchw(x[0], p);
    return as_given(sums(rounded_up(padded(source, p, 0), source, p, 0), p) / counts(source, p), p);
  });
}
- (T *)avgPooling2DGradientWithGradientTensor:(T *)gradient
                                 sourceTensor:(T *)source
                                   descriptor:(MPSGraphPooling2DOpDescriptor *)about
                                         name:(NSString *)name {
  return node(self, "avgPooling2DGradient", {gradient, source}, [p = checked(about->pool)](auto &x) {
    auto source = nchw(x[1], p);
    const bool is_whole = at::isIntegralType(x[0].scalar_type(), true);
    auto shares = is_whole ? at::div(nchw(x[0], p), counts(source, p), "trunc") : nchw(x[0], p) / counts(source, p);
    auto out = at::avg_pool2d_backward(
        shares, rounded_up(padded(source, p, 0), source, p, 0), pair_of(p.kernel),
        pair_of(p.stride), {0, 0}, false, true, 1);
    return as_given(inner(out, source, p), p);
  });
}
@end
