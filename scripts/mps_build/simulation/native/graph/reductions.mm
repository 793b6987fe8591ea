// Reductions, running sums and products, sorting: the axes stay, with length 1.
#include "graph.h"
#include <optional>
using namespace sim;
using T = MPSGraphTensor;

namespace {
// All axes where none are named.
Sizes axes_of(const std::optional<Sizes> &axes, const at::Tensor &tensor) {
  if (axes) return *axes;
  Sizes all(tensor.dim());
  std::iota(all.begin(), all.end(), 0);
  return all;
}
std::optional<Sizes> given(NSArray *axes) { return axes ? std::optional<Sizes>(ints(axes)) : std::nullopt; }

at::Tensor sum(const at::Tensor &x, const Sizes &axes) {
  // Assumed: a sum of Bool counts (count_nonzero relies on it); other types stay.
  const auto type = x.scalar_type() == at::kBool ? at::kInt : x.scalar_type();
  return axes.empty() ? x.to(type) : at::sum(x, axes, true, type);
}
at::Tensor product(at::Tensor x, const Sizes &axes) {
  const auto type = x.scalar_type();
  for (auto axis : axes) x = at::prod(x, axis, true, type);
  return x;
}
// Assumed: the type stays (unique along an axis relies on it).
at::Tensor every(const at::Tensor &x, const Sizes &axes) {
  auto found = x.to(at::kBool);
  for (auto axis : axes) found = at::all(found, axis, true);
  return found.to(x.scalar_type());
}
at::Tensor some(const at::Tensor &x, const Sizes &axes) {
  auto found = x.to(at::kBool);
  for (auto axis : axes) found = at::any(found, axis, true);
  return found.to(x.scalar_type());
}
// Without propagation a NaN counts only where there is nothing else.
at::Tensor extreme(const at::Tensor &x, const Sizes &axes, bool is_most, bool propagates) {
  if (axes.empty()) return x;
  if (propagates || !at::isFloatingType(x.scalar_type())) return is_most ? at::amax(x, axes, true) : at::amin(x, axes, true);
  const double other = is_most ? -INFINITY : INFINITY;
  auto filled = at::where(at::isnan(x), at::scalar_tensor(other, x.options()), x);
  auto found = is_most ? at::amax(filled, axes, true) : at::amin(filled, axes, true);
  auto nothing_else = every(at::isnan(x), axes);
  return at::where(nothing_else, at::scalar_tensor(NAN, x.options()), found);
}
// Assumed. Said when the graph is made: who refuses the same call for another reason would leave it to a later wait.
void floating(const char *name, T *tensor) {
  const auto type = torch_type(type_of(tensor));
  if (at::isIntegralType(type, true)) refuse_with("MPSGraph ", name, ": of ", at::toString(type));
}
NSArray *largest(MPSGraph *graph, T *tensor, NSInteger axis, NSUInteger k) {
  return listed(nodes(graph, "topK", {tensor}, [=](const Tensors &x) {
    auto [found, places] = at::topk(x[0], (int64_t)k, axis);
    return Tensors{found, places.to(at::kInt)};
  }, 2));
}
} // namespace

#define REDUCE(selector, value)                                                                  \
  -(T *)selector##WithTensor : (T *)tensor axes : (NSArray *)axes name : (NSString *)name {      \
    return node(self, #selector, {tensor}, [named = given(axes)](auto &x) -> at::Tensor {        \
      const Sizes over = axes_of(named, x[0]);                                                   \
      return value;                                                                              \
    }, kept_type(tensor));                                                                       \
  }                                                                                              \
  -(T *)selector##WithTensor : (T *)tensor axis : (NSInteger)axis name : (NSString *)name {      \
    return [self selector##WithTensor:tensor axes:@[ [NSNumber numberWithInteger:axis] ] name:name]; \
  }

