"""Rule 5: draws of what is certain, written to operands of every layout: values, masks, noise, a second result.

Other rules leave out what is drawn. Noise that is not contiguous: https://github.com/intel/torch-xpu-ops/issues/5236
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.answers import attempt
from device_suite.limits import ONCE
from device_suite.ops import FLOATS
from engine.description import VIEWS

cases = Cases("conditions")
_SHAPE = (4, 6)
aten = torch.ops.aten


def _noisy(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> Any:
    return [aten.rrelu_with_noise(x, y, 0.25, 0.25, True), aten.rrelu_with_noise(x, z, 0.25, 0.5, False)]


def _noisy_in_place(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> Any:
    return aten.rrelu_with_noise_(z.copy_(x), y, 0.25, 0.25, True)


def _noisy_out(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> Any:
    return aten.rrelu_with_noise.out(x, y, 0.25, 0.25, True, out=z)


def _noisy_gradient(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> Any:
    start = leaf(x)
    F.rrelu(start, 0.25, 0.25, training=True).backward(z.copy_(x))
    return start.grad


def _statistics(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> Any:
    """Update running statistics that lie apart in memory: the schema does not say that they are written to."""
    mean, var, other = y[:, 2], z[:, 1], z[1, 2:]
    return [
        F.batch_norm(x.t(), mean, var, training=True, momentum=0.25),
        F.instance_norm(x.t()[:, :, None].expand(6, 4, 3) * mean.new_tensor([1, 2, 4]), mean, var, momentum=0.5),
        torch.native_batch_norm(x.t(), None, None, mean, other, True, 0.25, 1e-5)[0],
    ]


def _sure(x: torch.Tensor) -> torch.Tensor:
    """Return rows of weights of which one alone is not zero."""
    return (torch.arange(x.shape[1], device=x.device) == 3).to(x.dtype).expand(x.shape)


# x is read; y and z are written to, and lie in a layout of their own.
_FORMS: dict[str, Callable[..., Any]] = {
    "noise": _noisy,
    "noise-in-place": _noisy_in_place,
    "noise-out": _noisy_out,
    "noise-gradient": _noisy_gradient,
    "statistics": _statistics,
    "uniform": lambda x, y, z: y.uniform_(0.5, 0.5),
    "normal": lambda x, y, z: [y.normal_(2.0, 0.0), torch.normal(x, torch.zeros_like(x), out=z)],
    "bernoulli": lambda x, y, z: [y.bernoulli_(1.0), z.bernoulli_((x > 0).to(x.dtype))],
    "bernoulli-out": lambda x, y, z: torch.bernoulli((x > 0).to(x.dtype), out=y),
    "random": lambda x, y, z: [y.random_(3, 4), z.random_(1)],
    "randint": lambda x, y, z: torch.randint(3, 4, _SHAPE, dtype=x.dtype, out=y),
    "poisson": lambda x, y, z: torch.poisson(y.zero_()),
    "multinomial": lambda x, y, z: torch.multinomial(_sure(x), 1),
    "dropout": lambda x, y, z: [F.dropout(y.copy_(x), p, inplace=True).clone() for p in (0.0, 1.0)],
    "dropout-mask": lambda x, y, z: [aten.native_dropout(z.copy_(x), p, True) for p in (0.0, 1.0)],
    "dropout-mask-out": lambda x, y, z: aten.native_dropout.out(
        x, 0.0, True, out0=y, out1=z.new_zeros(6, 4).bool().t()
    ),
    "dropout-channels": lambda x, y, z: [F.dropout1d(y.copy_(x), p, inplace=True).clone() for p in (0.0, 1.0)],
    "dropout-alpha": lambda x, y, z: F.alpha_dropout(y.copy_(x), 0.0, training=True, inplace=True),
}


_LAYOUTS = ("dense", "transposed", "step", "narrow")


def _drawn(form: Callable[..., Any], layout: str, x: torch.Tensor, *bases: torch.Tensor) -> Any:
    views = [VIEWS[layout].cut(base, _SHAPE) for base in bases]
    return attempt(lambda: [form(x, *views), *views])


def _bases(d: Any) -> Any:
    """Return, for each dtype and layout, an operand and memory that is written to."""
    return tuple(
        (d.normal(*_SHAPE, dtype=dtype), *(torch.full(VIEWS[name].base(_SHAPE), 7.0, dtype=dtype) for _ in range(2)))
        for dtype in FLOATS
        for name in _LAYOUTS
    )


for _name, _form in _FORMS.items():
    cases.add(
        f"written-certain-{_name}",
        lambda *bases, form=_form: [_drawn(form, layout, *each) for each, layout in zip(bases, _LAYOUTS * len(FLOATS))],
        make=_bases,
        states=ONCE,
        may_be_missing=True,
    )
