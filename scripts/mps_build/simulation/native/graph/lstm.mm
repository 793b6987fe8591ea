// LSTM, forwards and its gradients, in one direction or both.
#include "graph.h"
using namespace sim;
using T = MPSGraphTensor;

@interface MPSGraphLSTMDescriptor () {
 @public
  bool goes_both_ways, has_cell, has_gates;
}
@end
@implementation MPSGraphLSTMDescriptor
+ (instancetype)descriptor {
  return [[self new] autorelease];
}
- (void)setBidirectional:(BOOL)is_bidirectional {
  goes_both_ways = is_bidirectional;
}
- (void)setProduceCell:(BOOL)produces {
  has_cell = produces;
}
- (void)setTraining:(BOOL)is_training {
  has_gates = is_training;
}
@end

namespace {
// What one direction works on: input weights (4H, I), recurrent weights (4H, H), first state and cell (N, H).
struct Direction {
  at::Tensor weights, recurrent, bias, state, cell;
  bool is_back;
  int64_t time(int64_t step, int64_t steps) const { return is_back ? steps - 1 - step : step; }
};
struct Operands {
  bool has_bias, goes_both_ways;
  // `x` begins with: recurrent weights, input weights, first state, first cell, then the bias if there is one.
  Direction direction(const Tensors &x, int64_t which) const {
    const int64_t hidden = x[0].size(-1), directions = goes_both_ways ? 2 : 1;
    auto rows = [&](const at::Tensor &all) { return all.reshape({-1, directions * hidden}).narrow(1, which * hidden, hidden); };
    auto gates = [&](const at::Tensor &all) { return all.narrow(0, which * 4 * hidden, 4 * hidden); };
    return {gates(x[1]), goes_both_ways ? x[0][which] : x[0], has_bias ? gates(x[4].reshape({-1})) : at::Tensor(),
            rows(x[2]), rows(x[3]), which == 1};
  }
  int64_t count() const { return has_bias ? 5 : 4; }
};

// States, cells and activated gates (input, forget, cell, output) of each time.
Tensors forward(const at::Tensor &source, const Direction &d) {
  auto whole = at::linear(source, d.weights, d.bias);
  const int64_t steps = source.size(0);
  Tensors states(steps), cells(steps), gates(steps);
  auto state = d.state, cell = d.cell;
  for (int64_t step = 0; step < steps; step++) {
    const int64_t t = d.time(step, steps);
    auto four = (whole[t] + at::matmul(state, d.recurrent.t())).chunk(4, -1);
    auto in = four[0].sigmoid(), forget = four[1].sigmoid(), fresh = four[2].tanh(), out = four[3].sigmoid();
    cell = forget * cell + in * fresh;
    state = out * cell.tanh();
    states[t] = state;
    cells[t] = cell;
    gates[t] = at::cat({in, forget, fresh, out}, -1);
  }
  return {at::stack(states), at::stack(cells), at::stack(gates)};
}

// Gradients of: source, recurrent weights, input weights, bias, first state, first cell.
Tensors backward(
    const at::Tensor &source, const Direction &d, const at::Tensor &of_states, at::Tensor of_state, at::Tensor of_cell,
    const at::Tensor &gates, const at::Tensor &cells) {
  const int64_t steps = source.size(0);
  Tensors of_gates(steps);
  auto of_recurrent = at::zeros_like(d.recurrent);
  for (int64_t step = steps - 1; step >= 0; step--) {
    const int64_t t = d.time(step, steps);
    auto four = gates[t].chunk(4, -1);
    auto in = four[0], forget = four[1], fresh = four[2], out = four[3], bent = cells[t].tanh();
    auto state = d.state, cell = d.cell;
    if (step > 0) {
      const int64_t before = d.time(step - 1, steps);
      cell = cells[before];
      state = gates[before].chunk(4, -1)[3] * cell.tanh();
    }
    of_state = of_state + of_states[t];
    of_cell = of_cell + of_state * out * (1 - bent * bent);
    of_gates[t] = at::cat({of_cell * fresh * in * (1 - in), of_cell * cell * forget * (1 - forget),
                           of_cell * in * (1 - fresh * fresh), of_state * bent * out * (1 - out)}, -1);
    of_recurrent = of_recurrent + at::matmul(of_gates[t].t(), state);
    of_state = at::matmul(of_gates[t], d.recurrent);
    of_cell = of_cell * forget;
  }
  auto all = at::stack(of_gates);
  auto of_weights = at::matmul(all.flatten(0, 1).t(), source.flatten(0, 1));
  return {at::matmul(all, d.weights), of_recurrent, of_weights, at::sum(all, at::IntArrayRef{0, 1}), of_state, of_cell};
}

// The part of one direction: each has its half of the last axis.
at::Tensor half(const at::Tensor &x, int64_t which, int64_t directions) { return x.chunk(directions, -1)[which]; }
} // namespace

