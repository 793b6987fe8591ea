// Resizing of pictures, and sampling at coordinates.
#include "graph.h"
using namespace sim;
using T = MPSGraphTensor;

namespace {
struct Resize {
  bool is_nearest = false, is_centred = false, aligns_corners = false, is_last = false;
  int64_t rounding = 0;
};
// A picture without a batch (layout CHW) is a batch of one.
at::Tensor nchw(const at::Tensor &x, const Resize &r) {
  return r.is_last ? x.permute({0, 3, 1, 2}) : x.dim() == 3 ? x.unsqueeze(0) : x;
}
at::Tensor as_given(const at::Tensor &x, const Resize &r, int64_t rank) {
  return r.is_last ? x.permute({0, 2, 3, 1}) : rank == 3 ? x.squeeze(0) : x;
}
bool is_last(MPSGraphTensorNamedDataLayout layout) { return layout == MPSGraphTensorNamedDataLayoutNHWC; }

// Where each place of the result lies in the source, along one axis: x * scale + offset, or (x + offset) / divisor.
// In float, as a GPU computes it: at a tie (scale 1.7 with its centre) more digits choose another element.
struct Axis {
  float scale, offset;
  int64_t from, to;
  float divisor = 0;
  float place(int64_t i) const { return divisor != 0 ? ((float)i + offset) / divisor : (float)i * scale + offset; }
};
Axis axis_of(const Resize &r, int64_t from, int64_t to) {
  if (r.aligns_corners) return {to > 1 ? float(from - 1) / float(to - 1) : 0.0f, 0.0f, from, to};
  const float scale = float(from) / float(to);
  return {scale, r.is_centred ? 0.5f * scale - 0.5f : 0.0f, from, to};
}
// The scale of a resize by scale and offset says how much larger the result is: a place is (x - offset) / scale.
Axis axis_of(float scale, float offset, int64_t from, int64_t to) { return {0, -offset, from, to, scale}; }

float rounded(float place, int64_t mode) {
  switch (mode) {
    case 0: return std::floor(place + 0.5f);
    case 1: return std::ceil(place - 0.5f);
    case 2: return std::ceil(place);
    case 3: return std::floor(place);
    case 4: return std::nearbyint(place);
    default: refuse_with("MPSGraph resize: rounding mode ", mode);
  }
}
// A matrix (to x from) that resizes one axis: the rows are weights.
at::Tensor weights_of(const Axis &axis, const Resize &r) {
  auto out = at::zeros({axis.to, axis.from}, at::kDouble);
  auto at_row = out.accessor<double, 2>();
  for (int64_t i = 0; i < axis.to; i++) {
    float place = axis.place(i);
    const float most = (float)axis.from - 1;
    if (r.is_nearest) {
      at_row[i][(int64_t)std::clamp(rounded(place, r.rounding), 0.0f, most)] = 1;
      continue;
    }
    place = std::clamp(place, 0.0f, most);
    const auto low = (int64_t)std::floor(place), high = std::min(low + 1, axis.from - 1);
    at_row[i][low] += 1 - (place - (float)low);
    at_row[i][high] += place - (float)low;
  }
  return out;
}
// The places of the source that one place of the result is made of, with their weights.
std::vector<std::vector<std::pair<int64_t, float>>> parts_of(const at::Tensor &weights) {
  std::vector<std::vector<std::pair<int64_t, float>>> out(weights.size(0));
  auto at_row = weights.accessor<double, 2>();
  for (int64_t i = 0; i < weights.size(0); i++)
    for (int64_t j = 0; j < weights.size(1); j++)
      if (at_row[i][j] != 0) out[i].emplace_back(j, (float)at_row[i][j]);
  return out;
}
// Sums of many parts, one after another in Float, as the CPU has them.
at::Tensor summed(const at::Tensor &gradient, const at::Tensor &row_weights, const at::Tensor &column_weights) {
  auto given = gradient.to(at::kFloat).contiguous();
  auto out = at::zeros({given.size(0), given.size(1), row_weights.size(1), column_weights.size(1)}, at::kFloat);
  const auto rows = parts_of(row_weights), columns = parts_of(column_weights);
  const float *from = given.data_ptr<float>();
  float *to = out.data_ptr<float>();
  for (int64_t plane = 0; plane < given.size(0) * given.size(1); plane++, to += out.size(2) * out.size(3))
    for (const auto &row : rows)
      for (const auto &column : columns) {
        for (auto [i, one] : row)
          for (auto [j, other] : column) to[i * out.size(3) + j] += one * other * *from;
        from++;
      }
  return out;
}
// Both axes at once; the gradient goes the other way through the same weights.
at::Tensor resized(const at::Tensor &x, const Resize &r, const Axis &height, const Axis &width, bool is_gradient) {
  auto picture = nchw(x, r);
  if (picture.is_meta()) {
    Sizes sizes{picture.size(0), picture.size(1), is_gradient ? height.from : height.to, is_gradient ? width.from : width.to};
    return as_given(at::empty(sizes, picture.options()), r, x.dim());
  }
  auto rows = weights_of(height, r), columns = weights_of(width, r);
  if (is_gradient) return as_given(summed(picture, rows, columns).to(picture.scalar_type()), r, x.dim());
  auto out = at::matmul(at::matmul(rows, picture.to(at::kDouble)), columns.t());
  // Assumed: whole numbers are rounded to the nearest.
  if (at::isIntegralType(picture.scalar_type(), true)) out = at::floor(out + 0.5);
  return as_given(out.to(picture.scalar_type()), r, x.dim());
}
at::Tensor forward(const Tensors &x, const Resize &r) {
  auto picture = nchw(x[0], r);
  auto size = values(x[1]);
  auto height = axis_of(r, picture.size(2), size.at(0)), width = axis_of(r, picture.size(3), size.at(1));
  if (x.size() > 2) {
    auto given = x[2].to(at::kFloat).contiguous();
    const float *s = given.data_ptr<float>(); // scales of height and width, then their offsets
    height = axis_of(s[0], s[2], picture.size(2), size.at(0));
    width = axis_of(s[1], s[3], picture.size(3), size.at(1));
  }
  return resized(x[0], r, height, width, false);
}
at::Tensor backward(const Tensors &x, const Resize &r) {
  auto gradient = nchw(x[0], r), source = nchw(x[1], r);
  auto height = axis_of(r, source.size(2), gradient.size(2)), width = axis_of(r, source.size(3), gradient.size(3));
  if (x.size() > 2) {
    auto given = x[2].to(at::kFloat).contiguous();
    const float *s = given.data_ptr<float>();
    height = axis_of(s[0], s[2], source.size(2), gradient.size(2));
    width = axis_of(s[1], s[3], source.size(3), gradient.size(3));
  }
  return resized(x[0], r, height, width, true);
}
} // namespace

