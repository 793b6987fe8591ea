// Convolutions of two and three dimensions, and their gradients.
#include "graph.h"
using namespace sim;
using T = MPSGraphTensor;

#define SET(Type, setter, variable)  \
  -(void)setter : (Type)value {      \
    variable = (int64_t)value;       \
  }

// Sizes from the outermost axis: depth, height, width; two dimensions use the last two.
struct Window {
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, before[3] = {}, after[3] = {}, groups = 1;
  int64_t style = 0, data = 0, weights = 0;
};
@interface MPSGraphConvolution2DOpDescriptor () {
 @public
  Window window;
}
@end
@implementation MPSGraphConvolution2DOpDescriptor
+ (instancetype)new {
  auto *made = (MPSGraphConvolution2DOpDescriptor *)[super new];
  made->window = Window{};
  return made;
}
SET(NSUInteger, setStrideInX, window.stride[2])
SET(NSUInteger, setStrideInY, window.stride[1])
SET(NSUInteger, setDilationRateInX, window.dilation[2])
SET(NSUInteger, setDilationRateInY, window.dilation[1])
SET(NSUInteger, setPaddingLeft, window.before[2])
SET(NSUInteger, setPaddingRight, window.after[2])
SET(NSUInteger, setPaddingTop, window.before[1])
SET(NSUInteger, setPaddingBottom, window.after[1])
SET(NSUInteger, setGroups, window.groups)
SET(MPSGraphPaddingStyle, setPaddingStyle, window.style)
SET(MPSGraphTensorNamedDataLayout, setDataLayout, window.data)
SET(MPSGraphTensorNamedDataLayout, setWeightsLayout, window.weights)
@end
@interface MPSGraphConvolution3DOpDescriptor () {
 @public
  Window window;
}
@end
@implementation MPSGraphConvolution3DOpDescriptor
+ (instancetype)new {
  auto *made = (MPSGraphConvolution3DOpDescriptor *)[super new];
  made->window = Window{};
  return made;
}
SET(NSUInteger, setStrideInX, window.stride[2])
SET(NSUInteger, setStrideInY, window.stride[1])
SET(NSUInteger, setStrideInZ, window.stride[0])
SET(NSUInteger, setDilationRateInX, window.dilation[2])
SET(NSUInteger, setDilationRateInY, window.dilation[1])
SET(NSUInteger, setDilationRateInZ, window.dilation[0])
SET(NSUInteger, setPaddingLeft, window.before[2])
SET(NSUInteger, setPaddingRight, window.after[2])
SET(NSUInteger, setPaddingTop, window.before[1])
SET(NSUInteger, setPaddingBottom, window.after[1])
SET(NSUInteger, setPaddingFront, window.before[0])
SET(NSUInteger, setPaddingBack, window.after[0])
SET(NSUInteger, setGroups, window.groups)
SET(MPSGraphPaddingStyle, setPaddingStyle, window.style)
SET(MPSGraphTensorNamedDataLayout, setDataLayout, window.data)
SET(MPSGraphTensorNamedDataLayout, setWeightsLayout, window.weights)
@end
// Three dimensions where each channel has weights of its own.
@interface MPSGraphDepthwiseConvolution3DOpDescriptor () {
 @public
  Sizes *strides, *dilations, *paddings;
  int64_t channel_axis, style;
}
@end
@implementation MPSGraphDepthwiseConvolution3DOpDescriptor
+ (instancetype)new {
  auto *made = (MPSGraphDepthwiseConvolution3DOpDescriptor *)[super new];
  made->strides = new Sizes(3, 1);
  made->dilations = new Sizes(3, 1);
  made->paddings = new Sizes(6, 0);
  made->channel_axis = -4;
  return made;
}
- (void)dealloc {
  delete strides;
  delete dilations;
  delete paddings;
  [super dealloc];
}
- (void)setStrides:(NSArray<NSNumber *> *)given {
  *strides = ints(given);
}
- (void)setDilationRates:(NSArray<NSNumber *> *)given {
  *dilations = ints(given);
}
- (void)setPaddingValues:(NSArray<NSNumber *> *)given {
  *paddings = ints(given);
}
SET(NSInteger, setChannelDimensionIndex, channel_axis)
SET(MPSGraphPaddingStyle, setPaddingStyle, style)
@end