@implementation MPSGraph (LSTM)
// Assumed: the gates lie as input, forget, cell, output, PyTorch's own order; it hands its weights over as they are.
- (NSArray *)LSTMWithSourceTensor:(T *)source
                  recurrentWeight:(T *)recurrent
                      inputWeight:(T *)weights
                             bias:(T *)bias
                        initState:(T *)state
                         initCell:(T *)cell
                       descriptor:(MPSGraphLSTMDescriptor *)about
                             name:(NSString *)name {
  std::vector<T *> inputs{recurrent, weights, state, cell};
  if (bias) inputs.push_back(bias);
  inputs.push_back(source);
  for (T *each : inputs) same_types("LSTM", source, each);
  const Operands all{bias != nil, about->goes_both_ways};
  const int count = about->has_gates ? 3 : about->has_cell ? 2 : 1;
  return listed(nodes(self, "LSTM", inputs, [all, count](const Tensors &x) {
    auto found = forward(x.back(), all.direction(x, 0));
    if (all.goes_both_ways) {
      auto other = forward(x.back(), all.direction(x, 1));
      for (size_t i = 0; i < found.size(); i++) found[i] = at::cat({found[i], other[i]}, -1);
    }
    found.resize((size_t)count);
    return found;
  }, count));
}
// Assumed: the gradients of state and cell are those of the last time of each direction.
- (NSArray *)LSTMGradientsWithSourceTensor:(T *)source
                           recurrentWeight:(T *)recurrent
                            sourceGradient:(T *)of_states
                                    zState:(T *)gates
                             cellOutputFwd:(T *)cells
                             stateGradient:(T *)of_state
                              cellGradient:(T *)of_cell
                               inputWeight:(T *)weights
                                      bias:(T *)bias
                                 initState:(T *)state
                                  initCell:(T *)cell
                                      mask:(T *)mask
                                  peephole:(T *)peephole
                                descriptor:(MPSGraphLSTMDescriptor *)about
                                      name:(NSString *)name {
  if (mask || peephole) refuse("MPSGraph LSTM with a mask or a peephole");
  std::vector<T *> inputs{recurrent, weights, state, cell};
  if (bias) inputs.push_back(bias);
  for (T *each : {source, of_states, of_state, of_cell, gates, cells}) inputs.push_back(each);
  for (T *each : inputs) same_types("LSTMGradients", source, each);
  const Operands all{bias != nil, about->goes_both_ways};
  return listed(nodes(self, "LSTMGradients", inputs, [all](const Tensors &x) {
    const at::Tensor *given = &x[(size_t)all.count()];
    const int64_t directions = all.goes_both_ways ? 2 : 1;
    std::vector<Tensors> found;
    for (int64_t i = 0; i < directions; i++) {
      auto d = all.direction(x, i);
      auto last = [&](const at::Tensor &one) { return half(one.reshape({-1, one.size(-1)}), i, directions); };
      found.push_back(backward(given[0], d, half(given[1], i, directions), last(given[2]), last(given[3]),
                               half(given[4], i, directions), half(given[5], i, directions)));
    }
    auto out = found[0];
    if (all.goes_both_ways) {
      auto &other = found[1];
      out = {out[0] + other[0], at::stack({out[1], other[1]}), at::cat({out[2], other[2]}), at::cat({out[3], other[3]}),
             at::cat({out[4], other[4]}, -1), at::cat({out[5], other[5]}, -1)};
    }
    out[3] = out[3].reshape({1, 1, -1});
    if (!all.has_bias) out.erase(out.begin() + 3);
    return out;
  }, all.has_bias ? 6 : 5));
}
@end
