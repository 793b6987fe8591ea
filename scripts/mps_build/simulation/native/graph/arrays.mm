// MPSNDArray and MPSGraphTensorData: a buffer's memory as a tensor of the CPU. The matrix kernels that work on buffers.
#include "graph.h"

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
    {MPSDataTypeUInt16, at::kUInt16},
    {MPSDataTypeUInt32, at::kUInt32},
    {MPSDataTypeUInt64, at::kUInt64},
};

// A tensor over a buffer from a byte on; it keeps the buffer.
at::Tensor over(id<MTLBuffer> given, size_t offset, const Sizes &sizes, const Sizes &strides, uint32_t type) {
  auto *buffer = (SimBuffer *)given;
  const auto dtype = torch_type(type);
  int64_t last = 1;
  for (size_t i = 0; i < sizes.size(); i++) last = sizes[i] ? last + (sizes[i] - 1) * strides[i] : INT64_MIN;
  const int64_t bytes = last > 0 ? last * (int64_t)at::elementSize(dtype) : 0;
  if (offset + (size_t)bytes > buffer->size)
    refuse_with("an array of ", bytes, " bytes from ", offset, " of a buffer of ", buffer->size);
  auto held = kept(buffer);
  return at::from_blob(buffer->memory + offset, sizes, strides, [held](void *) {}, at::TensorOptions().dtype(dtype));
}
Sizes dense(const Sizes &sizes) {
  Sizes strides(sizes.size(), 1);
  for (int64_t i = (int64_t)sizes.size() - 2; i >= 0; i--) strides[i] = strides[i + 1] * sizes[i + 1];
  return strides;
}
MPSNDArray *array_of(at::Tensor tensor) {
  auto *made = [MPSNDArray new];
  made->tensor = new at::Tensor(std::move(tensor));
  return [made autorelease];
}
} // namespace

at::ScalarType torch_type(uint32_t type) {
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

@implementation MPSNDArrayDescriptor
+ (instancetype)descriptorWithDataType:(MPSDataType)type shape:(NSArray<NSNumber *> *)shape {
  auto *made = [[MPSNDArrayDescriptor new] autorelease];
  made->type = type;
  made->sizes = new Sizes(ints(shape));
  made->order = new Sizes(made->sizes->size());
  std::iota(made->order->begin(), made->order->end(), 0);
  return made;
}
- (void)dealloc {
  delete sizes;
  delete order;
  [super dealloc];
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
  tensor = new at::Tensor(over(buffer, offset, *about->sizes, dense(*about->sizes), about->type));
  return self;
}
- (instancetype)initWithDevice:(id<MTLDevice>)device descriptor:(MPSNDArrayDescriptor *)about {
  tensor = new at::Tensor(at::empty(*about->sizes, at::TensorOptions().dtype(torch_type(about->type))));
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
  if (!is_macos_at_least(15, 0)) refuse("MPSNDArray has no arrayViewWithShape:strides: before macOS 15");
  return array_of(tensor->as_strided(ints(shape), ints(strides)));
}
- (MPSNDArray *)arrayViewWithCommandBuffer:(id<MTLCommandBuffer>)commands
                                descriptor:(MPSNDArrayDescriptor *)about
                                  aliasing:(MPSAliasingStrategy)aliasing {
  const int64_t rank = tensor->dim();
  Sizes axes(rank);
  for (int64_t i = 0; i < rank; i++) axes[rank - 1 - i] = rank - 1 - about->order->at(i);
  return array_of(tensor->permute(axes));
}
- (void)writeBytes:(const void *)bytes strideBytes:(NSInteger *)strides {
  memcpy(tensor->data_ptr(), bytes, tensor->nbytes());
}
- (NSString *)description {
  return [NSString stringWithUTF8String:c10::str(*tensor).c_str()];
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
  array = [array_of(over(buffer, 0, sizes, dense(sizes), type)) retain];
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
at::Tensor data_of(MPSGraphTensorData *data) { return *data->array->tensor; }
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
    sim::encode(commands, "MPSNDArrayIdentity", [from = *source->tensor, to = *destination->tensor] {
      to.copy_(from.reshape(to.sizes()));
    });
    return destination;
  }
  // Where a view can show it, it does; else a copy that is filled when the commands run.
  auto computed = at::detail::computeStride(source->tensor->sizes(), source->tensor->strides(), sizes);
  if (computed) return array_of(source->tensor->as_strided(sizes, *computed, source->tensor->storage_offset()));
  auto copy = at::empty(sizes, source->tensor->options());
  sim::encode(commands, "MPSNDArrayIdentity", [from = *source->tensor, copy] { copy.copy_(from.reshape(copy.sizes())); });
  return array_of(copy);
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
  auto one = *((MPSNDArray *)[sources objectAtIndex:0])->tensor, other = *((MPSNDArray *)[sources objectAtIndex:1])->tensor;
  sim::encode(commands, "MPSNDArrayMatrixMultiplication", [one, other, to = *destination->tensor] {
    to.copy_(at::matmul(one, other).expand(to.sizes()));
  });
}
@end

