// MPSMatrix and the kernels of MetalPerformanceShaders that work on matrices.
#include "graph.h"
#include <torch/csrc/api/include/torch/version.h>
using namespace sim;

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
  // Of a batch the first is used alone. Host code up to 2.14 gives each matrix of a batch the whole batch's descriptor,
  // with which the later ones reach beyond the end (linalg_solve_triangular, linalg_lu_factor).
  const int64_t spans = span_of(*tensor);
  if (spans > room_of(buffer, offset))
    refuse_with("an MPSMatrix of ", tensor->sizes(), " ", tensor->scalar_type(), " spans ", spans, " bytes where its buffer has ",
                room_of(buffer, offset));
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
#if TORCH_VERSION_MAJOR >= 2 // 1.12 has no function for it
// Wheels of 2.8 to 2.13 solve with the factors of MPSMatrixDecompositionLU.
@interface MPSMatrixSolveLU () {
 @public
  bool is_transposed;
}
@end
@implementation MPSMatrixSolveLU
- (instancetype)initWithDevice:(id<MTLDevice>)device
                     transpose:(BOOL)transpose
                         order:(NSUInteger)order
        numberOfRightHandSides:(NSUInteger)count {
  is_transposed = transpose;
  return self;
}
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commands
                 sourceMatrix:(MPSMatrix *)source
          rightHandSideMatrix:(MPSMatrix *)given
                 pivotIndices:(MPSMatrix *)pivots
               solutionMatrix:(MPSMatrix *)solution {
  auto factors = *source->tensor, b = *given->tensor, x = *solution->tensor, swaps = *pivots->tensor;
  sim::encode(commands, "MPSMatrixSolveLU", [=, is_adjoint = is_transposed] {
    const auto rows = swaps.reshape({-1}).to(at::kInt).add(1); // LAPACK counts from 1
    x.copy_(at::linalg_lu_solve(factors, rows, b, true, is_adjoint));
  });
}
@end
#endif
