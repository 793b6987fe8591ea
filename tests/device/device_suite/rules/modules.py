"""Rule 6: every class of torch.nn that keeps something, in two sizes: parameters, buffers, or modules that do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import torch
from torch import nn

Operands = Callable[[Any, int], Any]


@dataclass(frozen=True)
class Kind:
    """A class of modules: `build` makes one of size n, `draw` its operands from a source of numbers.

    `steps`: how often it is applied to what it answered: a sequence's length, its layers.
    """

    build: Callable[[int], nn.Module]
    draw: Operands
    steps: int = 1


def _normal(*sides: Any) -> Operands:
    """Return operands of one tensor; a side may be a number, or "n"."""
    return lambda d, n: (d.normal(*(n if side == "n" else side for side in sides)),)


def _places(*sides: int) -> Operands:
    return lambda d, n: (d.integers(0, n, *sides),)


def _scores(d: Any, n: int) -> Any:
    return d.normal(5, n), d.integers(0, n, 5)


def _chances(d: Any, n: int) -> Any:
    return d.uniform(0.1, 0.9, 5, n), d.bools(5, n).float()


def _weights(n: int) -> torch.Tensor:
    return torch.linspace(0.5, 2, n)


def _planes(count: int) -> tuple[int, ...]:
    return (7, 6, 5)[:count]


MODULES: dict[str, Kind] = {
    "Linear": Kind(lambda n: nn.Linear(n, n + 1), _normal(3, "n")),
    "Bilinear": Kind(lambda n: nn.Bilinear(n, 3, 4), lambda d, n: (d.normal(5, n), d.normal(5, 3))),
    "PReLU": Kind(lambda n: nn.PReLU(n), _normal(3, "n", 4)),
    "Embedding": Kind(lambda n: nn.Embedding(n, 3, padding_idx=1), _places(2, 5)),
    "EmbeddingBag": Kind(lambda n: nn.EmbeddingBag(n, 3), _places(2, 5)),
    "LayerNorm": Kind(lambda n: nn.LayerNorm(n), _normal(3, 4, "n")),
    "RMSNorm": Kind(lambda n: nn.RMSNorm(n), _normal(3, 4, "n")),
    "GroupNorm": Kind(lambda n: nn.GroupNorm(2, n), _normal(3, "n", 5)),
    "LSTM": Kind(lambda n: nn.LSTM(n, 3, 2), _normal(4, 2, "n"), 4 + 2),
    "GRU": Kind(lambda n: nn.GRU(n, 3, bidirectional=True), _normal(4, 2, "n"), 4),
    "RNN": Kind(lambda n: nn.RNN(n, 3, batch_first=True), _normal(4, 2, "n"), 2),
    "LSTMCell": Kind(lambda n: nn.LSTMCell(n, 3), _normal(4, "n")),
    "GRUCell": Kind(lambda n: nn.GRUCell(n, 3), _normal(4, "n")),
    "RNNCell": Kind(lambda n: nn.RNNCell(n, 3), _normal(4, "n")),
    "MultiheadAttention": Kind(
        lambda n: nn.MultiheadAttention(n, 2, batch_first=True), lambda d, n: [d.normal(2, 5, n) for _ in range(3)]
    ),
    "TransformerEncoderLayer": Kind(
        lambda n: nn.TransformerEncoderLayer(n, 2, 8, 0.0, batch_first=True), _normal(2, 5, "n")
    ),
    "TransformerDecoderLayer": Kind(
        lambda n: nn.TransformerDecoderLayer(n, 2, 8, 0.0, batch_first=True),
        lambda d, n: (d.normal(2, 4, n), d.normal(2, 5, n)),
    ),
    "TransformerEncoder": Kind(
        lambda n: nn.TransformerEncoder(nn.TransformerEncoderLayer(n, 2, 8, 0.0, batch_first=True), 2),
        _normal(2, 5, "n"),
        2,
    ),
    "TransformerDecoder": Kind(
        lambda n: nn.TransformerDecoder(nn.TransformerDecoderLayer(n, 2, 8, 0.0, batch_first=True), 2),
        lambda d, n: (d.normal(2, 4, n), d.normal(2, 5, n)),
        2,
    ),
    "AdaptiveLogSoftmaxWithLoss": Kind(
        lambda n: nn.AdaptiveLogSoftmaxWithLoss(n, 9, [3, 6]), lambda d, n: (d.normal(9, n), torch.arange(9))
    ),
    "CrossEntropyLoss": Kind(lambda n: nn.CrossEntropyLoss(_weights(n)), _scores),
    "LinearCrossEntropyLoss": Kind(
        lambda n: nn.LinearCrossEntropyLoss(n, 4), lambda d, n: (d.normal(5, n), d.integers(0, 4, 5))
    ),
    "NLLLoss": Kind(lambda n: nn.NLLLoss(_weights(n)), _scores),
    "MultiMarginLoss": Kind(lambda n: nn.MultiMarginLoss(weight=_weights(n)), _scores),
    "BCELoss": Kind(lambda n: nn.BCELoss(_weights(n)), _chances),
    "BCEWithLogitsLoss": Kind(lambda n: nn.BCEWithLogitsLoss(_weights(n), pos_weight=_weights(n)), _chances),
    "MultiLabelSoftMarginLoss": Kind(lambda n: nn.MultiLabelSoftMarginLoss(_weights(n)), _chances),
    "Sequential": Kind(
        lambda n: nn.Sequential(nn.Linear(n, 5), nn.ReLU(inplace=True), nn.Linear(5, n)), _normal(3, "n")
    ),
}
for _dims in (1, 2, 3):
    _sides = _planes(_dims)
    for _name, _arguments in (("Conv", (3, 3)), ("ConvTranspose", (3, 3, 2))):
        MODULES[f"{_name}{_dims}d"] = Kind(
            lambda n, name=f"{_name}{_dims}d", rest=_arguments: getattr(nn, name)(n, *rest), _normal(2, "n", *_sides)
        )
        MODULES[f"Lazy{_name}{_dims}d"] = Kind(
            lambda n, name=f"Lazy{_name}{_dims}d", rest=_arguments: getattr(nn, name)(*rest), _normal(2, "n", *_sides)
        )
    for _name, _options in (("BatchNorm", {}), ("InstanceNorm", {"affine": True, "track_running_stats": True})):
        MODULES[f"{_name}{_dims}d"] = Kind(
            lambda n, name=f"{_name}{_dims}d", given=_options: getattr(nn, name)(n, **given), _normal(3, "n", *_sides)
        )
        MODULES[f"Lazy{_name}{_dims}d"] = Kind(
            lambda n, name=f"Lazy{_name}{_dims}d", given=_options: getattr(nn, name)(**given), _normal(3, "n", *_sides)
        )
MODULES["LazyLinear"] = Kind(lambda n: nn.LazyLinear(4), _normal(3, "n"))

# Classes that keep something, and are not asked.
NOT_ASKED = {
    "FractionalMaxPool2d": "draws its places",
    "FractionalMaxPool3d": "draws its places",
    "NLLLoss2d": "NLLLoss by its old name",
    "ParameterDict": "holds parameters, and computes nothing",
    "ParameterList": "holds parameters, and computes nothing",
    "RNNBase": "what RNN, LSTM and GRU have in common: it computes nothing",
    "RNNCellBase": "what the cells have in common: it computes nothing",
    "SyncBatchNorm": "needs several processes",
    "Unflatten": "keeps nothing: its description alone names a parameter",
}
