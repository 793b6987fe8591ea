// Element by element: functions of one, two and three tensors.
#include "graph.h"
using namespace sim;
using T = MPSGraphTensor;

// ONE and TWO keep a type of real floats; ONE_IS and TWO_ARE ask, and answer Bool.
#define ONE_OF_TYPE(selector, value, type)                                                     \
  -(T *)selector##WithTensor : (T *)tensor name : (NSString *)name {                           \
    return node(self, #selector, {tensor}, [](auto &x) -> at::Tensor { return value; }, type); \
  }
#define ONE(selector, value) ONE_OF_TYPE(selector, value, kept_type(tensor))
#define ONE_IS(selector, value) ONE_OF_TYPE(selector, value, MPSDataTypeBool)
#define ONE_OF(selector, value)                                                            \
  -(T *)selector##OfTensor : (T *)tensor name : (NSString *)name {                         \
    return node(self, #selector, {tensor}, [](auto &x) -> at::Tensor { return value; });   \
  }
#define TWO_OF_TYPE(selector, value, type)                                                         \
  -(T *)selector##WithPrimaryTensor : (T *)one secondaryTensor : (T *)other name : (NSString *)name { \
    same_types(#selector, one, other);                                                             \
    return node(self, #selector, {one, other}, [](auto &x) -> at::Tensor { return value; }, type); \
  }
#define TWO(selector, value) TWO_OF_TYPE(selector, value, kept_type(one))
#define TWO_ARE(selector, value) TWO_OF_TYPE(selector, value, MPSDataTypeBool)

namespace {
// Integers are divided towards zero.
at::Tensor divided(const at::Tensor &a, const at::Tensor &b) {
  const bool is_whole = at::isIntegralType(a.scalar_type(), true);
  return is_whole ? at::div(a, b, "trunc") : at::div(a, b);
}
// ATen has none of Booleans.
at::Tensor powers(const at::Tensor &a, const at::Tensor &b) {
  if (a.scalar_type() != at::kBool) return at::pow(a, b);
  return at::pow(a.to(at::kByte), b.to(at::kByte)).to(at::kBool);
}
// A product with the upper triangle of one value, as `multinomial` sums up its weights: of 70,000 weights the triangle
// would be 20 GB. The numbers are the same.
bool is_triangle_of_one_value(const Tensors &band) {
  const auto strides = band[1].strides();
  return std::all_of(strides.begin(), strides.end(), [](int64_t each) { return each == 0; }) && band[1].size(-1) == band[1].size(-2) &&
      values(band[2]).at(0) == 0 && values(band[3]).at(0) < 0;
}
at::Tensor product(const at::Tensor &a, const at::Tensor &b) {
  const auto type = at::promote_types(a.scalar_type(), b.scalar_type());
  return at::matmul(a.to(type), b.to(type));
}
at::Tensor times_band(const Tensors &x) {
  if (!x[0].is_meta() && is_triangle_of_one_value(x)) return at::cumsum(x[0], -1, x[0].scalar_type()) * x[1].flatten()[0];
  return product(x[0], x[0].is_meta() ? x[1] : band_part(x[1], values(x[2]).at(0), values(x[3]).at(0)));
}
} // namespace

@implementation MPSGraph (Elements)
ONE(identity, x[0])
ONE(absolute, at::abs(x[0]))
ONE(absoluteSquare, at::real(at::mul(x[0], at::conj_physical(x[0]))))
ONE(acos, at::acos(x[0]))
ONE(acosh, at::acosh(x[0]))
ONE(asin, at::asin(x[0]))
ONE(asinh, at::asinh(x[0]))
ONE(atan, at::atan(x[0]))
ONE(atanh, at::atanh(x[0]))
ONE(ceil, at::ceil(x[0]))
ONE(conjugate, at::conj_physical(x[0]))
ONE(cos, at::cos(x[0]))
ONE(cosh, at::cosh(x[0]))
ONE(erf, at::erf(x[0]))
ONE(exponent, at::exp(x[0]))
ONE(exponentBase2, at::exp2(x[0]))
ONE(floor, at::floor(x[0]))
ONE_IS(isFinite, at::isfinite(x[0]))
ONE_IS(isInfinite, at::isinf(x[0]))
ONE_IS(isNaN, at::isnan(x[0]))
ONE(logarithm, at::log(x[0]))
ONE(logarithmBase2, at::log2(x[0]))
ONE(logarithmBase10, at::log10(x[0]))
ONE(negative, at::neg(x[0]))
ONE_IS(not, at::logical_not(x[0]))
ONE(reLU, at::relu(x[0]))
ONE(reciprocal, at::reciprocal(x[0]))
ONE(reciprocalSquareRoot, at::rsqrt(x[0]))
ONE(reverseSquareRoot, at::rsqrt(x[0]))
ONE(rint, at::round(x[0]))
ONE(round, at::where(x[0].sub(x[0].trunc()).abs() == 0.5, x[0].trunc() + x[0].sgn(), at::round(x[0])).to(x[0].scalar_type()))
ONE(sigmoid, at::sigmoid(x[0]))
ONE(sign, at::sgn(x[0]))
ONE_IS(signbit, at::signbit(x[0]))
ONE(sin, at::sin(x[0]))
ONE(sinh, at::sinh(x[0]))
ONE(square, at::mul(x[0], x[0]))
ONE(squareRoot, at::sqrt(x[0]))
ONE(tan, at::tan(x[0]))
ONE(tanh, at::tanh(x[0]))
ONE(truncate, at::trunc(x[0]))
ONE(bitwiseNOT, at::bitwise_not(x[0]))
ONE_OF(realPart, at::real(x[0]).contiguous())
ONE_OF(imaginaryPart, at::imag(x[0]).contiguous())
ONE_OF(inverse, at::inverse(x[0]))

TWO(addition, at::add(x[0], x[1]))
TWO(subtraction, x[0].scalar_type() == at::kBool ? at::logical_xor(x[0], x[1]) : at::sub(x[0], x[1]))
TWO(multiplication, at::mul(x[0], x[1]))
TWO(division, divided(x[0], x[1]))
TWO(divisionNoNaN, at::where(x[1] == 0, at::zeros_like(x[1]), divided(x[0], x[1].masked_fill(x[1] == 0, 1))))
TWO(power, powers(x[0], x[1]))
TWO(atan2, at::atan2(x[0], x[1]))
TWO(modulo, at::fmod(x[0], x[1]))
TWO(floorModulo, at::remainder(x[0], x[1]))
TWO_ARE(equal, at::eq(x[0], x[1]))
TWO_ARE(notEqual, at::ne(x[0], x[1]))
TWO_ARE(greaterThan, at::gt(x[0], x[1]))
TWO_ARE(greaterThanOrEqualTo, at::ge(x[0], x[1]))
TWO_ARE(lessThan, at::lt(x[0], x[1]))
TWO_ARE(lessThanOrEqualTo, at::le(x[0], x[1]))
TWO_ARE(logicalAND, at::logical_and(x[0], x[1]))
TWO_ARE(logicalOR, at::logical_or(x[0], x[1]))
TWO_ARE(logicalXOR, at::logical_xor(x[0], x[1]))
TWO(bitwiseAND, at::bitwise_and(x[0], x[1]))
TWO(bitwiseOR, at::bitwise_or(x[0], x[1]))
TWO(bitwiseXOR, at::bitwise_xor(x[0], x[1]))
TWO(maximum, at::isFloatingType(x[0].scalar_type()) ? at::fmax(x[0], x[1]) : at::maximum(x[0], x[1]))
TWO(minimum, at::isFloatingType(x[0].scalar_type()) ? at::fmin(x[0], x[1]) : at::minimum(x[0], x[1]))
TWO(maximumWithNaNPropagation, at::maximum(x[0], x[1]))
TWO(minimumWithNaNPropagation, at::minimum(x[0], x[1]))

- (T *)matrixMultiplicationWithPrimaryTensor:(T *)one secondaryTensor:(T *)other name:(NSString *)name {
  // Real floats may be of different widths: attention of 2.15 multiplies a softmax in Float with values in Half.
  if (!one || !other || !kept_type(one) || !kept_type(other)) same_types("matrixMultiplication", one, other);
  const uint32_t type = type_of(one) == type_of(other) ? kept_type(one) : (uint32_t)MPSDataTypeFloat32;
  if (is_made_by(other, "bandPart") && inputs_of(self, other).size() == 3) {
    auto inputs = inputs_of(self, other);
    inputs.insert(inputs.begin(), one);
    return node(self, "matrixMultiplication", inputs, times_band);
  }
  return node(self, "matrixMultiplication", {one, other}, [](auto &x) { return product(x[0], x[1]); }, type);
}
- (T *)castTensor:(T *)tensor toType:(MPSDataType)type name:(NSString *)name {
  return node(self, "cast", {tensor}, [to = torch_type(type)](auto &x) { return x[0].to(to); }, type);
}
- (T *)complexTensorWithRealTensor:(T *)real imaginaryTensor:(T *)imaginary name:(NSString *)name {
  return node(self, "complex", {real, imaginary}, [](auto &x) { return at::complex(x[0], x[1]); });
}
- (T *)reLUGradientWithIncomingGradient:(T *)gradient sourceTensor:(T *)source name:(NSString *)name {
  return node(self, "reLUGradient", {gradient, source}, [](auto &x) { return x[0] * x[1].gt(0).to(x[0].scalar_type()); });
}
- (T *)sigmoidGradientWithIncomingGradient:(T *)gradient sourceTensor:(T *)source name:(NSString *)name {
  return node(self, "sigmoidGradient", {gradient, source}, [](auto &x) {
    auto s = at::sigmoid(x[1]);
    return x[0] * s * (1 - s);
  });
}
- (T *)leakyReLUWithTensor:(T *)tensor alpha:(double)alpha name:(NSString *)name {
  return node(self, "leakyReLU", {tensor}, [alpha](auto &x) { return at::leaky_relu(x[0], alpha); });
}
- (T *)leakyReLUWithTensor:(T *)tensor alphaTensor:(T *)alpha name:(NSString *)name {
  return node(self, "leakyReLU", {tensor, alpha}, [](auto &x) { return at::where(x[0].gt(0), x[0], x[0] * x[1]); });
}
- (T *)selectWithPredicateTensor:(T *)predicate
             truePredicateTensor:(T *)one
            falsePredicateTensor:(T *)other
                            name:(NSString *)name {
  same_types("select", one, other);
  return node(self, "select", {predicate, one, other}, [](auto &x) { return at::where(x[0].to(at::kBool), x[1], x[2]); },
              type_of(one));
}
- (T *)clampWithTensor:(T *)tensor minValueTensor:(T *)least maxValueTensor:(T *)most name:(NSString *)name {
  same_types("clamp", tensor, least);
  same_types("clamp", tensor, most);
  return node(self, "clamp", {tensor, least, most}, [](auto &x) { return at::minimum(at::maximum(x[0], x[1]), x[2]); },
              type_of(tensor));
}
- (T *)dropoutTensor:(T *)tensor rate:(double)rate name:(NSString *)name {
  return node(self, "dropout", {tensor}, [rate](auto &x) { return at::dropout(x[0], rate, true); });
}
@end
