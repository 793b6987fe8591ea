// Padding, and blocks of pixels to channels and back.
#include "graph.h"
using namespace sim;
using T = MPSGraphTensor;

namespace {
// One axis of a padded tensor: which element of the source each place shows, or -1 for the constant.
Sizes sources_of(int64_t size, int64_t left, int64_t right, MPSGraphPaddingMode mode) {
  Sizes out;
  for (int64_t i = -left; i < size + right; i++) {
    int64_t from = i;
    if (i < 0 || i >= size) {
      switch ((int)mode) {
        case 1: from = i < 0 ? -i : 2 * (size - 1) - i; break;          // Reflect
        case 2: from = i < 0 ? -i - 1 : 2 * size - 1 - i; break;        // Symmetric
        case 3: from = i < 0 ? 0 : size - 1; break;                     // ClampToEdge
        case 5: from = ((i % size) + size) % size; break;               // Periodic
        default: from = -1;                                             // Zero, Constant
      }
    }
    out.push_back(from);
  }
  return out;
}
at::Tensor padded(at::Tensor x, const Sizes &left, const Sizes &right, MPSGraphPaddingMode mode, double constant) {
  for (int64_t axis = 0; axis < (int64_t)left.size(); axis++) {
    if (!left[axis] && !right[axis]) continue;
    if ((int)mode == 0 || (int)mode == 4) {
      Sizes amounts(2 * (x.dim() - axis), 0);
      amounts[amounts.size() - 2] = left[axis];
      amounts[amounts.size() - 1] = right[axis];
      x = at::constant_pad_nd(x, amounts, (int)mode == 4 ? 0.0 : constant);
      continue;
    }
    auto from = at::tensor(sources_of(x.size(axis), left[axis], right[axis], mode), at::kLong);
    x = at::index_select(x, axis, x.is_meta() ? from.to(at::kMeta) : from);
  }
  return x;
}
// The gradient of padding: what lies outside is added to where it came from. Assumed: its sizes are those of the
// gradient without the padding, whatever the source has (PyTorch relies on it where a padding is negative).
at::Tensor folded(at::Tensor x, const Sizes &left, const Sizes &right, MPSGraphPaddingMode mode) {
  for (int64_t axis = 0; axis < (int64_t)left.size(); axis++) {
    if (!left[axis] && !right[axis]) continue;
    auto shape = x.sizes().vec();
    const int64_t size = shape[axis] -= left[axis] + right[axis];
    if ((int)mode == 0 || (int)mode == 4) {
      x = x.slice(axis, left[axis], left[axis] + size);
      continue;
    }
    auto zero = at::zeros(shape, x.options());
    auto from = at::tensor(sources_of(size, left[axis], right[axis], mode), at::kLong);
    x = x.is_meta() ? zero : at::index_add(zero, axis, from, x);
  }
  return x;
}
// Blocks of pixels to channels and back. The pixel shuffle's order has the channel outermost in what is spread.
at::Tensor depth_to_space(const at::Tensor &x, Sizes axes, int64_t block, bool is_shuffle) {
  for (auto &axis : axes) axis = wrapped(axis, x.dim());
  auto y = at::movedim(x, {axes[2], axes[1], axes[0]}, {-3, -2, -1}); // …, depth, height, width
  auto shape = y.sizes().vec();
  const size_t n = shape.size();
  const int64_t depth = shape[n - 3] / (block * block), height = shape[n - 2], width = shape[n - 1];
  Sizes head(shape.begin(), shape.end() - 3), split = head, whole = head;
  const int64_t h = (int64_t)head.size();
  if (is_shuffle) split.insert(split.end(), {depth, block, block, height, width});
  else split.insert(split.end(), {block, block, depth, height, width});
  Sizes order(h);
  std::iota(order.begin(), order.end(), 0);
  if (is_shuffle) order.insert(order.end(), {h, h + 3, h + 1, h + 4, h + 2});
  else order.insert(order.end(), {h + 2, h + 3, h, h + 4, h + 1});
  whole.insert(whole.end(), {depth, height * block, width * block});
  y = y.reshape(split).permute(order).reshape(whole);
  return at::movedim(y, {-3, -2, -1}, {axes[2], axes[1], axes[0]});
}
at::Tensor space_to_depth(const at::Tensor &x, Sizes axes, int64_t block, bool is_shuffle) {
  for (auto &axis : axes) axis = wrapped(axis, x.dim());
  auto y = at::movedim(x, {axes[2], axes[1], axes[0]}, {-3, -2, -1});
  auto shape = y.sizes().vec();
  const size_t n = shape.size();
  const int64_t depth = shape[n - 3], height = shape[n - 2] / block, width = shape[n - 1] / block;
  Sizes head(shape.begin(), shape.end() - 3), split = head, whole = head;
  const int64_t h = (int64_t)head.size();
  split.insert(split.end(), {depth, height, block, width, block});
  Sizes order(h);
  std::iota(order.begin(), order.end(), 0);
  if (is_shuffle) order.insert(order.end(), {h, h + 2, h + 4, h + 1, h + 3});
  else order.insert(order.end(), {h + 2, h + 4, h, h + 1, h + 3});
  whole.insert(whole.end(), {depth * block * block, height, width});
  y = y.reshape(split).permute(order).reshape(whole);
  return at::movedim(y, {-3, -2, -1}, {axes[2], axes[1], axes[0]});
}
} // namespace

@implementation MPSGraph (Padding)
- (T *)padTensor:(T *)tensor
    withPaddingMode:(MPSGraphPaddingMode)mode
        leftPadding:(MPSShape *)left
       rightPadding:(MPSShape *)right
      constantValue:(double)constant
               name:(NSString *)name {
  return node(self, "pad", {tensor}, [=, before = ints(left), after = ints(right)](auto &x) {
    return padded(x[0], before, after, mode, constant);
  });
}
- (T *)padGradientWithIncomingGradientTensor:(T *)gradient
                                sourceTensor:(T *)source
                                 paddingMode:(MPSGraphPaddingMode)mode
                                 leftPadding:(MPSShape *)left
                                rightPadding:(MPSShape *)right
                                        name:(NSString *)name {
  return node(self, "padGradient", {gradient, source}, [=, before = ints(left), after = ints(right)](auto &x) {
    return folded(x[0], before, after, mode);
  });
}
- (T *)depthToSpace2DTensor:(T *)tensor
                  widthAxis:(NSUInteger)width
                 heightAxis:(NSUInteger)height
                  depthAxis:(NSUInteger)depth
                  blockSize:(NSUInteger)block
       usePixelShuffleOrder:(BOOL)is_shuffle
                       name:(NSString *)name {
  Sizes axes{(int64_t)width, (int64_t)height, (int64_t)depth};
  return node(self, "depthToSpace2D", {tensor}, [=](auto &x) { return depth_to_space(x[0], axes, (int64_t)block, is_shuffle); });
}
- (T *)spaceToDepth2DTensor:(T *)tensor
                  widthAxis:(NSUInteger)width
                 heightAxis:(NSUInteger)height
                  depthAxis:(NSUInteger)depth
                  blockSize:(NSUInteger)block
       usePixelShuffleOrder:(BOOL)is_shuffle
                       name:(NSString *)name {
  Sizes axes{(int64_t)width, (int64_t)height, (int64_t)depth};
  return node(self, "spaceToDepth2D", {tensor}, [=](auto &x) { return space_to_depth(x[0], axes, (int64_t)block, is_shuffle); });
}
@end
