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

// A new node of `count` results; a type of 0 is that of what the rule gives.
std::vector<MPSGraphTensor *> nodes(
    MPSGraph *graph, const char *name, std::vector<MPSGraphTensor *> inputs, Rule rule, int count, uint32_t type = 0);
MPSGraphTensor *node(
    MPSGraph *graph, const char *name, std::vector<MPSGraphTensor *> inputs, Single rule, uint32_t type = 0);
NSArray *listed(const std::vector<MPSGraphTensor *> &tensors);
uint32_t type_of(MPSGraphTensor *tensor);
// MPSGraph refuses operands of different types, which ATen would promote.
void same_types(const char *name, MPSGraphTensor *one, MPSGraphTensor *other);
// The memory of a feed or a result.
at::Tensor data_of(MPSGraphTensorData *data);
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