@implementation MPSGraph (Resizing)
- (T *)resizeTensor:(T *)tensor
               size:(MPSShape *)size
               mode:(MPSGraphResizeMode)mode
       centerResult:(BOOL)centred
       alignCorners:(BOOL)aligned
             layout:(MPSGraphTensorNamedDataLayout)layout
               name:(NSString *)name {
  Resize r{mode == MPSGraphResizeNearest, (bool)centred, (bool)aligned, is_last(layout), 0};
  return node(self, "resize", {tensor}, [r, size = at::tensor(ints(size), at::kLong)](auto &x) { return forward({x[0], size}, r); });
}
- (T *)resizeTensor:(T *)tensor
         sizeTensor:(T *)size
               mode:(MPSGraphResizeMode)mode
       centerResult:(BOOL)centred
       alignCorners:(BOOL)aligned
             layout:(MPSGraphTensorNamedDataLayout)layout
               name:(NSString *)name {
  Resize r{mode == MPSGraphResizeNearest, (bool)centred, (bool)aligned, is_last(layout), 0};
  return node(self, "resize", {tensor, size}, [r](auto &x) { return forward(x, r); });
}
- (T *)resizeWithGradientTensor:(T *)gradient
                          input:(T *)input
                           mode:(MPSGraphResizeMode)mode
                   centerResult:(BOOL)centred
                   alignCorners:(BOOL)aligned
                         layout:(MPSGraphTensorNamedDataLayout)layout
                           name:(NSString *)name {
  Resize r{mode == MPSGraphResizeNearest, (bool)centred, (bool)aligned, is_last(layout), 0};
  return node(self, "resizeGradient", {gradient, input}, [r](auto &x) { return backward(x, r); });
}
- (T *)resizeNearestWithTensor:(T *)tensor
                    sizeTensor:(T *)size
           nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)rounding
                  centerResult:(BOOL)centred
                  alignCorners:(BOOL)aligned
                        layout:(MPSGraphTensorNamedDataLayout)layout
                          name:(NSString *)name {
  Resize r{true, (bool)centred, (bool)aligned, is_last(layout), (int64_t)rounding};
  return node(self, "resizeNearest", {tensor, size}, [r](auto &x) { return forward(x, r); });
}
- (T *)resizeNearestWithTensor:(T *)tensor
                    sizeTensor:(T *)size
             scaleOffsetTensor:(T *)scale
           nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)rounding
                        layout:(MPSGraphTensorNamedDataLayout)layout
                          name:(NSString *)name {
  Resize r{true, false, false, is_last(layout), (int64_t)rounding};
  return node(self, "resizeNearest", {tensor, size, scale}, [r](auto &x) { return forward(x, r); });
}
- (T *)resizeBilinearWithTensor:(T *)tensor
                     sizeTensor:(T *)size
                   centerResult:(BOOL)centred
                   alignCorners:(BOOL)aligned
                         layout:(MPSGraphTensorNamedDataLayout)layout
                           name:(NSString *)name {
  Resize r{false, (bool)centred, (bool)aligned, is_last(layout), 0};
  return node(self, "resizeBilinear", {tensor, size}, [r](auto &x) { return forward(x, r); });
}
- (T *)resizeBilinearWithTensor:(T *)tensor
                     sizeTensor:(T *)size
              scaleOffsetTensor:(T *)scale
                         layout:(MPSGraphTensorNamedDataLayout)layout
                           name:(NSString *)name {
  Resize r{false, false, false, is_last(layout), 0};
  return node(self, "resizeBilinear", {tensor, size, scale}, [r](auto &x) { return forward(x, r); });
}
- (T *)resizeNearestWithGradientTensor:(T *)gradient
                                 input:(T *)input
                   nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)rounding
                          centerResult:(BOOL)centred
                          alignCorners:(BOOL)aligned
                                layout:(MPSGraphTensorNamedDataLayout)layout
                                  name:(NSString *)name {
  Resize r{true, (bool)centred, (bool)aligned, is_last(layout), (int64_t)rounding};
  return node(self, "resizeNearestGradient", {gradient, input}, [r](auto &x) { return backward(x, r); });
}
- (T *)resizeNearestWithGradientTensor:(T *)gradient
                                 input:(T *)input
                     scaleOffsetTensor:(T *)scale
                   nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)rounding
                                layout:(MPSGraphTensorNamedDataLayout)layout
                                  name:(NSString *)name {
  Resize r{true, false, false, is_last(layout), (int64_t)rounding};
  return node(self, "resizeNearestGradient", {gradient, input, scale}, [r](auto &x) { return backward(x, r); });
}
- (T *)resizeBilinearWithGradientTensor:(T *)gradient
                                  input:(T *)input
                           centerResult:(BOOL)centred
                           alignCorners:(BOOL)aligned
                                 layout:(MPSGraphTensorNamedDataLayout)layout
                                   name:(NSString *)name {
  Resize r{false, (bool)centred, (bool)aligned, is_last(layout), 0};
  return node(self, "resizeBilinearGradient", {gradient, input}, [r](auto &x) { return backward(x, r); });
}
- (T *)resizeBilinearWithGradientTensor:(T *)gradient
                                  input:(T *)input
                      scaleOffsetTensor:(T *)scale
                                 layout:(MPSGraphTensorNamedDataLayout)layout
                                   name:(NSString *)name {
  Resize r{false, false, false, is_last(layout), 0};
  return node(self, "resizeBilinearGradient", {gradient, input, scale}, [r](auto &x) { return backward(x, r); });
}
@end

// Sampling a picture at coordinates (grid sampling).
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
