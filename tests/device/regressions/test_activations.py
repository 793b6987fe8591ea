"""Regressions in pointwise operators: layouts of inputs, gradients and out=."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import backward, leaf

cases = Cases("regressions")
FLOATS = (torch.float32, torch.float16)


def _both_ways(name: str) -> Any:
    """Forward and backward of F.<name> on a transposed and on a permuted view."""

    def act(x: Any, y: Any, grad: Any) -> Any:
        function = getattr(F, name)
        answers = []
        for view in (x.transpose(1, 2), y.permute(0, 2, 3, 1), y.permute(2, 0, 1, 3)[1:]):
            start = leaf(view)
            answers.append(backward(function(start), start))
        start = leaf(x.transpose(1, 2))
        answers.append(backward(function(start), start, grad=grad))
        return answers

    return act


def _features(dtype: torch.dtype) -> Any:
    return lambda d: (
        d.normal(2, 16, 25 + d.k, dtype=dtype),
        d.normal(2, 3, 4, 5 + d.k, dtype=dtype),
        d.normal(2, 25 + d.k, 16, dtype=dtype),
    )


# https://github.com/pytorch/pytorch/issues/98212: GELU forward wrong on non-contiguous input (GLPN/SegFormer
# features)
# https://github.com/pytorch/pytorch/issues/139006: SiLU returns random/0/NaN on non-contiguous input before macOS 15
for _name, _issue, _dtype in (
    ("gelu", "98212", torch.float32),
    ("leaky_relu", "98212", torch.float32),
    ("mish", "98212", torch.float32),
    ("silu", "139006", torch.float32),
    ("silu", "139006", torch.float16),
):
    cases.add(
        f"issue-{_issue}-{_name}-{str(_dtype)[6:]}", _both_ways(_name), issue=_issue, make=_features(_dtype), terms=4
    )


@cases.case(
    "issue-139006-video", issue="139006", make=lambda d: (d.normal(1, 2, 3, 4, 5 + d.k), d.normal(1, 3, 4, 5 + d.k, 2))
)
def _silu_of_five_dimensions(x: Any, grad: Any) -> Any:
    start = leaf(x.permute(0, 2, 3, 4, 1))
    return backward(F.silu(start), start, grad=grad)


_BACKWARDS = {
    "tanh": lambda x: torch.tanh(x),
    "silu": lambda x: F.silu(x),
    "threshold": lambda x: F.threshold(x, 0.1, -1.0),
    "hardswish": lambda x: F.hardswish(x),
    "softplus": lambda x: F.softplus(x),
    "gelu": lambda x: F.gelu(x),
    "logsigmoid": lambda x: F.logsigmoid(x),
}


def _backward_of(name: str) -> Any:
    def act(x: Any, expanded: Any, strided: Any) -> Any:
        answers = []
        for view in (x.permute(0, 3, 1, 2),):
            for grad in (
                None,
                expanded.expand(view.shape),
                strided.permute(3, 2, 1, 0).reshape(-1)[: view.numel()].view(view.shape),
            ):
                start = leaf(view)
                answers.append(backward(_BACKWARDS[name](start), start, grad=grad))
        start = leaf(x)
        answers.append(backward(_BACKWARDS[name](start), start, grad=strided.permute(3, 1, 2, 0)))
        return answers

    return act


# https://github.com/pytorch/pytorch/issues/175188: tanh/sigmoid/silu/relu backward wrong on permuted inputs, forward
# right
for _name in _BACKWARDS:
    cases.add(
        f"issue-175188-{_name}",
        _backward_of(_name),
        issue="175188",
        terms=16,
        make=lambda d: (d.normal(1, 7, 4, 3 + d.k), d.normal(1), d.normal(3 + d.k, 7, 4, 1)),
    )

_UNARY = ("neg", "exp", "ceil", "sqrt", "log", "reciprocal")


def _into_strided_outputs(name: str) -> Any:
    def act(x: Any, square: Any, wide: Any) -> Any:
        function = getattr(torch, name)
        transposed, columns = square.t(), wide[:, 1 : 1 + x.shape[1]]
        function(x, out=transposed)
        function(x, out=columns)
        function(x.t(), out=wide[:, : x.shape[0]])
        return transposed, columns

    return act


# https://github.com/pytorch/pytorch/issues/100764: unary ops with out= of different strides write the transposed
# result
for _name in _UNARY:
    cases.add(
        f"issue-100764-{_name}",
        _into_strided_outputs(_name),
        issue="100764",
        strides=True,
        factor=16,
        make=lambda d: (d.uniform(0.25, 3, 3 + d.k, 3 + d.k), d.normal(3 + d.k, 3 + d.k), d.normal(3 + d.k, 6 + d.k)),
    )


def _metal_unary(x: Any) -> Any:
    """The unary operators that have Metal kernels of their own, on an offset view and on its copy."""
    names = (
        "erfinv",
        "erf",
        "exp",
        "tanh",
        "sin",
        "cos",
        "sqrt",
        "rsqrt",
        "log",
        "digamma",
        "lgamma",
        "sinc",
        "log10",
        "exp2",
        "i0",
        "asin",
    )
    return [(getattr(torch, name)(x[2:]), getattr(torch, name)(x[2:].clone())) for name in names]


# https://github.com/pytorch/pytorch/issues/105801: erfinv ignores storage offset
cases.add(
    "issue-105801",
    lambda x: (torch.erfinv(x[2:]), x[3:].erfinv(), x[1:].clone().erfinv_()),
    issue="105801",
    make=lambda d: d.uniform(0.05, 0.9, 9 + d.k),
    factor=32,
)
# digamma, lgamma and i0 are series: a few units in the last place more.
cases.add(
    "issue-105801-unary",
    _metal_unary,
    issue="105801",
    make=lambda d: d.uniform(0.05, 0.9, 9 + d.k),
    factor=32,
    since="1.13",
)
