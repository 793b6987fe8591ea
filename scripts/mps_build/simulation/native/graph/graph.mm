// The graph itself: placeholders, constants, nodes, and how a graph runs.
#include "graph.h"
#include "../metal/queue.h"
// 1.12 has names there that Objective-C defines.
#pragma push_macro("YES")
#pragma push_macro("NO")
#undef YES
#undef NO
#include <ATen/MemoryOverlap.h>
#pragma pop_macro("YES")
#pragma pop_macro("NO")
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <cstring>
#include <mutex>
#include <optional>
#include <typeinfo>
#include <unordered_map>

// Of the process that has us, which may be one without Python.
extern "C" {
__attribute__((weak)) int PyGILState_Ensure(void);
__attribute__((weak)) void PyErr_Clear(void), PyGILState_Release(int);
}

namespace {
// Rules are carried out by ATen's CPU operators on the GPU's thread: without gradients, for good.
[[maybe_unused]] const bool is_set = [] {
  sim::on_thread_start = [] {
    static thread_local at::NoGradGuard no_grad;
    static thread_local at::AutoDispatchBelowADInplaceOrView plain;
  };
  return true;
}();
} // namespace

namespace sim {
struct Node {
  std::string name;
  std::vector<std::pair<Node *, int>> inputs;
  Rule rule;
  bool is_placeholder = false;
  // What the rule gives for shapes; nothing where a shape depends on values.
  std::optional<Tensors> meta;
};
} // namespace sim
using sim::Node;
namespace sim {
NSArray *shape_of(MPSGraphTensor *tensor);
} // namespace sim

@interface MPSGraphTensor () {
 @public
  Node *node;
  int index;
  uint32_t type;
  NSArray *known_shape;
}
@end
@interface MPSGraph () {
 @public
  std::vector<std::unique_ptr<Node>> *nodes;
  std::vector<id> *tensors;
}
@end

@implementation MPSGraphTensor
- (MPSDataType)dataType {
  return (MPSDataType)type;
}
- (MPSShape *)shape {
  return sim::shape_of(self);
}
- (void)dealloc {
  [known_shape release];
  [super dealloc];
}
@end

namespace sim {
namespace {
constexpr auto kOverlaps = (at::MemOverlap)1; // `YES` in 1.12, `Yes` since

MPSGraphTensor *result(MPSGraph *graph, Node *node, int index, uint32_t type, NSArray *shape) {
  auto *made = [MPSGraphTensor new];
  made->node = node;
  made->index = index;
  made->type = type;
  made->known_shape = [shape retain];
  graph->tensors->push_back(made);
  return made;
}

// A graph may be used by several threads. The lock is not held while a rule runs: its Python waits for the interpreter's own.
std::mutex shapes_lock;

Tensors without_values(Tensors found) {
  for (auto &each : found) each = at::empty_strided(each.sizes(), each.strides(), each.options().device(at::kMeta));
  return found;
}
// A shape may be computed from other shapes, so what is known of a few whole numbers before the graph runs is kept.
constexpr int64_t MOST_AXES = 16;
bool is_known_shape(const at::Tensor &x) {
  return !x.is_meta() && x.dim() <= 1 && x.numel() <= MOST_AXES && at::isIntegralType(x.scalar_type(), false);
}

// An operator without a shape function of C++ has one of Python's, whose error stays with the thread until it is cleared:
// the next call from Python would end with it.
void clear_error_of_python(const std::exception &error) {
  if (!strstr(typeid(error).name(), "python_error") || !PyGILState_Ensure) return;
  const int held = PyGILState_Ensure();
  PyErr_Clear();
  PyGILState_Release(held);
}

Tensors shapes_of(const Node &node, const Tensors &inputs) {
  const bool has_values = std::any_of(inputs.begin(), inputs.end(), [](const at::Tensor &x) { return !x.is_meta(); });
  try {
    Tensors found = node.rule(inputs);
    for (auto &each : found)
      if (!is_known_shape(each)) each = without_values({each})[0];
    return found;
  } catch (const std::exception &error) {
    clear_error_of_python(error);
    // Not every rule takes values beside shapes.
    if (has_values) return shapes_of(node, without_values(inputs));
    static const bool is_verbose = getenv("MPS_BUILD_SIMULATION_SHAPES") != nullptr;
    if (is_verbose) fprintf(stderr, "software MPSGraph: no shape of %s: %s\n", node.name.c_str(), error.what());
    return {};
  }
}

// Shapes and types of the results, or nothing: a rule that needs values cannot say.
Tensors meta_of(Node &node) {
  {
    std::lock_guard<std::mutex> held(shapes_lock);
    if (node.meta) return *node.meta;
  }
  Tensors inputs, found;
  for (auto &[from, index] : node.inputs) {
    const auto theirs = meta_of(*from);
    if ((size_t)index >= theirs.size() || !theirs[index].defined()) break;
    inputs.push_back(theirs[index]);
  }
  if (!node.is_placeholder && inputs.size() == node.inputs.size()) found = shapes_of(node, inputs);
  std::lock_guard<std::mutex> held(shapes_lock);
  if (!node.meta) node.meta = found;
  return *node.meta;
}

struct Wanted {
  Node *node;
  int index;
  uint32_t type;
  at::Tensor place;
  std::shared_ptr<void> kept;
};

// Half and BFloat16 are Float between nodes, and rounded where a result is written.
at::Tensor in_float(const at::Tensor &x) {
  return x.defined() && (x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16) ? x.to(at::kFloat) : x;
}
Tensors in_float(Tensors values) {
  for (auto &each : values) each = in_float(each);
  return values;
}

// The data that the result of the running rule is written to, where it is a result of the graph.
thread_local const at::Tensor *written_to = nullptr;

// Carries out what the results need, each node once.
class Run {
 public:
  std::unordered_map<Node *, Tensors> done;
  std::unordered_map<Node *, at::Tensor> places;

