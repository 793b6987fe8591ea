// MPSNDArray and MPSGraphTensorData: a buffer's memory as a tensor of the CPU.
#include "graph.h"
#include <map>
#include <torch/csrc/api/include/torch/version.h>

namespace sim {
namespace {
const std::pair<uint32_t, at::ScalarType> kTypes[] = {
    {MPSDataTypeFloat32, at::kFloat},
    {MPSDataTypeFloat16, at::kHalf},
    {MPSDataTypeBFloat16, at::kBFloat16},
    {MPSDataTypeInt64, at::kLong},
    {MPSDataTypeInt32, at::kInt},
    {MPSDataTypeInt16, at::kShort},
    {MPSDataTypeInt8, at::kChar},
    {MPSDataTypeUInt8, at::kByte},
    {MPSDataTypeBool, at::kBool},
    {MPSDataTypeComplexFloat32, at::kComplexFloat},
    {MPSDataTypeComplexFloat16, at::kComplexHalf},
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
    {MPSDataTypeUInt16, at::kUInt16},
    {MPSDataTypeUInt32, at::kUInt32},
    {MPSDataTypeUInt64, at::kUInt64},
#else // that torch has no such types: as signed numbers, right in the lower half of the range
    {MPSDataTypeUInt16, at::kShort},
    {MPSDataTypeUInt32, at::kInt},
    {MPSDataTypeUInt64, at::kLong},
#endif
};

} // namespace

int64_t span_of(const at::Tensor &tensor) {
  if (tensor.numel() == 0) return 0;
  int64_t last = 1;
  for (int64_t i = 0; i < tensor.dim(); i++) last += (tensor.size(i) - 1) * tensor.stride(i);
  return last * (int64_t)tensor.element_size();
}
at::Tensor over(id<MTLBuffer> given, size_t offset, const Sizes &sizes, const Sizes &strides, uint32_t type) {
  auto *buffer = (SimBuffer *)given;
  if (!buffer) refuse("MPSGraph is given no buffer: of an empty tensor, as a rule");
  auto held = kept(buffer);
  auto options = at::TensorOptions().dtype(torch_type(type));
  const c10::InferenceMode is_not_inference(false); // the GPU's thread writes to it, in no mode of the caller's
  return at::from_blob(buffer->memory + offset, sizes, strides, [held](void *) {}, options);
}
int64_t room_of(id<MTLBuffer> given, size_t offset) { return (int64_t)((SimBuffer *)given)->size - (int64_t)offset; }

namespace {
// Assumed: Metal looks at what is used of an array, not at what was declared.
const at::Tensor &checked(MPSNDArray *array) {
  auto &tensor = *array->tensor;
  if (span_of(tensor) > array->room)
    refuse_with("an MPSNDArray of ", tensor.sizes(), " ", tensor.scalar_type(), " spans ", span_of(tensor),
                " bytes where its buffer has ", array->room);
  return tensor;
}
// How a descriptor that was transposed orders the axes: its dimensions count from the innermost.
Sizes axes_of(const MPSNDArrayDescriptor *about) {
  const auto rank = (int64_t)about->order->size();
  Sizes axes(rank);
  for (int64_t i = 0; i < rank; i++) axes[rank - 1 - i] = rank - 1 - about->order->at(i);
  return axes;
}
Sizes dense(const Sizes &sizes) {
  Sizes strides(sizes.size(), 1);
  for (int64_t i = (int64_t)sizes.size() - 2; i >= 0; i--) strides[i] = strides[i + 1] * sizes[i + 1];
  return strides;
}
MPSNDArray *array_of(at::Tensor tensor, int64_t room) {
  auto *made = [MPSNDArray new];
  made->room = room;
  made->tensor = new at::Tensor(std::move(tensor));
  return [made autorelease];
}
} // namespace

at::ScalarType torch_type(uint32_t type) {
  const bool is_of_14 = type == MPSDataTypeBFloat16 || type == MPSDataTypeComplexFloat32 || type == MPSDataTypeComplexFloat16;
  if (is_of_14 && !is_macos_at_least(14, 0)) refuse("MPSGraph has no bfloat16 and no complex numbers before macOS 14");
  for (auto &[metal, torch] : kTypes)
    if (metal == type) return torch;
  refuse_with("MPSGraph: there is no data type ", type);
}
uint32_t metal_type(at::ScalarType type) {
  for (auto &[metal, torch] : kTypes)
    if (torch == type) return metal;
  refuse_with("MPSGraph has no data type for ", at::toString(type));
}
Sizes ints(NSArray *given) {
  Sizes out;
  for (NSNumber *each in given) out.push_back([each longLongValue]);
  return out;
}
NSArray *numbers(at::IntArrayRef given) {
  id out = [NSMutableArray array];
  for (auto each : given) [out addObject:[NSNumber numberWithLongLong:each]];
  return out;
}
Sizes values(const at::Tensor &tensor) {
  auto whole = tensor.to(at::kLong).contiguous();
  return Sizes(whole.data_ptr<int64_t>(), whole.data_ptr<int64_t>() + whole.numel());
}
int64_t wrapped(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }
} // namespace sim

