// Random numbers from a state of seven 32-bit words that is handed on. The numbers are not Apple's.
#include "graph.h"
#include <ATen/CPUGeneratorImpl.h>
using namespace sim;

struct Draw {
  uint64_t distribution = 0;
  uint32_t type = MPSDataTypeFloat32;
  double least = 0, most = 1, mean = 0, deviation = 1;
  int64_t whole_least = 0, whole_most = 0;
  bool is_whole = false;
};
@interface MPSGraphRandomOpDescriptor () {
 @public
  Draw draw;
}
@end
@implementation MPSGraphRandomOpDescriptor
+ (instancetype)new {
  auto *made = (MPSGraphRandomOpDescriptor *)[super new];
  made->draw = Draw{};
  return made;
}
+ (instancetype)descriptorWithDistribution:(MPSGraphRandomDistribution)distribution dataType:(MPSDataType)type {
  auto *made = [[MPSGraphRandomOpDescriptor new] autorelease];
  [made setDistribution:distribution];
  [made setDataType:type];
  return made;
}
- (void)setDistribution:(MPSGraphRandomDistribution)value {
  draw.distribution = value;
}
- (void)setDataType:(MPSDataType)value {
  draw.type = value;
  draw.is_whole = at::isIntegralType(torch_type(value), true);
}
- (void)setMin:(float)value {
  draw.least = value;
}
- (void)setMax:(float)value {
  draw.most = value;
}
- (void)setMean:(float)value {
  draw.mean = value;
}
- (void)setStandardDeviation:(float)value {
  draw.deviation = value;
}
- (void)setMinInteger:(NSInteger)value {
  draw.whole_least = value;
}
- (void)setMaxInteger:(NSInteger)value {
  draw.whole_most = value;
}
@end

namespace {
at::Tensor drawn(const Draw &d, const Sizes &sizes, const at::Tensor &state) {
  uint64_t seed = 0;
  for (int64_t i = 0; i < state.numel(); i++) seed = seed * 6364136223846793005u + (uint32_t)state.data_ptr<int32_t>()[i] + 1;
  auto generator = at::detail::createCPUGenerator(seed);
  auto options = at::TensorOptions().dtype(d.is_whole ? at::kLong : at::kFloat);
  // Assumed: the greatest whole number is drawn too (PyTorch takes one away from its own bound).
  const int64_t behind = d.whole_most == INT64_MAX ? d.whole_most : d.whole_most + 1;
  if (d.is_whole) return at::randint(d.whole_least, behind, sizes, generator, options);
  if (d.distribution == MPSGraphRandomDistributionUniform) return at::rand(sizes, generator, options) * (d.most - d.least) + d.least;
  return at::randn(sizes, generator, options) * d.deviation + d.mean;
}
Tensors drawn_and_next(const Draw &d, const Sizes &sizes, const at::Tensor &state) {
  if (state.is_meta()) return {at::empty(sizes, state.options().dtype(torch_type(d.type))), state};
  auto next = state.clone();
  next.data_ptr<int32_t>()[0]++; // assumed: a counter, as PyTorch's own Philox state has one first
  auto found = drawn(d, sizes, state).to(torch_type(d.type));
  // A uniform number is less than its bound, also where a short type would round it up.
  if (!d.is_whole && d.distribution == MPSGraphRandomDistributionUniform)
    found = at::where(found.ge(d.most), at::scalar_tensor(d.least, found.options()), found);
  return {found, next};
}
} // namespace

@implementation MPSGraph (Random)
- (MPSGraphTensor *)randomPhiloxStateTensorWithSeed:(NSUInteger)seed name:(NSString *)name {
  const uint32_t words[7] = {0, 0, 0, 0, (uint32_t)seed, (uint32_t)(seed >> 32), 0}; // a counter and its key
  return [self constantWithData:[NSData dataWithBytes:words length:sizeof words] shape:@[ @7 ] dataType:MPSDataTypeInt32];
}
- (NSArray *)randomTensorWithShape:(MPSShape *)shape
                        descriptor:(MPSGraphRandomOpDescriptor *)about
                       stateTensor:(MPSGraphTensor *)state
                              name:(NSString *)name {
  return listed(nodes(self, "random", {state}, [d = about->draw, sizes = ints(shape)](const Tensors &x) {
    return drawn_and_next(d, sizes, x[0]);
  }, 2));
}
// 1.12 and 1.13: the state is made of a seed, and not handed on.
- (MPSGraphTensor *)randomTensorWithShape:(MPSShape *)shape
                               descriptor:(MPSGraphRandomOpDescriptor *)about
                                     seed:(NSUInteger)seed
                                     name:(NSString *)name {
  auto *state = [self randomPhiloxStateTensorWithSeed:seed name:nil];
  return [[self randomTensorWithShape:shape descriptor:about stateTensor:state name:name] objectAtIndex:0];
}
- (MPSGraphTensor *)randomUniformTensorWithShape:(MPSShape *)shape seed:(NSUInteger)seed name:(NSString *)name {
  auto *about = [MPSGraphRandomOpDescriptor descriptorWithDistribution:MPSGraphRandomDistributionUniform dataType:MPSDataTypeFloat32];
  return [self randomTensorWithShape:shape descriptor:about seed:seed name:name];
}
// The shape is a tensor, whose values are known when the graph runs.
- (NSArray *)randomTensorWithShapeTensor:(MPSGraphTensor *)shape
                              descriptor:(MPSGraphRandomOpDescriptor *)about
                             stateTensor:(MPSGraphTensor *)state
                                    name:(NSString *)name {
  return listed(nodes(self, "random", {shape, state}, [d = about->draw](const Tensors &x) {
    return drawn_and_next(d, values(x[0]), x[1]);
  }, 2, about->draw.type));
}
@end