  const Tensors &of(Node *node) {
    if (auto found = done.find(node); found != done.end()) return found->second;
    if (node->is_placeholder) throw std::runtime_error("a placeholder has no feed");
    Tensors inputs;
    for (auto &[from, index] : node->inputs) inputs.push_back(of(from).at(index));
    const auto place = places.find(node);
    written_to = place == places.end() ? nullptr : &place->second;
    try {
      return done[node] = in_float(node->rule(inputs));
    } catch (const c10::Error &error) {
      throw std::runtime_error(node->name + ": " + error.what_without_backtrace());
    }
  }
};

at::Tensor in_shape_of(const Wanted &wanted, at::Tensor value) {
  if (value.scalar_type() != torch_type(wanted.type)) value = value.to(torch_type(wanted.type));
  // Assumed: a result of one element is spread over its data (fill_ relies on it).
  if (value.numel() == 1 && wanted.place.numel() != 1) value = value.reshape({}).expand(wanted.place.sizes());
  if (value.numel() != wanted.place.numel())
    throw std::runtime_error(c10::str(wanted.node->name, ": a result of ", value.sizes(), " for data of ", wanted.place.sizes()));
  return value.reshape(wanted.place.sizes());
}
void put(const at::Tensor &place, const at::Tensor &value) {
  check_written(place.data_ptr(), (size_t)span_of(place));
  const auto steps = value.strides();
  const bool is_one = std::all_of(steps.begin(), steps.end(), [](int64_t n) { return n == 0; });
  if (is_one && at::has_internal_overlap(place) == kOverlaps)
    place.fill_(value.flatten()[0].item());
  else
    place.copy_(value);
}
} // namespace

std::vector<MPSGraphTensor *> nodes(
    MPSGraph *graph, const char *name, std::vector<MPSGraphTensor *> inputs, Rule rule, int count, uint32_t type) {
  graph->nodes->push_back(std::make_unique<Node>());
  Node *made = graph->nodes->back().get();
  made->name = name;
  made->rule = std::move(rule);
  for (auto *each : inputs) {
    if (!each) refuse_with("MPSGraph ", name, ": an operand is nil");
    made->inputs.emplace_back(each->node, each->index);
  }
  const Tensors meta = type ? Tensors{} : meta_of(*made);
  std::vector<MPSGraphTensor *> out;
  for (int i = 0; i < count; i++) {
    const bool is_known = (size_t)i < meta.size();
    const uint32_t other = inputs.empty() ? (uint32_t)MPSDataTypeFloat32 : inputs[0]->type;
    const uint32_t found = type ? type : is_known ? metal_type(meta[i].scalar_type()) : other;
    out.push_back(result(graph, made, i, found, nil));
  }
  return out;
}
NSArray *shape_of(MPSGraphTensor *tensor) {
  {
    std::lock_guard<std::mutex> held(shapes_lock);
    if (tensor->known_shape) return tensor->known_shape;
  }
  const Tensors meta = meta_of(*tensor->node);
  std::lock_guard<std::mutex> held(shapes_lock);
  if (!tensor->known_shape && (size_t)tensor->index < meta.size())
    tensor->known_shape = [numbers(meta[tensor->index].sizes()) retain];
  return tensor->known_shape;
}
uint32_t kept_type(MPSGraphTensor *tensor) {
  return at::isFloatingType(torch_type(tensor->type)) ? tensor->type : 0;
}
MPSGraphTensor *node(
    MPSGraph *graph, const char *name, std::vector<MPSGraphTensor *> inputs, Single rule, uint32_t type) {
  return nodes(
      graph, name, std::move(inputs), [rule = std::move(rule)](const Tensors &x) { return Tensors{rule(x)}; }, 1, type)[0];
}
NSArray *listed(const std::vector<MPSGraphTensor *> &tensors) {
  id out = [NSMutableArray array];
  for (auto *each : tensors) [out addObject:each];
  return out;
}
Sizes size_of_data(const Sizes &said) {
  return written_to && written_to->dim() == (int64_t)said.size() ? written_to->sizes().vec() : said;
}
uint32_t type_of(MPSGraphTensor *tensor) { return tensor->type; }
bool is_made_by(MPSGraphTensor *tensor, const char *name) { return tensor->node->name == name; }
std::vector<MPSGraphTensor *> inputs_of(MPSGraph *graph, MPSGraphTensor *tensor) {
  std::vector<MPSGraphTensor *> found;
  for (auto &[node, index] : tensor->node->inputs) found.push_back(result(graph, node, index, tensor->type, nil));
  return found;
}
void same_types(const char *name, MPSGraphTensor *one, MPSGraphTensor *other) {
  if (!one || !other) refuse_with("MPSGraph ", name, ": an operand is nil");
  if (one->type != other->type)
    refuse_with("MPSGraph ", name, ": the types of its operands differ (", at::toString(torch_type(one->type)), ", ",
                at::toString(torch_type(other->type)), ")");
}
} // namespace sim