using namespace sim;

// MPSDimensionSlice, as Metal passes it.
struct SimSlice {
  NSUInteger begin, length;
};
@interface MPSNDArrayDescriptor () {
 @public
  std::map<int64_t, std::pair<int64_t, int64_t>> *slices; // by dimension, from the innermost: begin and length
}
@end
@implementation MPSNDArrayDescriptor
+ (instancetype)descriptorWithDataType:(MPSDataType)type shape:(NSArray<NSNumber *> *)shape {
  auto *made = [[MPSNDArrayDescriptor new] autorelease];
  made->type = type;
  made->sizes = new Sizes(ints(shape));
  made->order = new Sizes(made->sizes->size());
  std::iota(made->order->begin(), made->order->end(), 0);
  made->slices = new std::map<int64_t, std::pair<int64_t, int64_t>>;
  return made;
}
- (void)dealloc {
  delete sizes;
  delete order;
  delete slices;
  [super dealloc];
}
// Up to 2.7 views are made so.
- (void)sliceDimension:(NSUInteger)dimension withSubrange:(SimSlice)range {
  (*slices)[(int64_t)dimension] = {(int64_t)range.begin, (int64_t)range.length};
}
- (void)setPreferPackedRows:(BOOL)is_packed {
}
// Dimensions count from the innermost.
- (void)transposeDimension:(NSUInteger)one withDimension:(NSUInteger)other {
  std::swap(order->at(one), order->at(other));
}
@end

@implementation MPSNDArray
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset descriptor:(MPSNDArrayDescriptor *)about {
  const c10::InferenceMode is_not_inference(false); // of the view too
  // Of a transposed descriptor: the same bytes, seen so (the weight of a linear layer of 2.8 and newer).
  tensor = new at::Tensor(over(buffer, offset, *about->sizes, dense(*about->sizes), about->type).permute(axes_of(about)));
  room = room_of(buffer, offset);
  return self;
}
- (instancetype)initWithDevice:(id<MTLDevice>)device descriptor:(MPSNDArrayDescriptor *)about {
  const c10::InferenceMode is_not_inference(false);
  tensor = new at::Tensor(at::empty(*about->sizes, at::TensorOptions().dtype(torch_type(about->type))));
  room = (int64_t)tensor->nbytes();
  return self;
}
- (void)dealloc {
  delete tensor;
  [super dealloc];
}
- (NSUInteger)numberOfDimensions {
  return (NSUInteger)tensor->dim();
}
- (MPSDataType)dataType {
  return (MPSDataType)metal_type(tensor->scalar_type());
}
- (MPSNDArrayDescriptor *)descriptor {
  return [MPSNDArrayDescriptor descriptorWithDataType:[self dataType] shape:numbers(tensor->sizes())];
}
- (MPSNDArray *)arrayViewWithShape:(MPSShape *)shape strides:(MPSShape *)strides {
  return array_of(tensor->as_strided(ints(shape), ints(strides)), room);
}
- (MPSNDArray *)arrayViewWithCommandBuffer:(id<MTLCommandBuffer>)commands
                                descriptor:(MPSNDArrayDescriptor *)about
                                  aliasing:(MPSAliasingStrategy)aliasing {
  auto view = *tensor;
  for (auto &[dimension, part] : *about->slices) view = view.narrow(view.dim() - 1 - dimension, part.first, part.second);
  const int64_t skipped = (view.storage_offset() - tensor->storage_offset()) * (int64_t)view.element_size();
  return array_of(view.permute(axes_of(about)), room - skipped);
}
- (void)writeBytes:(const void *)bytes strideBytes:(NSInteger *)strides {
  memcpy(checked(self).data_ptr(), bytes, tensor->nbytes());
}
- (NSString *)description {
  return [NSString stringWithUTF8String:c10::str(checked(self)).c_str()];
}
- (void)printNDArray {
  fprintf(stderr, "%s\n", [[self description] UTF8String]);
}
@end

