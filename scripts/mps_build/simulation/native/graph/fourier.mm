// Fourier transforms.
#include "graph.h"
using namespace sim;
using T = MPSGraphTensor;

@interface MPSGraphFFTDescriptor () {
 @public
  bool is_inverse, is_odd;
  NSUInteger scaling;
}
@end
@implementation MPSGraphFFTDescriptor
+ (instancetype)descriptor {
  return [[self new] autorelease];
}
- (void)setInverse:(BOOL)inverse {
  is_inverse = inverse;
}
- (void)setRoundToOddHermitean:(BOOL)odd {
  is_odd = odd;
}
- (void)setScalingMode:(MPSGraphFFTScalingMode)mode {
  scaling = mode;
}
@end

namespace {
// ATen's numbers: 0 none, 1 by the root of the size, 2 by the size.
int64_t norm_of(MPSGraphFFTDescriptor *about) {
  return about->scaling == MPSGraphFFTScalingModeSize ? 2 : about->scaling == MPSGraphFFTScalingModeUnitary ? 1 : 0;
}
} // namespace

@implementation MPSGraph (Fourier)
- (T *)fastFourierTransformWithTensor:(T *)tensor axes:(NSArray *)axes descriptor:(MPSGraphFFTDescriptor *)about name:(NSString *)name {
  const bool is_forward = !about->is_inverse;
  return node(self, "fastFourierTransform", {tensor}, [=, over = ints(axes), norm = norm_of(about)](auto &x) {
    return at::_fft_c2c(x[0].is_complex() ? x[0] : x[0].to(at::kComplexFloat), over, norm, is_forward);
  });
}
- (T *)realToHermiteanFFTWithTensor:(T *)tensor axes:(NSArray *)axes descriptor:(MPSGraphFFTDescriptor *)about name:(NSString *)name {
  const bool is_inverse = about->is_inverse;
  return node(self, "realToHermiteanFFT", {tensor}, [=, over = ints(axes), norm = norm_of(about)](auto &x) {
    auto out = at::_fft_r2c(x[0], over, norm, true);
    return is_inverse ? at::conj_physical(out) : out;
  });
}
- (T *)HermiteanToRealFFTWithTensor:(T *)tensor axes:(NSArray *)axes descriptor:(MPSGraphFFTDescriptor *)about name:(NSString *)name {
  const int64_t odd = about->is_odd;
  return node(self, "HermiteanToRealFFT", {tensor}, [=, over = ints(axes), norm = norm_of(about)](auto &x) {
    return at::_fft_c2r(x[0], over, norm, 2 * (x[0].size(over.back()) - 1) + odd);
  });
}
@end
