// Normalization with a given mean and variance, and its gradients.
#include "graph.h"
using namespace sim;
using T = MPSGraphTensor;

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
