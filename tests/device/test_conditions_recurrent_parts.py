"""Rules 3, 4 and 6: nets that go over a sequence: which part of the answer is derived, how states lie, what misfits.

Hidden sizes that are no multiple of four, of whose answer a part was derived,
https://github.com/pytorch/pytorch/issues/54307; dropout that the gradient forgot,
https://github.com/pytorch/pytorch/issues/190056; states that do not fit ended the process,
https://github.com/pytorch/pytorch/issues/6176
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch
from torch import nn

from device_suite import Cases
from device_suite.acts import filled, leaf
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
_NETS: dict[str, Any] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
_CELLS: dict[str, Any] = {"rnn": nn.RNNCell, "gru": nn.GRUCell, "lstm": nn.LSTMCell}

# What of (output, last states) is derived.
_PARTS: dict[str, Callable[[torch.Tensor, tuple[torch.Tensor, ...]], torch.Tensor]] = {
    "all": lambda y, h: y.square().sum() + sum((one * one).sum() for one in h),
    "output": lambda y, h: (y * 1.5).sum(),
    "last": lambda y, h: y[-1].square().sum(),
    "first": lambda y, h: y[:1].square().sum(),
    "one": lambda y, h: y[0, 0, 0] * 2,
    "half": lambda y, h: y[..., : y.shape[-1] // 2 + 1].square().sum(),
    "sequence": lambda y, h: y[:, 1].square().sum(),
    "state": lambda y, h: h[0].square().sum(),
    "state-last": lambda y, h: h[-1].square().sum(),
    "state-layer": lambda y, h: h[-1][0].sum() * 2,
    "turned": lambda y, h: (y.transpose(0, 1).flatten()[::2] * 2).sum(),
}
# How the input or a state lies.
_LIES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda x: x,
    "turned": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "steps": lambda x: torch.stack([x, x + 1], -1)[..., 0],
    "slice": lambda x: torch.cat([x + 1, x, x], -1)[..., x.shape[-1] : 2 * x.shape[-1]],
    "spread": lambda x: x[:, :1].expand_as(x),
}


def _states(kind: str, x: torch.Tensor, layers: int, batch: int, size: int, lies: str) -> Any:
    h = _LIES[lies](x.flatten()[: layers * batch * size].view(layers, batch, size))
    return (h, _LIES[lies](h.detach() * 0.5 + 0.25)) if kind == "lstm" else h


def _asked(kind: str, size: int, options: dict[str, Any], part: str, lies: str, given: bool, x: torch.Tensor) -> Any:
    net = filled(_NETS[kind](4, size, **options), x)
    start = leaf(x[:60].view(3, 5, 4))  # three steps of five sequences
    layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    first = options.get("batch_first", False)
    states = (_states(kind, x, layers, 3 if first else 5, size, lies),) if given else ()
    y, h = net(_LIES[lies](start), *states)
    _PARTS[part](y, h if isinstance(h, tuple) else (h,)).backward()
    grads = [start.grad, *(one.grad for one in net.parameters())]
    return [y, h, *(one for one in grads if one is not None)]


_OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bare": {"bias": False},
    "layers": {"num_layers": 2},
    "both": {"bidirectional": True},
    "first": {"batch_first": True, "num_layers": 2, "bidirectional": True},
    # Every number is dropped between the layers, or none is.
    "dropped": {"num_layers": 2, "dropout": 1.0},
    "dropped-both": {"num_layers": 3, "dropout": 1.0, "bidirectional": True},
}
_ROWS = {
    f"{kind}-{size}-{options}-{part}-{lies}-{given}": (
        lambda x, row=(kind, size, _OPTIONS[options], part, lies, given): _asked(*row, x)
    )
    for place, (kind, size, options, part, lies, given) in enumerate(
        itertools.product(_NETS, (1, 3, 6, 8), _OPTIONS, _PARTS, _LIES, (False, True))
    )
    if (place * 7 + place // 110) % 431 == 0
}
for _dtype in (torch.float32, *HALVES):
    _half = _dtype in HALVES
    add_table(
        cases,
        f"recurrent-parts-{str(_dtype)[6:]}",
        dict(list(_ROWS.items())[:: 11 if _half else 1]),
        lambda d, dtype=_dtype: ((d.distinct(360) / 256 + 0.001).to(dtype),),
        terms=64 if not _half else 16,
        factor=64.0,
        deterministic=False,
    )


def _misfit(kind: str, shape: tuple[int, ...], other: tuple[int, ...] | None, cell: bool, x: torch.Tensor) -> Any:
    """Ask a net of two layers, or a cell, with states that do not fit: the second one of an lstm may be another."""
    net = filled((_CELLS if cell else _NETS)[kind](4, 6, *(() if cell else (2,))), x)
    y = x[:20].view(5, 4) if cell else x[:60].view(3, 5, 4)
    states = [x.repeat(9)[: torch.Size(one).numel()].view(one) for one in (shape, other or shape)]
    return net(y, (states[0], states[1]) if kind == "lstm" else states[0])


_RIGHT, _RIGHT_CELL = (2, 5, 6), (5, 6)
add_refused(
    cases,
    "recurrent-states",
    lambda d: (d.normal(360) / 4,),
    {
        **{
            f"{kind}-{'-'.join(map(str, shape))}": lambda x, kind=kind, shape=shape: _misfit(
                kind, shape, None, False, x
            )
            for kind in _NETS
            for shape in (
                (1, 5, 6),
                (3, 5, 6),
                (2, 4, 6),
                (2, 1, 6),
                (2, 5, 5),
                (2, 5, 1),
                (2, 6),
                (1, 2, 5, 6),
                (0, 5, 6),
            )
        },
        **{
            f"cell-{kind}-{'-'.join(map(str, shape))}": lambda x, kind=kind, shape=shape: _misfit(
                kind, shape, None, True, x
            )
            for kind in _CELLS
            for shape in ((4, 6), (1, 6), (6, 6), (5, 5), (5, 7), (5, 1), (5, 12))
        },
        **{
            f"lstm-other-{'-'.join(map(str, shape))}": lambda x, shape=shape: _misfit("lstm", _RIGHT, shape, False, x)
            for shape in ((1, 5, 6), (2, 4, 6), (2, 5, 5), (2, 5, 7))
        },
        **{
            f"cell-lstm-other-{'-'.join(map(str, shape))}": lambda x, shape=shape: _misfit(
                "lstm", _RIGHT_CELL, shape, True, x
            )
            for shape in ((4, 6), (5, 5), (5, 7))
        },
        **{
            f"input-{kind}-{cell}-{count}": lambda x, kind=kind, cell=cell, count=count: filled(
                (_CELLS if cell else _NETS)[kind](4, 6), x
            )(x[: 10 * count].view(*((10, count) if cell else (2, 5, count))))
            for kind in _NETS
            for cell in (False, True)
            for count in (3, 5, 1)
        },
        **{
            f"dtype-{kind}-{cell}": lambda x, kind=kind, cell=cell: filled((_CELLS if cell else _NETS)[kind](4, 6), x)(
                x[:20].view(*((5, 4) if cell else (1, 5, 4))).long()
            )
            for kind in _NETS
            for cell in (False, True)
        },
        **{
            f"lstm-one-{cell}": lambda x, cell=cell: filled((nn.LSTMCell if cell else nn.LSTM)(4, 6), x)(
                x[:20].view(*((5, 4) if cell else (1, 5, 4))), (x[:30].view(*((5, 6) if cell else (1, 5, 6))),)
            )
            for cell in (False, True)
        },
    },
    since="2.13",
)
