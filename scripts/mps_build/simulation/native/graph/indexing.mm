// Gathering and scattering.
#include "graph.h"
using namespace sim;
using T = MPSGraphTensor;

namespace {
enum Mode { kAdd = 0, kSub = 1, kMul = 2, kDiv = 3, kMin = 4, kMax = 5, kSet = 6 };

at::Tensor scattered(const at::Tensor &data, int64_t axis, const at::Tensor &places, const at::Tensor &updates, int mode) {
  switch (mode) {
    case kAdd: return at::scatter_add(data, axis, places, updates);
    case kSub: return at::scatter_add(data, axis, places, at::neg(updates));
    case kMul: return at::scatter_reduce(data, axis, places, updates, "prod");
    case kMin: return at::scatter_reduce(data, axis, places, updates, "amin");
    case kMax: return at::scatter_reduce(data, axis, places, updates, "amax");
    case kSet: return at::scatter(data, axis, places, updates);
  }
  refuse("scatter by division");
}

// Whole slices along an axis: the indices are spread over the slices.
at::Tensor scattered_slices(const at::Tensor &data, int64_t axis, const at::Tensor &places, const at::Tensor &updates, int mode) {
  axis = wrapped(axis, data.dim());
  auto flat = places.to(at::kLong).reshape({-1});
  auto shape = data.sizes().vec();
  shape[axis] = flat.numel();
  auto slices = updates.reshape(shape);
  if (data.is_meta()) return data;
  // Assumed: an index outside of the data is left out (unique relies on it, with -1).
  auto inside = at::logical_and(flat.ge(0), flat.lt(data.size(axis))).nonzero().reshape({-1});
  flat = flat.index_select(0, inside);
  slices = slices.index_select(axis, inside);
  Sizes along(shape.size(), 1);
  shape[axis] = along[axis] = flat.numel();
  return scattered(data, axis, flat.reshape(along).expand(shape), slices, mode);
}

// The last axis of the indices names elements or slices by their coordinates, behind axes that both share (`batch`).
// Returned: the data as rows, and which row each index names; -1 for one outside of the data.
std::pair<at::Tensor, at::Tensor> rows_of(const at::Tensor &data, const at::Tensor &places, int64_t batch) {
  auto whole = places.to(at::kLong);
  const int64_t depth = whole.size(-1), rank = whole.dim() - 1;
  auto row = at::zeros(whole.sizes().slice(0, (size_t)rank), whole.options());
  auto inside = at::ones_like(row, at::kBool);
  for (int64_t i = 0; i < batch; i++) {
    Sizes along((size_t)rank, 1);
    along[i] = data.size(i);
    row = row * data.size(i) + at::arange(data.size(i), whole.options()).reshape(along);
  }
  int64_t count = 1;
  for (int64_t i = 0; i < batch + depth; i++) count *= data.size(i);
  for (int64_t i = 0; i < depth; i++) {
    auto at_axis = whole.select(-1, i);
    inside = inside.logical_and(at_axis.ge(0)).logical_and(at_axis.lt(data.size(batch + i)));
    row = row * data.size(batch + i) + at_axis;
  }
  const int64_t slice = std::accumulate(data.sizes().begin() + batch + depth, data.sizes().end(), (int64_t)1, std::multiplies<>());
  return {data.reshape({count, slice}), at::where(inside, row, -1)};
}
at::Tensor scattered_nd(const at::Tensor &data, const at::Tensor &places, const at::Tensor &updates, int64_t batch, int mode) {
  if (data.is_meta()) return data;
  auto [rows, row] = rows_of(data, places, batch);
  return scattered_slices(rows, 0, row, updates.reshape({row.numel(), rows.size(1)}), mode).reshape(data.sizes());
}
// Assumed: what an index outside of the data gathers is 0; a GPU checks nothing and raises nothing.
at::Tensor selected(const at::Tensor &data, int64_t axis, const at::Tensor &places) {
  if (data.is_meta()) return at::index_select(data, axis, places);
  auto inside = places.ge(0).logical_and(places.lt(data.size(axis)));
  if (inside.all().item<bool>()) return at::index_select(data, axis, places);
  auto shape = data.sizes().vec();
  shape[axis] = places.numel();
  if (!data.numel()) return at::zeros(shape, data.options());
  Sizes along(shape.size(), 1);
  along[axis] = places.numel();
  auto found = at::index_select(data, axis, at::where(inside, places, 0));
  return at::where(inside.reshape(along), found, at::zeros({}, data.options()));
}
at::Tensor gathered_nd(const at::Tensor &data, const at::Tensor &places, int64_t batch) {
  auto shape = places.sizes().vec();
  shape.pop_back();
  shape.insert(shape.end(), data.sizes().begin() + batch + places.size(-1), data.sizes().end());
  if (data.is_meta()) return at::empty(shape, data.options());
  auto [rows, row] = rows_of(data, places, batch);
  return selected(rows, 0, row.reshape({-1})).reshape(shape);
}

at::Tensor gathered(const at::Tensor &data, const at::Tensor &places, int64_t axis, int64_t batch) {
  axis = wrapped(axis, data.dim());
  if (batch > 0) {
    std::vector<at::Tensor> rows;
    for (int64_t i = 0; i < data.size(0); i++) rows.push_back(gathered(data[i], places[i], axis - 1, batch - 1));
    return at::stack(rows);
  }
  auto shape = data.sizes().vec();
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, places.sizes().begin(), places.sizes().end());
  return selected(data, axis, places.to(at::kLong).reshape({-1})).reshape(shape);
}
} // namespace

