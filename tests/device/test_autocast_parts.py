"""Autocast and each module with and without each of its parts: biases, weights, states, masks, projections.

LSTMCell raised for float16 with a bias alone, https://github.com/pytorch/pytorch/issues/45048; BatchNorm2d without
weights did, https://github.com/pytorch/pytorch/issues/61924
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any, Callable

import torch
from torch import nn

from device_suite import Cases
from device_suite.acts import filled, leaf
from device_suite.answers import attempt

cases = Cases("autocast")
LOW = (torch.float16, torch.bfloat16)
Make = Callable[..., nn.Module]
# Name: (module, what may be left out of it, how x is cut from (2, 4, 6, 6), options).
_PLAIN: dict[str, tuple[Make, str, Callable[[torch.Tensor], tuple[Any, ...]], tuple[Any, ...]]] = {
    "Linear": (nn.Linear, "bias", lambda x: (x,), (6, 5)),
    "Bilinear": (nn.Bilinear, "bias", lambda x: (x, x.flip(0)), (6, 6, 3)),
    "Conv1d": (nn.Conv1d, "bias", lambda x: (x[:, :, 0],), (4, 6, 3)),
    "Conv2d": (nn.Conv2d, "bias", lambda x: (x,), (4, 6, 3, 2, 1)),
    "Conv2d-groups": (nn.Conv2d, "bias", lambda x: (x,), (4, 8, 3, 1, 1, 1, 4)),
    "Conv3d": (nn.Conv3d, "bias", lambda x: (x[:, :, None],), (4, 2, (1, 3, 3))),
    "ConvTranspose1d": (nn.ConvTranspose1d, "bias", lambda x: (x[:, :, 0],), (4, 6, 3)),
    "ConvTranspose2d": (nn.ConvTranspose2d, "bias", lambda x: (x,), (4, 6, 3, 2, 1)),
    "ConvTranspose3d": (nn.ConvTranspose3d, "bias", lambda x: (x[:, :, None],), (4, 2, (1, 3, 3), 2)),
    "BatchNorm1d": (nn.BatchNorm1d, "affine", lambda x: (x[:, :, 0],), (4,)),
    "BatchNorm2d": (nn.BatchNorm2d, "affine track_running_stats", lambda x: (x,), (4,)),
    "BatchNorm3d": (nn.BatchNorm3d, "affine", lambda x: (x[:, :, None],), (4,)),
    "InstanceNorm1d": (nn.InstanceNorm1d, "affine", lambda x: (x[:, :, 0],), (4,)),
    "InstanceNorm2d": (nn.InstanceNorm2d, "affine track_running_stats", lambda x: (x,), (4,)),
    "GroupNorm": (nn.GroupNorm, "affine", lambda x: (x,), (2, 4)),
    "LayerNorm": (nn.LayerNorm, "elementwise_affine bias", lambda x: (x,), (6,)),
    "LayerNorm-two": (nn.LayerNorm, "elementwise_affine", lambda x: (x,), ((6, 6),)),
    "RMSNorm": (lambda *a, **o: nn.RMSNorm(*a, **o), "elementwise_affine", lambda x: (x,), (6,)),  # since 2.4
    "LocalResponseNorm": (nn.LocalResponseNorm, "", lambda x: (x,), (3,)),
    "PReLU": (nn.PReLU, "", lambda x: (x,), (4,)),
    "RNNCell": (nn.RNNCell, "bias", lambda x: (x[0, :, 0],), (6, 5)),
    "RNNCell-state": (nn.RNNCell, "bias", lambda x: (x[0, :, 0], x[1, :, 0, :5]), (6, 5)),
    "GRUCell": (nn.GRUCell, "bias", lambda x: (x[0, :, 0],), (6, 5)),
    "GRUCell-state": (nn.GRUCell, "bias", lambda x: (x[0, :, 0], x[1, :, 0, :5]), (6, 5)),
    "LSTMCell": (nn.LSTMCell, "bias", lambda x: (x[0, :, 0],), (6, 5)),
    "LSTMCell-state": (nn.LSTMCell, "bias", lambda x: (x[0, :, 0], (x[1, :, 0, :5], x[1, :, 1, :5])), (6, 5)),
    "LSTMCell-one": (nn.LSTMCell, "bias", lambda x: (x[0, 0, 0],), (6, 5)),
    "RNN": (nn.RNN, "bias", lambda x: (x[0],), (6, 5)),
    "GRU": (nn.GRU, "bias", lambda x: (x[0],), (6, 5)),
    "GRU-state": (nn.GRU, "bias", lambda x: (x[0], x[1, :1, :, :5]), (6, 5)),
    "LSTM": (nn.LSTM, "bias", lambda x: (x[0],), (6, 5)),
    "LSTM-state": (nn.LSTM, "bias", lambda x: (x[0], (x[1, :1, :, :5], x[1, 1:2, :, :5])), (6, 5)),
    "LSTM-layers": (
        lambda *a, **o: nn.LSTM(*a, **o, num_layers=2, bidirectional=True),
        "bias",
        lambda x: (x[0],),
        (6, 5),
    ),
    "LSTM-projected": (lambda *a, **o: nn.LSTM(*a, **o, proj_size=2), "bias", lambda x: (x[0],), (6, 5)),
    "Attention": (nn.MultiheadAttention, "bias", lambda x: (x[0], x[1], x[0]), (6, 2)),
    "Attention-first": (
        lambda *a, **o: nn.MultiheadAttention(*a, **o, batch_first=True),
        "bias",
        lambda x: (x[0], x[0], x[0], None, False),
        (6, 2),
    ),
    "Attention-more": (
        lambda *a, **o: nn.MultiheadAttention(*a, **o, add_bias_kv=True, add_zero_attn=True),
        "bias",
        lambda x: (x[0], x[1], x[0]),
        (6, 2),
    ),
    "Attention-sizes": (
        lambda *a, **o: nn.MultiheadAttention(*a, **o, kdim=5, vdim=4),
        "bias",
        lambda x: (x[0], x[1, ..., :5], x[1, ..., 2:]),
        (6, 2),
    ),
    "Encoder": (
        lambda *a, **o: nn.TransformerEncoderLayer(*a, **o, dropout=0.0),
        "bias",
        lambda x: (x[0],),
        (6, 2, 8),
    ),
    "Decoder": (
        lambda *a, **o: nn.TransformerDecoderLayer(*a, **o, dropout=0.0),
        "bias",
        lambda x: (x[0], x[1]),
        (6, 2, 8),
    ),
}


def _taken(one: Any, precise: bool, low: torch.dtype, lowered: bool) -> Any:
    """Return what a module is given: tensors of its own dtype, or of the low one as another module answers."""
    if isinstance(one, tuple):
        return tuple(_taken(part, precise, low, lowered) for part in one)
    if not isinstance(one, torch.Tensor) or precise or not lowered:
        return one
    return one.to(low)


def _answers(found: Any) -> list[torch.Tensor]:
    if isinstance(found, tuple):
        return [part for one in found for part in _answers(one)]
    return [found] if isinstance(found, torch.Tensor) else []


def _asked(name: str, without: tuple[str, ...], low: torch.dtype, mode: str, run: Any, x: torch.Tensor) -> Any:
    make, options, cut, sizes = _PLAIN[name]
    given = {one: one not in without for one in options.split()}
    module = filled(make(*sizes, **given), x)
    module.train(mode != "eval")
    start = leaf(x)
    operands = tuple(_taken(one, run.precise, low, mode == "lowered") for one in cut(start))
    with torch.autocast(run.device.type, dtype=low, enabled=not run.precise):
        found = _answers(module(*operands))
    exact = run.cast(low)
    total = sum((y.to(exact).to(x.dtype) * (0.5 + place)).sum() for place, y in enumerate(found))
    total.backward()
    return [
        *(y.detach() for y in found),
        *(one.grad for one in (start, *module.parameters()) if one.grad is not None),
    ]


def _table(names: tuple[str, ...], modes: tuple[str, ...], low: torch.dtype) -> Any:
    def act(run: Any, x: torch.Tensor) -> Any:
        rows = [
            (name, without, mode)
            for name in names
            for count in range(min(2, len(_PLAIN[name][1].split())) + 1)
            for without in itertools.combinations(_PLAIN[name][1].split(), count)
            if count < 2 or name.endswith("2d")
            for mode in modes
        ]
        return {
            f"{name}-{'-'.join(without)}-{mode}": attempt(partial(_asked, name, without, low, mode, run, x))
            for name, without, mode in rows
        }

    return act


# Name: (how its modules begin, how each is asked).
_GROUPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "windows": (("Linear", "Bilinear", "Conv", "PReLU"), ("train",)),
    "norms": (
        ("BatchNorm", "InstanceNorm", "GroupNorm", "LayerNorm", "RMSNorm", "Local"),
        ("train", "lowered"),
    ),
    "cells": (("RNNCell", "GRUCell", "LSTMCell"), ("train", "lowered")),
    "recurrent": (("RNN", "GRU", "LSTM"), ("train",)),
    "attention": (("Attention", "Encoder", "Decoder"), ("train",)),
}
for _low in LOW:
    _left = list(_PLAIN)
    for _group, (_starts, _modes) in _GROUPS.items():
        _names = tuple(name for name in _left if name.startswith(_starts))
        _left = [name for name in _left if name not in _names]
        if _low == torch.bfloat16 and _group in ("recurrent", "attention", "windows"):
            continue
        cases.add(
            f"autocast-parts-{_group}-{str(_low)[6:]}",
            _table(_names, _modes if _low == torch.float16 else _modes[:1], _low),
            make=lambda d: (d.distinct(2, 4, 6, 6) / 144 + 0.01,),
            terms=256,
            factor=16.0,
            floor=1.0,
            since="2.6",
            states=("fresh",),
            deterministic=False,
            may_be_missing=True,
            autocast=_low,
        )
