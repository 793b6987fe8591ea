// MPSGraph over ATen: a node is a rule from tensors to tensors. On `meta` tensors it gives shapes, on the CPU's values.
#pragma once
#include <ATen/ATen.h>
#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <functional>
#include <string>
#include <vector>
#include "../metal/metal.h"

namespace sim {
using Tensors = std::vector<at::Tensor>;
using Rule = std::function<Tensors(const Tensors &)>;
using Single = std::function<at::Tensor(const Tensors &)>;
using Sizes = std::vector<int64_t>;

at::ScalarType torch_type(uint32_t type);
uint32_t metal_type(at::ScalarType type);
Sizes ints(NSArray *numbers);
NSArray *numbers(at::IntArrayRef values);
// The values of a small tensor of integers, such as a shape that is known when the graph runs.
Sizes values(const at::Tensor &tensor);
int64_t wrapped(int64_t axis, int64_t rank);
// A matrix without what lies further below or above its diagonal; a negative number keeps all.
at::Tensor band_part(const at::Tensor &x, int64_t lower, int64_t upper);

// A new node of `count` results; a type of 0 is that of what the rule gives. To ask a rule for types and shapes costs:
// some of ATen's operators do so in Python. Shapes are computed when somebody needs one, types at once where none is given.
std::vector<MPSGraphTensor *> nodes(
    MPSGraph *graph, const char *name, std::vector<MPSGraphTensor *> inputs, Rule rule, int count, uint32_t type = 0);
MPSGraphTensor *node(
    MPSGraph *graph, const char *name, std::vector<MPSGraphTensor *> inputs, Single rule, uint32_t type = 0);
// The size of what a rule's result is written to, where it is a result of the graph; else what the node was given.
Sizes size_of_data(const Sizes &said);
NSArray *listed(const std::vector<MPSGraphTensor *> &tensors);
uint32_t type_of(MPSGraphTensor *tensor);
// The type of an operand where a rule keeps it, whatever it computes: of real floats. Else 0: the rule says.
uint32_t kept_type(MPSGraphTensor *tensor);
bool is_made_by(MPSGraphTensor *tensor, const char *name);
std::vector<MPSGraphTensor *> inputs_of(MPSGraph *graph, MPSGraphTensor *tensor);
// MPSGraph refuses operands of different types, which ATen would promote.
void same_types(const char *name, MPSGraphTensor *one, MPSGraphTensor *other);
// The memory of a feed or a result.
at::Tensor data_of(MPSGraphTensorData *data);
// A tensor over a buffer from a byte on; it keeps the buffer. It may be said to be longer than the buffer, as PyTorch
// says of the whole storage behind an offset: what is used of it is checked.
at::Tensor over(id<MTLBuffer> buffer, size_t offset, const Sizes &sizes, const Sizes &strides, uint32_t type);
// How many bytes there are from a byte of a buffer to its end, and how many a tensor spans.
int64_t room_of(id<MTLBuffer> buffer, size_t offset);
int64_t span_of(const at::Tensor &tensor);
} // namespace sim

@interface MPSNDArray () {
 @public
  at::Tensor *tensor;
  int64_t room; // bytes from where it begins to its buffer's end
}
@end
@interface MPSNDArrayDescriptor () {
 @public
  uint32_t type;
  sim::Sizes *sizes, *order;
}
@end
@interface MPSGraphExecutionDescriptor () {
 @public
  id completed; // the block of its completion handler
}
@end
