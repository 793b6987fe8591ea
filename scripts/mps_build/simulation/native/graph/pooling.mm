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
// ATen pads both sides alike: what is more on one side is not a part of any window, or is cut by its rounding.
std::tuple<at::Tensor, at::Tensor> most(const at::Tensor &x, const Pool &p) {
  return at::max_pool2d_with_indices(nchw(x, p), pair_of(p.kernel), pair_of(p.stride), pair_of(p.before), pair_of(p.dilation), p.is_ceil);
}
} // namespace

@implementation MPSGraph (Pooling)
- (T *)maxPooling2DWithSourceTensor:(T *)source descriptor:(MPSGraphPooling2DOpDescriptor *)about name:(NSString *)name {
  return node(self, "maxPooling2D", {source}, [p = checked(about->pool)](auto &x) { return as_given(std::get<0>(most(x[0], p)), p); });
}
- (NSArray *)maxPooling2DReturnIndicesWithSourceTensor:(T *)source
                                            descriptor:(MPSGraphPooling2DOpDescriptor *)about
                                                  name:(NSString *)name {
  return listed(nodes(self, "maxPooling2DReturnIndices", {source}, [p = checked(about->pool)](const Tensors &x) {
    auto [found, places] = most(x[0], p);
    return Tensors{as_given(found, p), as_given(places.to(torch_type(p.index_type)), p)};
  }, 2));
}
- (T *)maxPooling2DGradientWithGradientTensor:(T *)gradient
                                 sourceTensor:(T *)source
                                   descriptor:(MPSGraphPooling2DOpDescriptor *)about
                                         name:(NSString *)name {
  return node(self, "maxPooling2DGradient", {gradient, source}, [p = checked(about->pool)](auto &x) {
    auto out = at::max_pool2d_with_indices_backward(
        nchw(x[0], p), nchw(x[1], p), pair_of(p.kernel), pair_of(p.stride), pair_of(p.before), pair_of(p.dilation),
        p.is_ceil, std::get<1>(most(x[1], p)));
    return as_given(out, p);
  });
}
- (T *)avgPooling2DWithSourceTensor:(T *)source descriptor:(MPSGraphPooling2DOpDescriptor *)about name:(NSString *)name {
  return node(self, "avgPooling2D", {source}, [p = checked(about->pool)](auto &x) {
    return as_given(at::avg_pool2d(nchw(x[0], p), pair_of(p.kernel), pair_of(p.stride), pair_of(p.before), p.is_ceil, p.counts_padding), p);
  });
}
- (T *)avgPooling2DGradientWithGradientTensor:(T *)gradient
                                 sourceTensor:(T *)source
                                   descriptor:(MPSGraphPooling2DOpDescriptor *)about
                                         name:(NSString *)name {
  return node(self, "avgPooling2DGradient", {gradient, source}, [p = checked(about->pool)](auto &x) {
    auto out = at::avg_pool2d_backward(
        nchw(x[0], p), nchw(x[1], p), pair_of(p.kernel), pair_of(p.stride), pair_of(p.before), p.is_ceil, p.counts_padding, {});
    return as_given(out, p);
  });
}
@end
