// Sampling a picture at coordinates (grid sampling).
#include "graph.h"
using namespace sim;
using T = MPSGraphTensor;

namespace {
struct Sampling {
  bool is_last, normalizes, is_relative, aligns_corners;
  int padding; // MPSGraphPaddingMode
  int mode;    // 0 nearest, 1 bilinear
};
at::Tensor sampled(const at::Tensor &source, const at::Tensor &coordinates, const Sampling &s) {
  if (s.is_relative || !s.normalizes) refuse("MPSGraph sampleGrid: coordinates that are relative or not normalized");
  auto picture = s.is_last ? source.permute({0, 3, 1, 2}) : source;
  // ATen: 0 zeros, 1 border, 2 reflection; its reflection is at the border's edge without aligned corners.
  const int padding = s.padding == 4 || s.padding == 0 ? 0 : s.padding == 3 ? 1 : 2;
  // Both name the column first, then the row: PyTorch hands its grid over as it is.
  auto out = at::grid_sampler(picture, coordinates, s.mode == 1 ? 0 : 1, padding, s.aligns_corners);
  return s.is_last ? out.permute({0, 2, 3, 1}) : out;
}
} // namespace

@implementation MPSGraph (Sampling)
- (T *)sampleGridWithSourceTensor:(T *)source
                 coordinateTensor:(T *)coordinates
                           layout:(MPSGraphTensorNamedDataLayout)layout
             normalizeCoordinates:(BOOL)normalizes
              relativeCoordinates:(BOOL)relative
                     alignCorners:(BOOL)aligned
                      paddingMode:(MPSGraphPaddingMode)padding
                     samplingMode:(MPSGraphResizeMode)mode
                    constantValue:(double)constant
                             name:(NSString *)name {
  Sampling s{layout == MPSGraphTensorNamedDataLayoutNHWC, (bool)normalizes, (bool)relative, (bool)aligned, (int)padding, (int)mode};
  return node(self, "sampleGrid", {source, coordinates}, [s](auto &x) { return sampled(x[0], x[1], s); });
}
- (T *)sampleGridWithSourceTensor:(T *)source
                 coordinateTensor:(T *)coordinates
                           layout:(MPSGraphTensorNamedDataLayout)layout
             normalizeCoordinates:(BOOL)normalizes
              relativeCoordinates:(BOOL)relative
                     alignCorners:(BOOL)aligned
                      paddingMode:(MPSGraphPaddingMode)padding
              nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)rounding
                    constantValue:(double)constant
                             name:(NSString *)name {
  if (rounding == MPSGraphResizeNearestRoundingModeRoundToEven) need_constant("MPSGraphResizeNearestRoundingModeRoundToEven");
  Sampling s{layout == MPSGraphTensorNamedDataLayoutNHWC, (bool)normalizes, (bool)relative, (bool)aligned, (int)padding, 0};
  return node(self, "sampleGrid", {source, coordinates}, [s](auto &x) { return sampled(x[0], x[1], s); });
}
@end