@implementation MPSGraph (Reductions)
REDUCE(reductionSum, sum(x[0], over))
REDUCE(reductionProduct, product(x[0], over))
REDUCE(reductionMaximum, extreme(x[0], over, true, false))
REDUCE(reductionMinimum, extreme(x[0], over, false, false))
REDUCE(reductionMaximumPropagateNaN, extreme(x[0], over, true, true))
REDUCE(reductionMinimumPropagateNaN, extreme(x[0], over, false, true))
REDUCE(reductionAnd, every(x[0], over))
REDUCE(reductionOr, some(x[0], over))
- (T *)meanOfTensor:(T *)tensor axes:(NSArray *)axes name:(NSString *)name {
  floating("mean", tensor);
  return node(self, "mean", {tensor}, [named = given(axes)](auto &x) {
    return at::mean(x[0], axes_of(named, x[0]), true);
  }, kept_type(tensor));
}
- (T *)varianceOfTensor:(T *)tensor axes:(NSArray *)axes name:(NSString *)name {
  floating("variance", tensor);
  return node(self, "variance", {tensor}, [named = given(axes)](auto &x) {
    return at::var(x[0], at::OptionalIntArrayRef(axes_of(named, x[0])), false, true);
  }, kept_type(tensor));
}
- (T *)varianceOfTensor:(T *)tensor meanTensor:(T *)mean axes:(NSArray *)axes name:(NSString *)name {
  floating("variance", tensor);
  return node(self, "variance", {tensor, mean}, [named = given(axes)](auto &x) {
    return at::mean(at::square(x[0] - x[1]), axes_of(named, x[0]), true);
  });
}
- (T *)reductionArgMaximumWithTensor:(T *)tensor axis:(NSInteger)axis name:(NSString *)name {
  return node(self, "argMaximum", {tensor}, [axis](auto &x) { return at::argmax(x[0], axis, true).to(at::kInt); },
              MPSDataTypeInt32);
}
- (T *)reductionArgMinimumWithTensor:(T *)tensor axis:(NSInteger)axis name:(NSString *)name {
  return node(self, "argMinimum", {tensor}, [axis](auto &x) { return at::argmin(x[0], axis, true).to(at::kInt); },
              MPSDataTypeInt32);
}
- (T *)cumulativeSumWithTensor:(T *)tensor axis:(NSInteger)axis name:(NSString *)name {
  return node(self, "cumulativeSum", {tensor}, [axis](auto &x) { return at::cumsum(x[0], axis, x[0].scalar_type()); });
}
- (T *)cumulativeProductWithTensor:(T *)tensor axis:(NSInteger)axis name:(NSString *)name {
  return node(self, "cumulativeProduct", {tensor}, [axis](auto &x) { return at::cumprod(x[0], axis, x[0].scalar_type()); });
}
- (T *)softMaxWithTensor:(T *)tensor axis:(NSInteger)axis name:(NSString *)name {
  return node(self, "softMax", {tensor}, [axis](auto &x) { return at::softmax(x[0], axis); }, kept_type(tensor));
}
- (T *)softMaxGradientWithIncomingGradientTensor:(T *)gradient
                                    sourceTensor:(T *)source
                                            axis:(NSInteger)axis
                                            name:(NSString *)name {
  return node(self, "softMaxGradient", {gradient, source}, [axis](auto &x) {
    auto s = at::softmax(x[1], axis);
    return s * (x[0] - (x[0] * s).sum(axis, true));
  });
}
- (T *)sortWithTensor:(T *)tensor axis:(NSInteger)axis descending:(BOOL)descending name:(NSString *)name {
  return node(self, "sort", {tensor}, [=](auto &x) { return std::get<0>(at::sort(x[0], true, axis, descending)); });
}
- (T *)sortWithTensor:(T *)tensor axis:(NSInteger)axis name:(NSString *)name {
  return [self sortWithTensor:tensor axis:axis descending:NO name:name];
}
- (T *)argSortWithTensor:(T *)tensor axis:(NSInteger)axis descending:(BOOL)descending name:(NSString *)name {
  return node(self, "argSort", {tensor}, [=](auto &x) {
    return std::get<1>(at::sort(x[0], true, axis, descending)).to(at::kInt);
  });
}
- (T *)argSortWithTensor:(T *)tensor axis:(NSInteger)axis name:(NSString *)name {
  return [self argSortWithTensor:tensor axis:axis descending:NO name:name];
}
- (NSArray *)topKWithSourceTensor:(T *)tensor axis:(NSInteger)axis k:(NSUInteger)k name:(NSString *)name {
  return largest(self, tensor, axis, k);
}
- (NSArray *)topKWithSourceTensor:(T *)tensor k:(NSUInteger)k name:(NSString *)name {
  return largest(self, tensor, -1, k);
}
@end

// Normalization with a given mean and variance, and its gradients.
@implementation MPSGraph (Normalization)
- (T *)normalizationWithTensor:(T *)tensor
                    meanTensor:(T *)mean
                varianceTensor:(T *)variance
                   gammaTensor:(T *)gamma
                    betaTensor:(T *)beta
                       epsilon:(float)epsilon
                          name:(NSString *)name {
  std::vector<T *> inputs{tensor, mean, variance};
  if (gamma) inputs.push_back(gamma);
  if (beta) inputs.push_back(beta);
  return node(self, "normalization", inputs, [=, has_gamma = gamma != nil, has_beta = beta != nil](auto &x) {
    auto out = (x[0] - x[1]) * at::rsqrt(x[2] + epsilon);
    if (has_gamma) out = out * x[3];
    if (has_beta) out = out + x.back();
    return out;
  });
}
- (T *)normalizationGammaGradientWithIncomingGradientTensor:(T *)gradient
                                               sourceTensor:(T *)source
                                                 meanTensor:(T *)mean
                                             varianceTensor:(T *)variance
                                              reductionAxes:(NSArray *)axes
                                                    epsilon:(float)epsilon
                                                       name:(NSString *)name {
  return node(self, "normalizationGammaGradient", {gradient, source, mean, variance}, [=, over = ints(axes)](auto &x) {
    return at::sum(x[0] * (x[1] - x[2]) * at::rsqrt(x[3] + epsilon), over, true);
  });
}
- (T *)normalizationBetaGradientWithIncomingGradientTensor:(T *)gradient
                                              sourceTensor:(T *)source
                                             reductionAxes:(NSArray *)axes
                                                      name:(NSString *)name {
  return node(self, "normalizationBetaGradient", {gradient}, [over = ints(axes)](auto &x) { return at::sum(x[0], over, true); });
}
- (T *)normalizationGradientWithIncomingGradientTensor:(T *)gradient
                                          sourceTensor:(T *)source
                                            meanTensor:(T *)mean
                                        varianceTensor:(T *)variance
                                           gammaTensor:(T *)gamma
                                   gammaGradientTensor:(T *)gamma_gradient
                                    betaGradientTensor:(T *)beta_gradient
                                         reductionAxes:(NSArray *)axes
                                               epsilon:(float)epsilon
                                                  name:(NSString *)name {
  std::vector<T *> inputs{gradient, source, mean, variance};
  if (gamma) inputs.push_back(gamma);
  return node(self, "normalizationGradient", inputs, [=, over = ints(axes), has_gamma = gamma != nil](auto &x) {
    auto scale = at::rsqrt(x[3] + epsilon), centred = (x[1] - x[2]) * scale;
    auto weighted = has_gamma ? x[0] * x[4] : x[0];
    return scale * (weighted - at::mean(weighted, over, true) - centred * at::mean(weighted * centred, over, true));
  });
}
@end
