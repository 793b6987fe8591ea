// Shapes: reshaping, slices, concatenation, padding, coordinates.
#include "graph.h"
using namespace sim;
using T = MPSGraphTensor;

namespace {
struct Slice {
  Sizes starts, ends, strides;
  uint32_t start_mask = 0, end_mask = 0, squeeze_mask = 0;
};
at::Tensor cut(at::Tensor x, const Slice &slice) {
  for (size_t i = 0; i < slice.starts.size(); i++) {
    const int64_t size = x.size((int64_t)i), step = slice.strides[i];
    const bool is_back = step < 0; // a negative stride: the slice of the reversed axis
    if (is_back) x = at::flip(x, {(int64_t)i});
    auto place = [&](int64_t at) { return is_back ? size - 1 - wrapped(at, size) : wrapped(at, size); };
    const int64_t begin = slice.start_mask >> i & 1 ? 0 : place(slice.starts[i]);
    const int64_t end = slice.end_mask >> i & 1 ? size : slice.ends[i] >= size ? size : place(slice.ends[i]);
    x = x.slice((int64_t)i, begin, end, std::abs(step));
  }
  return x;
}
at::Tensor squeezed(at::Tensor x, uint32_t mask) {
  for (int64_t i = x.dim() - 1; i >= 0; i--)
    if (mask >> i & 1) x = x.squeeze(i);
  return x;
}
at::Tensor unsqueezed(at::Tensor x, Sizes axes) {
  const int64_t rank = x.dim() + (int64_t)axes.size();
  for (auto &axis : axes) axis = wrapped(axis, rank);
  std::sort(axes.begin(), axes.end());
  for (auto axis : axes) x = x.unsqueeze(axis);
  return x;
}
at::Tensor coordinates(int64_t axis, const Sizes &shape) {
  axis = wrapped(axis, (int64_t)shape.size());
  Sizes along(shape.size(), 1);
  along[axis] = shape[axis];
  return at::arange(shape[axis], at::TensorOptions().dtype(at::kInt)).reshape(along).expand(shape);
}
at::Tensor band(const at::Tensor &x, int64_t lower, int64_t upper) {
  auto out = upper >= 0 ? at::tril(x, upper) : x;
  return lower >= 0 ? at::triu(out, -lower) : out;
}

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
// The gradient of padding: what lies outside is added to where it came from.
at::Tensor folded(at::Tensor x, const at::Tensor &source, const Sizes &left, const Sizes &right, MPSGraphPaddingMode mode) {
  for (int64_t axis = 0; axis < (int64_t)left.size(); axis++) {
    if (!left[axis] && !right[axis]) continue;
    const int64_t size = source.size(axis);
    if ((int)mode == 0 || (int)mode == 4) {
      x = x.slice(axis, left[axis], left[axis] + size);
      continue;
    }
    auto shape = x.sizes().vec();
    shape[axis] = size;
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

@implementation MPSGraph (Shapes)
- (T *)reshapeTensor:(T *)tensor withShape:(MPSShape *)shape name:(NSString *)name {
  return node(self, "reshape", {tensor}, [sizes = ints(shape)](auto &x) { return x[0].reshape(sizes); });
}
- (T *)reshapeTensor:(T *)tensor withShapeTensor:(T *)shape name:(NSString *)name {
  return node(self, "reshape", {tensor, shape}, [](auto &x) { return x[0].reshape(values(x[1])); });
}
- (T *)broadcastTensor:(T *)tensor toShape:(MPSShape *)shape name:(NSString *)name {
  return node(self, "broadcast", {tensor}, [sizes = ints(shape)](auto &x) { return x[0].expand(sizes); });
}
- (T *)broadcastTensor:(T *)tensor toShapeTensor:(T *)shape name:(NSString *)name {
  return node(self, "broadcast", {tensor, shape}, [](auto &x) { return x[0].expand(values(x[1])); });
}
- (T *)transposeTensor:(T *)tensor dimension:(NSUInteger)one withDimension:(NSUInteger)other name:(NSString *)name {
  return node(self, "transpose", {tensor}, [=](auto &x) { return x[0].transpose((int64_t)one, (int64_t)other); });
}
- (T *)transposeTensor:(T *)tensor permutation:(NSArray *)order name:(NSString *)name {
  return node(self, "transpose", {tensor}, [axes = ints(order)](auto &x) { return x[0].permute(axes); });
}
- (T *)expandDimsOfTensor:(T *)tensor axis:(NSInteger)axis name:(NSString *)name {
  return node(self, "expandDims", {tensor}, [axis](auto &x) { return x[0].unsqueeze(axis); });
}
- (T *)expandDimsOfTensor:(T *)tensor axes:(NSArray *)axes name:(NSString *)name {
  return node(self, "expandDims", {tensor}, [given = ints(axes)](auto &x) { return unsqueezed(x[0], given); });
}
- (T *)squeezeTensor:(T *)tensor name:(NSString *)name {
  return node(self, "squeeze", {tensor}, [](auto &x) { return x[0].squeeze(); });
}
- (T *)squeezeTensor:(T *)tensor axis:(NSInteger)axis name:(NSString *)name {
  return node(self, "squeeze", {tensor}, [axis](auto &x) { return x[0].squeeze(axis); });
}
- (T *)squeezeTensor:(T *)tensor axes:(NSArray *)axes name:(NSString *)name {
  return node(self, "squeeze", {tensor}, [given = ints(axes)](auto &x) { return x[0].squeeze(given); });
}
- (T *)flatten2DTensor:(T *)tensor axis:(NSInteger)axis name:(NSString *)name {
  return node(self, "flatten2D", {tensor}, [axis](auto &x) {
    int64_t rows = 1;
    for (int64_t i = 0; i < wrapped(axis, x[0].dim()); i++) rows *= x[0].size(i);
    return x[0].reshape({rows, rows ? x[0].numel() / rows : 0});
  });
}
- (T *)tileTensor:(T *)tensor withMultiplier:(MPSShape *)multiplier name:(NSString *)name {
  return node(self, "tile", {tensor}, [times = ints(multiplier)](auto &x) { return x[0].repeat(times); });
}
- (T *)reverseTensor:(T *)tensor axes:(NSArray *)axes name:(NSString *)name {
  return node(self, "reverse", {tensor}, [given = ints(axes)](auto &x) { return at::flip(x[0], given); });
}
- (T *)concatTensor:(T *)one withTensor:(T *)other dimension:(NSInteger)axis name:(NSString *)name {
  return [self concatTensors:@[ one, other ] dimension:axis name:name];
}
- (T *)concatTensors:(NSArray *)tensors dimension:(NSInteger)axis name:(NSString *)name {
  return [self concatTensors:tensors dimension:axis interleave:NO name:name];
}
- (T *)concatTensors:(NSArray *)tensors dimension:(NSInteger)axis interleave:(BOOL)interleave name:(NSString *)name {
  std::vector<T *> all;
  for (T *each in tensors) {
    same_types("concat", [tensors objectAtIndex:0], each);
    all.push_back(each);
  }
  return node(self, "concat", all, [=](auto &x) -> at::Tensor {
    const int64_t along = wrapped(axis, x[0].dim());
    return interleave ? at::stack(x, along + 1).flatten(along, along + 1) : at::cat(x, along);
  });
}
- (NSArray *)splitTensor:(T *)tensor numSplits:(NSUInteger)count axis:(NSInteger)axis name:(NSString *)name {
  return listed(nodes(self, "split", {tensor}, [=](const Tensors &x) { return at::chunk(x[0], (int64_t)count, axis); }, (int)count));
}
- (T *)sliceTensor:(T *)tensor dimension:(NSUInteger)axis start:(NSInteger)start length:(NSInteger)length name:(NSString *)name {
  return node(self, "slice", {tensor}, [=](auto &x) {
    const int64_t begin = wrapped(start, x[0].size((int64_t)axis));
    if (begin + length > x[0].size((int64_t)axis)) refuse_with("a slice of ", length, " from ", begin, " of ", x[0].sizes());
    return x[0].slice((int64_t)axis, begin, begin + length);
  });
}
- (T *)sliceTensor:(T *)tensor starts:(NSArray *)starts ends:(NSArray *)ends strides:(NSArray *)strides name:(NSString *)name {
  return [self sliceTensor:tensor starts:starts ends:ends strides:strides startMask:0 endMask:0 squeezeMask:0 name:name];
}
- (T *)sliceTensor:(T *)tensor
            starts:(NSArray *)starts
              ends:(NSArray *)ends
           strides:(NSArray *)strides
         startMask:(uint32_t)start_mask
           endMask:(uint32_t)end_mask
       squeezeMask:(uint32_t)squeeze_mask
              name:(NSString *)name {
  Slice slice{ints(starts), ints(ends), ints(strides), start_mask, end_mask, squeeze_mask};
  return node(self, "slice", {tensor}, [slice](auto &x) { return squeezed(cut(x[0], slice), slice.squeeze_mask); });
}
- (T *)sliceGradientTensor:(T *)gradient
          fwdInShapeTensor:(T *)shape
                    starts:(NSArray *)starts
                      ends:(NSArray *)ends
                   strides:(NSArray *)strides
                 startMask:(uint32_t)start_mask
                   endMask:(uint32_t)end_mask
               squeezeMask:(uint32_t)squeeze_mask
                      name:(NSString *)name {
  Slice slice{ints(starts), ints(ends), ints(strides), start_mask, end_mask, squeeze_mask};
  return node(self, "sliceGradient", {gradient, shape}, [slice](auto &x) {
    auto out = at::zeros(values(x[1]), x[0].options());
    auto place = cut(out, slice);
    place.copy_(x[0].reshape(place.sizes()));
    return out;
  });
}
- (T *)shapeOfTensor:(T *)tensor name:(NSString *)name {
  return node(self, "shape", {tensor}, [](auto &x) {
    return at::tensor(x[0].sizes().vec(), at::TensorOptions().dtype(at::kInt));
  }, MPSDataTypeInt32);
}
- (T *)bandPartWithTensor:(T *)tensor numLower:(NSInteger)lower numUpper:(NSInteger)upper name:(NSString *)name {
  return node(self, "bandPart", {tensor}, [=](auto &x) { return band(x[0], lower, upper); });
}
- (T *)bandPartWithTensor:(T *)tensor numLowerTensor:(T *)lower numUpperTensor:(T *)upper name:(NSString *)name {
  return node(self, "bandPart", {tensor, lower, upper}, [](auto &x) {
    return x[0].is_meta() ? x[0] : band(x[0], values(x[1]).at(0), values(x[2]).at(0));
  });
}
- (T *)coordinateAlongAxis:(NSInteger)axis withShape:(MPSShape *)shape name:(NSString *)name {
  return node(self, "coordinate", {}, [=, sizes = ints(shape)](auto &) { return coordinates(axis, sizes); }, MPSDataTypeInt32);
}
- (T *)coordinateAlongAxis:(NSInteger)axis withShapeTensor:(T *)shape name:(NSString *)name {
  return node(self, "coordinate", {shape}, [=](auto &x) { return coordinates(axis, values(x[0])); }, MPSDataTypeInt32);
}
- (T *)coordinateAlongAxisTensor:(T *)axis withShapeTensor:(T *)shape name:(NSString *)name {
  return node(self, "coordinate", {axis, shape}, [](auto &x) {
    return coordinates(values(x[0]).at(0), values(x[1]));
  }, MPSDataTypeInt32);
}
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
    return folded(x[0], x[1], before, after, mode);
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