using namespace sim;

@implementation MPSGraphObject
@end
@implementation MPSGraph
- (instancetype)init {
  self->nodes = new std::vector<std::unique_ptr<Node>>;
  self->tensors = new std::vector<id>;
  return self;
}
- (void)dealloc {
  for (id each : *self->tensors) [each release];
  delete self->tensors;
  delete self->nodes;
  [super dealloc];
}
- (MPSGraphTensor *)placeholderWithShape:(MPSShape *)shape dataType:(MPSDataType)type name:(NSString *)name {
  self->nodes->push_back(std::make_unique<Node>());
  Node *made = self->nodes->back().get();
  made->name = "placeholder";
  made->is_placeholder = true;
  const Sizes sizes = ints(shape);
  const bool is_ranked = shape != nil && std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n >= 0; });
  if (is_ranked) made->meta = Tensors{at::empty(sizes, at::TensorOptions().dtype(torch_type(type)).device(at::kMeta))};
  return result(self, made, 0, type, shape);
}
- (void)encodeToCommandBuffer:(MPSCommandBuffer *)commands
                        feeds:(MPSGraphTensorDataDictionary *)feeds
             targetOperations:(NSArray *)operations
            resultsDictionary:(MPSGraphTensorDataDictionary *)results
          executionDescriptor:(MPSGraphExecutionDescriptor *)descriptor {
  std::vector<Wanted> given, wanted;
  for (MPSGraphTensor *each in feeds) {
    id data = [(id)feeds objectForKey:each];
    given.push_back({each->node, each->index, each->type, data_of(data), kept(data)});
  }
  for (MPSGraphTensor *each in results) {
    id data = [(id)results objectForKey:each];
    wanted.push_back({each->node, each->index, each->type, data_of(data), kept(data)});
    // At once, where the operator that asks for it is known. One element alone may fill what is one in memory. The
    // shape is computed last: that costs.
    if (at::has_internal_overlap(wanted.back().place) != kOverlaps) continue;
    const Sizes sizes = ints(sim::shape_of(each));
    if (std::any_of(sizes.begin(), sizes.end(), [](int64_t n) { return n != 1; }))
      refuse_with("MPSGraph ", each->node->name, ": unsupported operation: more than one element of the written-to ",
                  "tensor refers to a single memory location");
  }
  sim::encode(commands, "MPSGraph", [graph = kept(self), given, wanted] {
    Run run;
    for (auto &each : given) run.done[each.node] = {in_float(each.place)};
    for (auto &each : wanted) run.places[each.node] = each.place;
    Tensors found;
    for (auto &each : wanted) found.push_back(in_shape_of(each, run.of(each.node).at(each.index)));
    // What is refused has written nothing: every result fits its data.
    for (size_t i = 0; i < wanted.size(); i++) put(wanted[i].place, found[i]);
  });
  if (descriptor && descriptor->completed)
    sim::encode(commands, "a completion handler", [block = kept(descriptor->completed), results = kept(results)] {
      ((MPSGraphCompletionHandler)(id)block.get())((MPSGraphTensorDataDictionary *)(id)results.get(), nil);
    });
}
- (void)runAsyncWithMTLCommandQueue:(id<MTLCommandQueue>)queue
                              feeds:(MPSGraphTensorDataDictionary *)feeds
                   targetOperations:(NSArray *)operations
                  resultsDictionary:(MPSGraphTensorDataDictionary *)results
                executionDescriptor:(MPSGraphExecutionDescriptor *)descriptor {
  auto *commands = [MPSCommandBuffer commandBufferFromCommandQueue:queue];
  [self encodeToCommandBuffer:commands feeds:feeds targetOperations:operations resultsDictionary:results executionDescriptor:descriptor];
  [commands commit];
}
- (void)setOptions:(MPSGraphOptions)options {
}
@end