namespace {
bool is_channels_last(int64_t layout) {
  return layout == MPSGraphTensorNamedDataLayoutNHWC || layout == MPSGraphTensorNamedDataLayoutNDHWC;
}
at::Tensor channels_first(const at::Tensor &x, const Window &w) { return is_channels_last(w.data) ? at::movedim(x, -1, 1) : x; }
at::Tensor as_given(const at::Tensor &x, const Window &w) { return is_channels_last(w.data) ? at::movedim(x, 1, -1) : x; }

bool is_outer_last(int64_t layout) {
  return layout == MPSGraphTensorNamedDataLayoutHWIO || layout == MPSGraphTensorNamedDataLayoutDHWIO;
}
// Weights with the outer channels first, then the inner ones; and the other way round.
at::Tensor outer_first(const at::Tensor &x, const Window &w) { return is_outer_last(w.weights) ? at::movedim(x, {-1, -2}, {0, 1}) : x; }
at::Tensor weights_as_given(const at::Tensor &x, const Window &w) { return is_outer_last(w.weights) ? at::movedim(x, {0, 1}, {-1, -2}) : x; }

Window checked(Window window) {
  const bool is_outer_first = window.weights == MPSGraphTensorNamedDataLayoutOIHW || window.weights == MPSGraphTensorNamedDataLayoutOIDHW;
  if (!is_outer_first && !is_outer_last(window.weights)) refuse_with("MPSGraph convolution: weights of layout ", window.weights);
  if (window.style != MPSGraphPaddingStyleExplicit) refuse_with("MPSGraph convolution: padding style ", window.style);
  return window;
}
template <class Values> Sizes last(const Values &values, int64_t count) { return Sizes(values + 3 - count, values + 3); }
Sizes amounts(const Window &w, int64_t count) {
  Sizes out;
  for (int64_t i = 2; i >= 3 - count; i--) out.insert(out.end(), {w.before[i], w.after[i]});
  return out;
}
at::Tensor convolved(const at::Tensor &x, const at::Tensor &given, const Window &w) {
  const auto weights = outer_first(given, w);
  const int64_t n = weights.dim() - 2;
  auto padded = at::constant_pad_nd(channels_first(x, w), amounts(w, n));
  auto out = at::convolution(padded, weights, {}, last(w.stride, n), Sizes(n, 0), last(w.dilation, n), false, Sizes(n, 0), w.groups);
  return as_given(out, w);
}
// As much of a result, from its beginning, as there is data for it.
at::Tensor first_of(at::Tensor x) {
  const Sizes wanted = size_of_data(x.sizes().vec());
  for (int64_t i = 0; i < x.dim(); i++) x = x.slice(i, 0, wanted[i]);
  return x;
}
// The gradient of what `convolved` does for an input of a size. What no step of the window reaches is 0: PyTorch asks for
// an input that is larger than its window needs (output_padding of a transposed convolution).
at::Tensor data_gradient(const at::Tensor &gradient, const Sizes &sizes, const at::Tensor &given, const Window &w) {
  const auto weights = outer_first(given, w);
  const int64_t n = weights.dim() - 2;
  auto whole = at::convolution(
      channels_first(gradient, w), weights, {}, last(w.stride, n), Sizes(n, 0), last(w.dilation, n), true, Sizes(n, 0), w.groups);
  const auto wanted = channels_first(at::empty(sizes, gradient.options().device(at::kMeta)), w);
  Sizes more;
  for (int64_t i = n - 1; i >= 0; i--) {
    const int64_t before = w.before[3 - n + i];
    more.insert(more.end(), {-before, wanted.size(2 + i) + before - whole.size(2 + i)});
  }
  return as_given(at::constant_pad_nd(whole, more), w);
}
at::Tensor weights_gradient(const at::Tensor &gradient, const at::Tensor &input, const at::Tensor &like, const Window &w) {
  const auto weights = outer_first(like, w);
  const int64_t n = weights.dim() - 2;
  const auto outer = channels_first(gradient, w);
  auto padded = at::constant_pad_nd(channels_first(input, w), amounts(w, n));
  for (int64_t i = 0; i < n; i++) { // what no step of the window reaches
    const int64_t axis = 3 - n + i;
    padded = padded.slice(2 + i, 0, (outer.size(2 + i) - 1) * w.stride[axis] + (weights.size(2 + i) - 1) * w.dilation[axis] + 1);
  }
  const auto [of_data, of_weights, of_bias] = at::convolution_backward(
      outer, padded, weights, at::OptionalIntArrayRef{}, last(w.stride, n), Sizes(n, 0), last(w.dilation, n), false,
      Sizes(n, 0), w.groups, {false, true, false});
  return weights_as_given(of_weights, w);
}
// As PyTorch calls it: channels at the third axis from the end, so that a batch of pictures (N, C, H, W) is the volume,
// with weights of depth 1: (1, C, h, w). A grouped convolution of two dimensions does the same.
Window depthwise(MPSGraphDepthwiseConvolution3DOpDescriptor *about) {
  if (about->channel_axis != -3) refuse_with("MPSGraph depthwise convolution: channels at axis ", about->channel_axis);
  Window w;
  for (int i = 0; i < 3; i++) {
    w.stride[i] = about->strides->at(i);
    w.dilation[i] = about->dilations->at(i);
    w.before[i] = about->paddings->at(2 * i);
    w.after[i] = about->paddings->at(2 * i + 1);
  }
  return w;
}
Window grouped(Window window, int64_t channels) {
  window.groups = channels;
  return window;
}
} // namespace

