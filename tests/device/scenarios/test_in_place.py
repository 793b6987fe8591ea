"""An operator's fresh answer changed in place at once, as models do: convolution and ReLU, linear and dropout."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import derived
from engine.answers import ONCE, each

cases = Cases("scenarios")


# Of x (2, 4, 6, 6) and w (4, 4, 3, 3), answers of one shape where it can be: a Mac compiles a graph for each.
_PRODUCERS: dict[str, Any] = {
    "conv2d": lambda x, w: F.conv2d(x, w, padding=1),
    "conv2d_bias": lambda x, w: F.conv2d(x, w, w[0, 0, 0].repeat(2)[:4] - 2, padding=1),
    "transposed": lambda x, w: F.conv_transpose2d(x, w, padding=1),
    "linear": lambda x, w: F.linear(x, w.flatten()[:36].view(6, 6), w.flatten()[:6]),
    "matmul": lambda x, w: x @ x.mT,
    "batch_norm": lambda x, w: F.batch_norm(x, None, None, training=True),
    "layer_norm": lambda x, w: F.layer_norm(x, (6,)),
    "max_pool": lambda x, w: F.max_pool2d(x, 3, 1, 1),
    "softmax": lambda x, w: x.softmax(-1),
    "attention": lambda x, w: F.scaled_dot_product_attention(x, x, x),
    "added": lambda x, w: x + w[0, 0, 0, 0],
    "joined": lambda x, w: torch.cat([x[:, :2], -x[:, 2:]], 1),
}
_CHANGES: dict[str, Any] = {
    "relu": lambda y: y.relu_(),
    "leaky": lambda y: F.leaky_relu_(y, 0.25),
    "silu": lambda y: F.silu(y, inplace=True),
    "hardswish": lambda y: F.hardswish(y, inplace=True),
    "threshold": lambda y: F.threshold_(y, 0.25, -1.0),
    "dropout": lambda y: F.dropout(y, 0.5, training=False, inplace=True),
    "sigmoid": lambda y: y.sigmoid_(),
    "added": lambda y: y.add_(1),
    "added_itself": lambda y: y.add_(y.clone()),
    "clamped": lambda y: y.clamp_(-0.5, 0.5),
    "filled": lambda y: y.masked_fill_(y < 0, 3),
    "part": lambda y: y[..., 1:].relu_(),
    "turned": lambda y: y.transpose(0, 1).relu_(),
}


def _changed(produce: Any, change: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = produce(x, w)
    change(y)
    return y


def _tested(produce: Any) -> Any:
    forms = {name: lambda x, w, change=change: _changed(produce, change, x, w) for name, change in _CHANGES.items()}
    learned = {name: lambda x, w, form=form: derived(form, x, w)[:2] for name, form in forms.items()}

    def act(x: torch.Tensor, w: torch.Tensor) -> Any:
        with torch.no_grad():
            still = each(forms, x, w)
        return still, each(learned, x, w)

    return act


for _name, _produce in _PRODUCERS.items():
    cases.add(
        f"sequence-in_place-{_name}",
        _tested(_produce),
        make=lambda d: (d.normal(2, 4, 6, 6), d.normal(4, 4, 3, 3, scale=0.5)),
        terms=256,
        floor=1.0,
        states=ONCE,
        may_be_missing=True,
    )
