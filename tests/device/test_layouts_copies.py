"""Layouts of copies, fills, conversions and in-place chains."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.layout_cases import add_layout_cases
from device_suite.ops import FLOATS, INTEGERS, Arg, Op

cases = Cases("layouts")
WHOLE = (*FLOATS, *INTEGERS, torch.bool)


def _op(name: str, act: Any, *args: Any, **fields: Any) -> None:
    operands = tuple(arg if isinstance(arg, Arg) else Arg(arg) for arg in args)
    add_layout_cases(cases, Op(name=name, args=operands, forms=(act,), **{"dtypes": WHOLE, "terms": 16, **fields}))


# Copies and conversions.
_op(
    "copied",
    lambda x: [
        x.clone(),
        x.contiguous(),
        x.detach() + 0,
        torch.clone(x),
        x.new_tensor(x[:99].tolist() if x.dim() else x.tolist()),
        torch.empty_like(x).copy_(x),
    ],
    "r n",
    empty="r",
    tall=True,
    grads=(),
)
_op("copy", lambda x, y: x.clone().copy_(y), "r n", "r n", inplace=lambda x, y: x.copy_(y), grads=(0, 1))
_op(
    "copy_images",
    lambda x, y: x.clone().copy_(y),
    "b c h w",
    "b c h w",
    inplace=lambda x, y: x.copy_(y),
    dtypes=FLOATS[:2],
    grads=(),
)
_op("copy_row", lambda x, y: x.clone().copy_(y), "r n", "n", inplace=lambda x, y: x.copy_(y), grads=())
_op("swap", lambda x, y: [x.t().copy_(y.t()), x], "r n", "r n", grads=(), expanded=False)
_op(
    "filled",
    lambda x: [
        torch.full_like(x, 3),
        torch.zeros_like(x),
        torch.ones_like(x),
        x.new_zeros(2, 3),
        x.new_ones(3),
        x.new_full((2,), 1),
    ],
    "r n",
    inplace=lambda x: x.fill_(3),
    grads=(),
)
_op("zeroed", lambda x: torch.zeros_like(x), "r n", inplace=lambda x: x.zero_(), grads=())
_op(
    "fill_by_tensor",
    lambda x, y: x.clone().fill_(y[0]),
    "r n",
    "n",
    inplace=lambda x, y: x.fill_(y[2]),
    dtypes=(*FLOATS, torch.int64),
    grads=(),
)
for _target in WHOLE:
    # From quarters towards zero; only small positive values, since what a negative one becomes as uint8 is undefined.
    _op(
        f"to_{str(_target)[6:]}",
        lambda x, target=_target: [x.to(target), x.type(target), torch.empty_like(x, dtype=target).copy_(x)],
        Arg("r n", "halves"),
        grads=(),
    )
_op(
    "named_conversions",
    lambda x: [x.float(), x.half(), x.bfloat16(), x.long(), x.int(), x.short(), x.bool(), x.byte()],
    Arg("r n", "halves"),
    grads=(),
)
_op(
    "reinterpreted",
    lambda x: [x.contiguous().view(torch.int16), x.contiguous().view(torch.uint8), x.view(torch.int32)],
    "r n",
    dtypes=(torch.int32,),
)
_op(
    "complex_parts",
    lambda x, y: [
        torch.complex(x, y).abs(),
        torch.view_as_real(torch.complex(x, y)),
        torch.complex(x, y).real,
        (torch.complex(x, y) * torch.complex(y, x)).imag,
        torch.polar(x.abs(), y).real,
    ],
    "r n",
    "r n",
    dtypes=FLOATS[:1],
    since="2.1",
    factor=16,
)
_op(
    "fourier",
    lambda x: [
        torch.fft.rfft(x).abs(),
        torch.fft.fft(x).real,
        torch.fft.ifft(torch.fft.fft(x)).real,
        torch.fft.irfft(torch.fft.rfft(x), 7),
        torch.fft.fft2(x).imag,
        torch.fft.fftshift(x),
    ],
    "5 7",
    dtypes=FLOATS[:1],
    since="2.1",
    factor=16,
)


def _written(x: Any, y: Any) -> Any:
    """In-place work of many kinds through one view, each step on what the last one left."""
    x.add_(y).mul_(2).sub_(y, alpha=0.5).neg_()
    x.abs_().clamp_(0.1, 3).sqrt_().square_()
    x.t().add_(1)
    x[1:].mul_(0.5)
    x[:, ::2].zero_()
    x.copy_(x.flip(0))
    return x.lerp_(y, 0.25).addcmul_(y, y, value=0.1).relu_()


_op(
    "in_place_chain",
    lambda x, y: _written(x.clone(), y),
    "r n",
    "r n",
    inplace=_written,
    dtypes=FLOATS[:2],
    factor=16,
    grads=(),
)