@interface MPSMatrixDescriptor () {
 @public
  int64_t row_count, column_count, row_bytes;
  uint32_t type;
}
@end
@implementation MPSMatrixDescriptor
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                matrices:(NSUInteger)matrices
                                rowBytes:(NSUInteger)row
                             matrixBytes:(NSUInteger)matrix
                                dataType:(MPSDataType)type {
  auto *made = [[MPSMatrixDescriptor new] autorelease];
  made->row_count = (int64_t)rows;
  made->column_count = (int64_t)columns;
  made->row_bytes = (int64_t)row;
  made->type = type;
  return made;
}
@end
@interface MPSMatrix () {
 @public
  at::Tensor *tensor;
}
@end
@implementation MPSMatrix
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset descriptor:(MPSMatrixDescriptor *)about {
  const int64_t step = about->row_bytes / (int64_t)at::elementSize(torch_type(about->type));
  tensor = new at::Tensor(over(buffer, offset, {about->row_count, about->column_count}, {step, 1}, about->type));
  return self;
}
- (void)dealloc {
  delete tensor;
  [super dealloc];
}
@end
@implementation MPSMatrixUnaryKernel
@end
@implementation MPSMatrixBinaryKernel
@end
@implementation MPSMatrixDecompositionLU
- (instancetype)initWithDevice:(id<MTLDevice>)device rows:(NSUInteger)rows columns:(NSUInteger)columns {
  return self;
}
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commands
                 sourceMatrix:(MPSMatrix *)source
                 resultMatrix:(MPSMatrix *)result
                 pivotIndices:(MPSMatrix *)pivots
                       status:(id<MTLBuffer>)status {
  auto *said = (SimBuffer *)status;
  auto from = *source->tensor, to = *result->tensor, swaps = *pivots->tensor;
  sim::encode(commands, "MPSMatrixDecompositionLU", [=, held = kept(said)] {
    auto [factors, rows, info] = at::linalg_lu_factor_ex(from);
    to.copy_(factors);
    swaps.view({-1}).copy_(rows.sub(1).view({-1})); // LAPACK counts from 1
    if (said) *(int32_t *)said->memory = info.item<int>() ? -2 : 0; // MPSMatrixDecompositionStatusSingular
  });
}
@end
@interface MPSMatrixSolveTriangular () {
 @public
  bool is_right, is_upper, is_transposed, is_unit;
  double factor;
}
@end
@implementation MPSMatrixSolveTriangular
- (instancetype)initWithDevice:(id<MTLDevice>)device
                         right:(BOOL)right
                         upper:(BOOL)upper
                     transpose:(BOOL)transpose
                          unit:(BOOL)unit
                         order:(NSUInteger)order
        numberOfRightHandSides:(NSUInteger)count
                         alpha:(double)alpha {
  is_right = right;
  is_upper = upper;
  is_transposed = transpose;
  is_unit = unit;
  factor = alpha;
  return self;
}
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commands
                 sourceMatrix:(MPSMatrix *)source
          rightHandSideMatrix:(MPSMatrix *)given
               solutionMatrix:(MPSMatrix *)solution {
  auto a = is_transposed ? source->tensor->t() : *source->tensor, b = *given->tensor, x = *solution->tensor;
  const bool upper = is_upper != is_transposed, left = !is_right, unit = is_unit;
  sim::encode(commands, "MPSMatrixSolveTriangular", [=, alpha = factor] {
    x.copy_(at::linalg_solve_triangular(a, b * alpha, upper, left, unit));
  });
}
@end
