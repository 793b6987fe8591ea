"""Regressions in LSTM and GRU: batch first, packed sequences, partial use of the outputs, gradients."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import leaf

cases = Cases("regressions")


def _weights(d: Any, gates: int, sizes: tuple[int, int], layers: int, directions: int = 1) -> list[torch.Tensor]:
    width, hidden = sizes
    found = []
    for layer in range(layers):
        for _ in range(directions):
            inner = width if layer == 0 else hidden * directions
            found += [d.normal(gates * hidden, inner, scale=0.5), d.normal(gates * hidden, hidden, scale=0.5)]
            found += [d.normal(gates * hidden), d.normal(gates * hidden)]
    return found


def _filled(run: Any, name: str, weights: list[Any], *sizes: int, **options: Any) -> torch.nn.Module:
    module = getattr(torch.nn, name)(*sizes, **options).to(run.device, run.cast(weights[0].dtype))
    with torch.no_grad():
        for parameter, weight in zip(module.parameters(), weights):
            parameter.copy_(weight)
    return module


def _gradients(module: torch.nn.Module, *others: Any) -> Any:
    return [parameter.grad for parameter in module.parameters()], [other.grad for other in others]


# https://github.com/pytorch/pytorch/issues/80306: LSTM batch_first output transposed
@cases.case(
    "issue-80306", issue="80306", terms=4096, make=lambda d: (d.normal(2, 5 + d.k, 3), _weights(d, 4, (3, 4), 1))
)
def _batch_first(run: Any, x: Any, weights: Any) -> Any:
    lstm = _filled(run, "LSTM", weights, 3, 4, batch_first=True)
    y, (h, c) = lstm(x)
    return y, h, c, tuple(y.shape), tuple(h.shape)


def _state(d: Any, layers: int, batch: int, hidden: int) -> Any:
    return d.normal(layers, batch, hidden), d.normal(layers, batch, hidden)


# https://github.com/pytorch/pytorch/issues/87579: LSTM backward crashes with batch_first=True
@cases.case(
    "issue-87579",
    issue="87579",
    terms=65536,
    make=lambda d: (d.normal(5, 3 + d.k, 10), _state(d, 1, 5, 6), _weights(d, 4, (10, 6), 1), d.normal(5, 3 + d.k, 6)),
)
def _batch_first_backward(run: Any, x: Any, state: Any, weights: Any, grad: Any) -> Any:
    lstm = _filled(run, "LSTM", weights, 10, 6, batch_first=True)
    start, h0, c0 = leaf(x), leaf(state[0]), leaf(state[1])
    y, (h, c) = lstm(start, (h0, c0))
    (y * grad).sum().backward()
    return y, h, c, _gradients(lstm, start, h0, c0)


def _two_layers(name: str, gates: int, bidirectional: bool = False) -> Any:
    directions = 2 if bidirectional else 1

    def make(d: Any) -> Any:
        return (
            d.normal(6 + d.k, 3, 5),
            _state(d, 2 * directions, 3, 4),
            _weights(d, gates, (5, 4), 2, directions),
            d.normal(6 + d.k, 3, 4 * directions),
        )

    def act(run: Any, x: Any, state: Any, weights: Any, grad: Any) -> Any:
        module = _filled(run, name, weights, 5, 4, num_layers=2, bidirectional=bidirectional)
        start, h0, c0 = leaf(x), leaf(state[0]), leaf(state[1])
        given = (h0, c0) if name == "LSTM" else h0
        y, last = module(start, given)
        (y * grad).sum().backward()
        return y, last, _gradients(module, start, h0)

    return {"act": act, "make": make, "terms": 65536}


# https://github.com/pytorch/pytorch/issues/92615: LSTM gradients wrong (word_language_model perplexity)
cases.add("issue-92615", issue="92615", **_two_layers("LSTM", 4))
cases.add("issue-92615-bidirectional", issue="92615", **_two_layers("LSTM", 4, bidirectional=True))
# https://github.com/pytorch/pytorch/issues/94691: GRU outputs NaN
cases.add("issue-94691", issue="94691", **_two_layers("GRU", 3))


@cases.case(
    "issue-94691-cells",
    issue="94691",
    terms=65536,
    make=lambda d: (d.normal(4, 3 + d.k, 5), _weights(d, 3, (5, 4), 1), _weights(d, 4, (5, 4), 1)),
)
def _cells(run: Any, x: Any, of_gru: Any, of_lstm: Any) -> Any:
    gru, lstm = _filled(run, "GRUCell", of_gru, 5, 4), _filled(run, "LSTMCell", of_lstm, 5, 4)
    h = state = c = torch.zeros(x.shape[1], 4, device=run.device, dtype=run.cast(torch.float32))
    for step in x:
        h = gru(step, h)
        state, c = lstm(step, (state, c))
    (h + state * c).sum().backward()
    return h, state, c, _gradients(gru), _gradients(lstm)


# https://github.com/pytorch/pytorch/issues/95118: LSTM wrong on PackedSequence with batch > 1
@cases.case(
    "issue-95118", issue="95118", terms=65536, make=lambda d: (d.normal(3, 6 + d.k, 5), _weights(d, 4, (5, 4), 2))
)
def _packed_sequences(run: Any, x: Any, weights: Any) -> Any:
    lstm = _filled(run, "LSTM", weights, 5, 4, num_layers=2, batch_first=True)
    answers = []
    for lengths in ([6, 6, 6], [6, 4, 1], [5, 5, 2]):
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), batch_first=True)
        y, (h, c) = lstm(packed)
        padded, counts = torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
        answers += [padded, counts.tolist(), h, c]
    answers.append(lstm(x[:, :6])[0])
    return answers


# https://github.com/pytorch/pytorch/issues/96416: LSTM backward error when only (h_n,c_n) used
@cases.case(
    "issue-96416", issue="96416", terms=65536, make=lambda d: (d.normal(4 + d.k, 3, 5), _weights(d, 4, (5, 4), 1))
)
def _only_the_last_state_is_used(run: Any, x: Any, weights: Any) -> Any:
    answers = []
    for pick in (lambda h, c: h.sum() + c.sum(), lambda h, c: h.sum(), lambda h, c: c.sum()):
        lstm, start = _filled(run, "LSTM", weights, 5, 4), leaf(x)
        _, (h, c) = lstm(start)
        pick(h, c).backward()
        answers.append(_gradients(lstm, start))
    return answers


# https://github.com/pytorch/pytorch/issues/175189: BatchNorm2d backward wrong on channels_last / permuted input; LSTM
# input grad too
@cases.case(
    "issue-175189-lstm",
    issue="175189",
    terms=65536,
    make=lambda d: (d.normal(3, 5, 6 + d.k), _weights(d, 4, (5, 4), 1), d.normal(4, 6 + d.k, 3)),
)
def _input_gradient_of_a_permuted_sequence(run: Any, x: Any, weights: Any, grad: Any) -> Any:
    lstm, start = _filled(run, "LSTM", weights, 5, 4, batch_first=True), leaf(x)
    y, _ = lstm(start.transpose(1, 2))
    y.backward(grad.permute(2, 1, 0))
    return y, _gradients(lstm, start)


# https://github.com/pytorch/pytorch/issues/83144: CNN+LSTM training aborts in 1.12.1 (worked in 1.12.0)
@cases.case(
    "issue-83144",
    issue="83144",
    terms=65536,
    make=lambda d: ([d.normal(batch, 2, 9 + d.k) for batch in (5, 3)], d.normal(6, 2, 3), _weights(d, 4, (6, 4), 1)),
)
def _convolution_into_lstm(run: Any, batches: Any, kernel: Any, weights: Any) -> Any:
    lstm, weight = _filled(run, "LSTM", weights, 6, 4, batch_first=True), leaf(kernel)
    answers = []
    for x in batches:
        features = torch.relu(F.conv1d(x, weight)).transpose(1, 2)
        y, _ = lstm(features)
        y[:, -1].pow(2).sum().backward()
        answers.append((y, weight.grad.clone()))
    return answers, _gradients(lstm)