#define CONVOLUTION(dimensions, Descriptor)                                                                           \
  -(T *)convolution##dimensions##WithSourceTensor : (T *)source weightsTensor : (T *)weights descriptor               \
      : (Descriptor *)about name : (NSString *)name {                                                                 \
    same_types("convolution" #dimensions, source, weights);                                                           \
    return node(self, "convolution" #dimensions, {source, weights},                                                   \
                [w = checked(about->window)](auto &x) { return first_of(convolved(x[0], x[1], w)); });                \
  }                                                                                                                   \
  -(T *)convolution##dimensions##DataGradientWithIncomingGradientTensor : (T *)gradient weightsTensor : (T *)weights  \
      outputShape : (MPSShape *)shape forwardConvolutionDescriptor : (Descriptor *)about name : (NSString *)name {    \
    return node(self, "convolution" #dimensions "DataGradient", {gradient, weights},                                  \
                [w = checked(about->window), sizes = ints(shape)](auto &x) {                                          \
                  return data_gradient(x[0], size_of_data(sizes), x[1], w);                                           \
                });                                                                                                   \
  }                                                                                                                   \
  -(T *)convolution##dimensions##WeightsGradientWithIncomingGradientTensor : (T *)gradient sourceTensor : (T *)source \
      outputShape : (MPSShape *)shape forwardConvolutionDescriptor : (Descriptor *)about name : (NSString *)name {    \
    return node(self, "convolution" #dimensions "WeightsGradient", {gradient, source},                                \
                [w = checked(about->window), sizes = ints(shape)](auto &x) {                                          \
                  return weights_gradient(x[0], x[1], at::empty(sizes, x[0].options()), w);                           \
                });                                                                                                   \
  }

@implementation MPSGraph (Convolution)
CONVOLUTION(2D, MPSGraphConvolution2DOpDescriptor)
CONVOLUTION(3D, MPSGraphConvolution3DOpDescriptor)

- (T *)depthwiseConvolution3DWithSourceTensor:(T *)source
                                weightsTensor:(T *)weights
                                   descriptor:(MPSGraphDepthwiseConvolution3DOpDescriptor *)about
                                         name:(NSString *)name {
  return node(self, "depthwiseConvolution3D", {source, weights}, [w = depthwise(about)](auto &x) {
    return convolved(x[0], x[1].transpose(0, 1), grouped(w, x[0].size(1)));
  });
}
- (T *)depthwiseConvolution3DDataGradientWithIncomingGradientTensor:(T *)gradient
                                                      weightsTensor:(T *)weights
                                                        outputShape:(MPSShape *)shape
                                                         descriptor:(MPSGraphDepthwiseConvolution3DOpDescriptor *)about
                                                               name:(NSString *)name {
  const Window window = grouped(depthwise(about), ints(shape).at(1));
  return node(self, "depthwiseConvolution3DDataGradient", {gradient, weights}, [=, sizes = ints(shape)](auto &x) {
    return data_gradient(x[0], size_of_data(sizes), x[1].transpose(0, 1), window);
  });
}
- (T *)depthwiseConvolution3DWeightsGradientWithIncomingGradientTensor:(T *)gradient
                                                          sourceTensor:(T *)source
                                                           outputShape:(MPSShape *)shape
                                                            descriptor:(MPSGraphDepthwiseConvolution3DOpDescriptor *)about
                                                                  name:(NSString *)name {
  return node(self, "depthwiseConvolution3DWeightsGradient", {gradient, source}, [w = depthwise(about), sizes = ints(shape)](auto &x) {
    auto weights = at::empty(sizes, x[0].options()).transpose(0, 1);
    return weights_gradient(x[0], x[1], weights, grouped(w, x[1].size(1))).transpose(0, 1);
  });
}
@end