@interface MPSGraphTensorData () {
 @public
  MPSNDArray *array;
}
@end
@implementation MPSGraphTensorData
- (instancetype)initWithMTLBuffer:(id<MTLBuffer>)buffer shape:(MPSShape *)shape dataType:(MPSDataType)type {
  const Sizes sizes = ints(shape);
  array = [array_of(over(buffer, 0, sizes, dense(sizes), type), room_of(buffer, 0)) retain];
  return self;
}
- (instancetype)initWithMPSNDArray:(MPSNDArray *)given {
  array = [given retain];
  return self;
}
- (MPSNDArray *)mpsndarray {
  return array;
}
- (MPSShape *)shape {
  return numbers(array->tensor->sizes());
}
- (MPSDataType)dataType {
  return [array dataType];
}
- (void)dealloc {
  [array release];
  [super dealloc];
}
@end
namespace sim {
at::Tensor data_of(MPSGraphTensorData *data) { return checked(data->array); }
} // namespace sim

@implementation MPSKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device {
  return self;
}
@end
@implementation MPSNDArrayIdentity
- (instancetype)initWithDevice:(id<MTLDevice>)device {
  return self;
}
- (MPSNDArray *)reshapeWithCommandBuffer:(id<MTLCommandBuffer>)commands
                             sourceArray:(MPSNDArray *)source
                                   shape:(MPSShape *)shape
                        destinationArray:(MPSNDArray *)destination {
  auto sizes = ints(shape);
  if (destination) {
    sim::encode(commands, "MPSNDArrayIdentity", [from = checked(source), to = checked(destination)] {
      to.copy_(from.reshape(to.sizes()));
    });
    return destination;
  }
  // Where a view can show it, it does; else a copy that is filled when the commands run.
  auto computed = at::detail::computeStride(source->tensor->sizes(), source->tensor->strides(), sizes);
  if (computed)
    return array_of(source->tensor->as_strided(sizes, *computed, source->tensor->storage_offset()), source->room);
  const c10::InferenceMode is_not_inference(false);
  auto copy = at::empty(sizes, source->tensor->options());
  sim::encode(commands, "MPSNDArrayIdentity", [from = checked(source), copy] { copy.copy_(from.reshape(copy.sizes())); });
  return array_of(copy, (int64_t)copy.nbytes());
}
@end
@implementation MPSNDArrayMultiaryBase
@end
@implementation MPSNDArrayMultiaryKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device sourceCount:(NSUInteger)count {
  return self;
}
@end
@implementation MPSNDArrayUnaryKernel
@end
@implementation MPSNDArrayMatrixMultiplication
- (void)encodeToCommandEncoder:(id<MTLComputeCommandEncoder>)encoder
                 commandBuffer:(id<MTLCommandBuffer>)commands
                  sourceArrays:(NSArray<MPSNDArray *> *)sources
              destinationArray:(MPSNDArray *)destination {
  auto one = checked([sources objectAtIndex:0]), other = checked([sources objectAtIndex:1]);
  const auto more = [sources count] > 2 ? checked([sources objectAtIndex:2]) : at::Tensor(); // added: a layer's bias
  sim::encode(commands, "MPSNDArrayMatrixMultiplication", [one, other, more, to = checked(destination)] {
    const auto product = at::matmul(one, other);
    to.copy_((more.defined() ? product + more : product).expand(to.sizes()));
  });
}
@end
