"""Rule 6: what a layer answers is written over in place by the next one: its gradient is that of before, or it refuses.

The gradient of max_pool2d behind which dropout writes in place was wrong, https://github.com/pluskid/Mocha.jl/issues/96
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]

# x: (2, 4, 6, 6); w: (4, 4, 3, 3).
_LAYERS: dict[str, Form] = {
    "conv2d": lambda x, w: F.conv2d(x, w, padding=1),
    "linear": lambda x, w: F.linear(x, w[0, 0, 0].expand(5, 3).repeat(1, 2)),
    "matmul": lambda x, w: x @ x.mT,
    "max_pool2d": lambda x, w: F.max_pool2d(x, 2),
    "max_pool3d": lambda x, w: F.max_pool3d(x, 2),
    "avg_pool2d": lambda x, w: F.avg_pool2d(x, 3, 1),
    "adaptive_max": lambda x, w: F.adaptive_max_pool2d(x, 4),
    "interpolate": lambda x, w: F.interpolate(x, scale_factor=1.5, mode="bilinear"),
    "batch_norm": lambda x, w: F.batch_norm(x, None, None, w[0, :, 0, 0], w[1, :, 0, 0], training=True),
    "layer_norm": lambda x, w: F.layer_norm(x, (6, 6)),
    "group_norm": lambda x, w: F.group_norm(x, 2),
    "pad": lambda x, w: F.pad(x, (1, 1, 0, 1), mode="reflect"),
    "embedding": lambda x, w: F.embedding(torch.tensor([0, 3, 0], device=x.device), w[0, 0].repeat(2, 1)),
    "index": lambda x, w: x[:, [0, 2, 2]],
    "gather": lambda x, w: x.gather(1, torch.zeros(2, 2, 6, 6, dtype=torch.int64, device=x.device)),
    "cat": lambda x, w: torch.cat([x, x * 2], 1),
    "where": lambda x, w: torch.where(x > 0, x, -x),
    "add": lambda x, w: x + w[0, :, :1, :1],
    "mul": lambda x, w: x * x.flip(0),
    "div": lambda x, w: x / (x.flip(0).abs() + 1),
    "sum": lambda x, w: x.sum(1),
    "mean": lambda x, w: x.mean((2, 3)),
    "amax": lambda x, w: x.amax(1),
    "sort": lambda x, w: x.sort(-1)[0],
    "cumsum": lambda x, w: x.cumsum(-1),
    "abs": lambda x, w: x.abs(),
    "clamp": lambda x, w: x.clamp(-0.5, 0.5),
    # What these answer is kept for their gradient: autograd refuses.
    **{
        name: lambda x, w, name=name: getattr(torch, name)(x)
        for name in ("exp", "sigmoid", "tanh", "relu", "reciprocal")
    },
    "softmax": lambda x, w: x.softmax(1),
    "sqrt": lambda x, w: (x.abs() + 1).sqrt(),
    "cumprod": lambda x, w: x.cumprod(-1),
    "gelu": lambda x, w: F.gelu(x),
    "silu": lambda x, w: F.silu(x),
    "leaky_relu": lambda x, w: F.leaky_relu(x, 0.1),
    "elu": lambda x, w: F.elu(x),
}
# Each writes over y.
_WRITERS: dict[str, Form] = {
    "dropout": lambda y: F.dropout(y, 0.0, inplace=True),
    "dropout-all": lambda y: F.dropout(y, 1.0, inplace=True),
    "alpha": lambda y: F.alpha_dropout(y, 0.0, inplace=True),
    "relu": lambda y: F.relu(y, inplace=True),
    "leaky_relu": lambda y: F.leaky_relu(y, 0.1, inplace=True),
    "elu": lambda y: F.elu(y, inplace=True),
    "silu": lambda y: F.silu(y, inplace=True),
    "threshold": lambda y: F.threshold(y, 0.1, 0.2, inplace=True),
    "add": lambda y: y.add_(1),
    "mul": lambda y: y.mul_(0.5),
    "clamp": lambda y: y.clamp_(-0.4, 0.6),
    "sigmoid": lambda y: y.sigmoid_(),
    "zero": lambda y: y.zero_(),
    "masked": lambda y: y.masked_fill_(y > 0, 0.25),
    "row": lambda y: y[:1].mul_(2),
    "assigned": lambda y: y[..., 0].copy_(y[..., 1]),
    "index_fill": lambda y: y.index_fill_(0, torch.tensor([0], device=y.device), 0.5),
    "transposed": lambda y: y.t_() if y.dim() == 2 else y.transpose_(0, 1),
}


def _behind(layer: Form, writer: Form, x: torch.Tensor, w: torch.Tensor) -> Any:
    def act(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = layer(a, b)
        writer(y)
        return y * 1

    return derived(act, x, w)


def _operands(dtype: torch.dtype) -> Any:
    return lambda d: ((d.distinct(2, 4, 6, 6) / 128).to(dtype), (d.distinct(4, 4, 3, 3) / 128).to(dtype))


for _place, _dtype in enumerate((torch.float32, *HALVES)):
    _asked = {
        f"{layer}-{writer}": lambda x, w, layer=_LAYERS[layer], writer=_WRITERS[writer]: _behind(layer, writer, x, w)
        for row, layer in enumerate(_LAYERS)
        for column, writer in enumerate(_WRITERS)
        if (row + column) % 7 == _place or _dtype == torch.float32
    }
    _name = f"written-over-{str(_dtype)[6:]}"
    add_table(cases, _name, _asked, _operands(_dtype), terms=64 if _place == 0 else 4, factor=16.0, deterministic=False)
    if _dtype == torch.float32:
        add_refused(cases, _name, _operands(_dtype), _asked)