@implementation MPSGraph (Indexing)
- (T *)gatherAlongAxis:(NSInteger)axis withUpdatesTensor:(T *)data indicesTensor:(T *)places name:(NSString *)name {
  return node(self, "gatherAlongAxis", {data, places}, [axis](auto &x) -> at::Tensor {
    auto places = x[1].to(at::kLong);
    if (x[0].is_meta()) return at::gather(x[0], axis, places);
    auto inside = places.ge(0).logical_and(places.lt(x[0].size(axis)));
    return at::where(inside, at::gather(x[0], axis, at::where(inside, places, 0)), at::zeros({}, x[0].options()));
  });
}
// As 1.12 calls them: no header of Apple's has these two.
- (T *)gatherAlongAxisWithUpdatesTensor:(T *)data indicesTensor:(T *)places axis:(NSInteger)axis name:(NSString *)name {
  return [self gatherAlongAxis:axis withUpdatesTensor:data indicesTensor:places name:name];
}
- (T *)scatterAlongAxisWithDataTensor:(T *)data
                        updatesTensor:(T *)updates
                        indicesTensor:(T *)places
                                 axis:(NSInteger)axis
                                 mode:(MPSGraphScatterMode)mode
                                 name:(NSString *)name {
  return [self scatterAlongAxis:axis withDataTensor:data updatesTensor:updates indicesTensor:places mode:mode name:name];
}
- (T *)gatherWithUpdatesTensor:(T *)data
                 indicesTensor:(T *)places
                          axis:(NSUInteger)axis
               batchDimensions:(NSUInteger)batch
                          name:(NSString *)name {
  return node(self, "gather", {data, places}, [=](auto &x) { return gathered(x[0], x[1], (int64_t)axis, (int64_t)batch); });
}
- (T *)gatherNDWithUpdatesTensor:(T *)data
                   indicesTensor:(T *)places
                 batchDimensions:(NSUInteger)batch
                            name:(NSString *)name {
  return node(self, "gatherND", {data, places}, [=](auto &x) { return gathered_nd(x[0], x[1], (int64_t)batch); });
}
- (T *)scatterAlongAxis:(NSInteger)axis
         withDataTensor:(T *)data
          updatesTensor:(T *)updates
          indicesTensor:(T *)places
                   mode:(MPSGraphScatterMode)mode
                   name:(NSString *)name {
  // Bool may be written into Int8: PyTorch 1.13 does so to views of Bool, and its tests pass on Macs.
  if (type_of(data) == MPSDataTypeInt8 && type_of(updates) == MPSDataTypeBool)
    updates = [self castTensor:updates toType:MPSDataTypeInt8 name:nil];
  same_types("scatterAlongAxis", data, updates);
  return node(self, "scatterAlongAxis", {data, updates, places}, [=](auto &x) {
    return scattered(x[0], axis, x[2].to(at::kLong), x[1], (int)mode);
  });
}
- (T *)scatterWithDataTensor:(T *)data
               updatesTensor:(T *)updates
               indicesTensor:(T *)places
                        axis:(NSInteger)axis
                        mode:(MPSGraphScatterMode)mode
                        name:(NSString *)name {
  // Integers may be of other widths: nonzero of 2.1 scatters Int into Long.
  const bool are_whole = data && updates && at::isIntegralType(torch_type(type_of(data)), false) && at::isIntegralType(torch_type(type_of(updates)), false);
  if (are_whole && type_of(data) != type_of(updates)) updates = [self castTensor:updates toType:(MPSDataType)type_of(data) name:nil];
  same_types("scatter", data, updates);
  return node(self, "scatter", {data, updates, places}, [=](auto &x) {
    return scattered_slices(x[0], axis, x[2], x[1], (int)mode);
  });
}
- (T *)scatterWithUpdatesTensor:(T *)updates
                  indicesTensor:(T *)places
                          shape:(MPSShape *)shape
                           axis:(NSInteger)axis
                           mode:(MPSGraphScatterMode)mode
                           name:(NSString *)name {
  return node(self, "scatter", {updates, places}, [=, sizes = ints(shape)](auto &x) {
    return scattered_slices(at::zeros(sizes, x[0].options()), axis, x[1], x[0], (int)mode);
  });
}
- (T *)scatterNDWithDataTensor:(T *)data
                 updatesTensor:(T *)updates
                 indicesTensor:(T *)places
               batchDimensions:(NSUInteger)batch
                          mode:(MPSGraphScatterMode)mode
                          name:(NSString *)name {
  same_types("scatterND", data, updates);
  return node(self, "scatterND", {data, updates, places}, [=](auto &x) {
    return scattered_nd(x[0], x[2], x[1], (int64_t)batch, (int)mode);
  });
}
- (T *)scatterNDWithUpdatesTensor:(T *)updates
                    indicesTensor:(T *)places
                            shape:(MPSShape *)shape
                  batchDimensions:(NSUInteger)batch
                             mode:(MPSGraphScatterMode)mode
                             name:(NSString *)name {
  return node(self, "scatterND", {updates, places}, [=, sizes = ints(shape)](auto &x) {
    return scattered_nd(at::zeros(sizes, x[0].options()), x[1], x[0], (int64_t)batch, (int)mode);
  });
}
- (T *)nonZeroIndicesOfTensor:(T *)tensor name:(NSString *)name {
  return node(self, "nonZeroIndices", {tensor}, [](auto &x) { return at::nonzero(x[0]).to(at::kInt); }, MPSDataTypeInt32);
}
- (T *)oneHotWithIndicesTensor:(T *)places
                         depth:(NSUInteger)depth
                          axis:(NSUInteger)axis
                      dataType:(MPSDataType)type
                       onValue:(double)on
                      offValue:(double)off
                          name:(NSString *)name {
  return node(self, "oneHot", {places}, [=, to = torch_type(type)](auto &x) {
    const int64_t at_axis = axis == NSUIntegerMax ? x[0].dim() : (int64_t)axis;
    Sizes along(x[0].dim() + 1, 1);
    along[at_axis] = (int64_t)depth;
    auto classes = at::arange((int64_t)depth, x[0].options().dtype(at::kLong)).reshape(along);
    auto options = x[0].options().dtype(to);
    return at::where(x[0].to(at::kLong).unsqueeze(at_axis).eq(classes), at::scalar_tensor(on, options), at::scalar_tensor(off, options));
  }, type);
}
- (T *)oneHotWithIndicesTensor:(T *)places depth:(NSUInteger)depth axis:(NSUInteger)axis name:(NSString *)name {
  return [self oneHotWithIndicesTensor:places depth:depth axis:axis dataType:MPSDataTypeFloat32 onValue:1 offValue:0 name:name];
}
@end