// Numbers that a graph holds.
@implementation MPSGraph (Constants)
- (MPSGraphTensor *)constantWithScalar:(double)scalar dataType:(MPSDataType)type {
  return [self constantWithScalar:scalar shape:[NSArray array] dataType:type];
}
- (MPSGraphTensor *)constantWithScalar:(double)scalar shape:(MPSShape *)shape dataType:(MPSDataType)type {
  return node(self, "constant", {}, [scalar, sizes = ints(shape), to = torch_type(type)](auto &) {
    return at::scalar_tensor(scalar, at::TensorOptions().dtype(at::kDouble)).to(to).expand(sizes);
  }, type);
}
- (MPSGraphTensor *)constantWithScalar:(double)scalar
                                 shape:(MPSShape *)shape
                              dataType:(MPSDataType)type
                                  name:(NSString *)name {
  return [self constantWithScalar:scalar shape:shape dataType:type];
}
- (MPSGraphTensor *)constantWithRealPart:(double)real imaginaryPart:(double)imaginary dataType:(MPSDataType)type {
  return node(self, "constant", {}, [=, to = torch_type(type)](auto &) {
    return at::scalar_tensor(c10::complex<double>(real, imaginary), at::TensorOptions().dtype(at::kComplexDouble)).to(to);
  }, type);
}
- (MPSGraphTensor *)constantWithData:(NSData *)data shape:(MPSShape *)shape dataType:(MPSDataType)type {
  auto held = at::empty(ints(shape), at::TensorOptions().dtype(torch_type(type)));
  if (held.nbytes() != data.length)
    refuse_with("MPSGraph constant: ", data.length, " bytes for a shape of ", held.sizes());
  memcpy(held.data_ptr(), data.bytes, held.nbytes());
  return node(self, "constant", {}, [held](auto &) { return held; }, type);
}
@end

// How a graph is compiled and run: only who is called when it is done matters here.
@implementation MPSGraphCompilationDescriptor
- (void)setOptimizationLevel:(MPSGraphOptimization)level {
}
@end
@implementation MPSGraphExecutionDescriptor
- (void)setCompletionHandler:(MPSGraphCompletionHandler)block {
  id copy = block ? (id)_Block_copy((const void *)block) : nil;
  if (completed) _Block_release((const void *)completed);
  completed = copy;
}
- (void)dealloc {
  if (completed) _Block_release((const void *)completed);
  [super dealloc];
}
- (void)setCompilationDescriptor:(MPSGraphCompilationDescriptor *)descriptor {
}
- (void)setEnableCommitAndContinue:(BOOL)is_enabled {
}
@end
