// Shapes: reshaping, slices, concatenation, coordinates.
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
at::Tensor squeezed(at::Tensor x, Sizes axes) {
  for (auto &axis : axes) axis = wrapped(axis, x.dim());
  std::sort(axes.rbegin(), axes.rend());
  for (auto axis : axes) x = x.squeeze(axis);
  return x;
}
at::Tensor coordinates(int64_t axis, const Sizes &shape) {
  axis = wrapped(axis, (int64_t)shape.size());
  Sizes along(shape.size(), 1);
  along[axis] = shape[axis];
  return at::arange(shape[axis], at::TensorOptions().dtype(at::kInt)).reshape(along).expand(shape);
}
} // namespace

namespace sim {
at::Tensor band_part(const at::Tensor &x, int64_t lower, int64_t upper) {
  auto out = upper >= 0 ? at::tril(x, upper) : x;
  return lower >= 0 ? at::triu(out, -lower) : out;
}
} // namespace sim

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
  return node(self, "squeeze", {tensor}, [given = ints(axes)](auto &x) { return squeezed(x[0], given); });
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
  return [self bandPartWithTensor:tensor
                   numLowerTensor:[self constantWithScalar:(double)lower dataType:MPSDataTypeInt32]
                   numUpperTensor:[self constantWithScalar:(double)upper dataType:MPSDataTypeInt32]
                             name:name];
}
- (T *)bandPartWithTensor:(T *)tensor numLowerTensor:(T *)lower numUpperTensor:(T *)upper name:(NSString *)name {
  return node(self, "bandPart", {tensor, lower, upper}, [](auto &x) {
    return x[0].is_meta() ? x[0] : band_part(x[0], values(x[1]).at(0), values(x[2]).at(0));
  });
}
- (T *)coordinateAlongAxis:(NSInteger)axis withShape:(MPSShape *)shape name:(NSString *)name {
  return node(self, "coordinate", {}, [=, sizes = ints(shape)](auto &) { return coordinates(axis, sizes); }, MPSDataTypeInt32);
}
- (T *)coordinateAlongAxis:(NSInteger)axis withShapeTensor:(T *)shape name:(NSString *)name {
  return node(self, "coordinate", {shape}, [=](auto &x) { return coordinates(axis, values(x[0])); }, MPSDataTypeInt32);
}
// As 1.12 calls it: no header of Apple's has it.
- (T *)getCoordinateValueWithShapeTensor:(T *)shape axisTensor:(T *)axis name:(NSString *)name {
  return [self coordinateAlongAxisTensor:axis withShapeTensor:shape name:name];
}
- (T *)coordinateAlongAxisTensor:(T *)axis withShapeTensor:(T *)shape name:(NSString *)name {
  return node(self, "coordinate", {axis, shape}, [](auto &x) {
    return coordinates(values(x[0]).at(0), values(x[1]));
  }, MPSDataTypeInt32);
}
@end
