// Numbers that a graph holds.
#include "graph.h"
using namespace sim;

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
