"""Promotion: every pair of dtypes, and Python scalars and 0-d tensors of host and device as operands, by operator.

Truth is the CPU in the case's own dtypes: the values are such that every dtype holds them.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.answers import Host, attempt
from device_suite.host_views import short
from device_suite.promotion_table import BINARY, DTYPES, SCALARS, SIGNS, TERNARY

cases = Cases("promotion")


_HALVES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)


# With a number on the host an operator may insist on one device: logical_and, logaddexp and gcd of CUDA do.
_ONE_DEVICE = "to be on the same device"
_PARTS = 3


def _values(whole: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return 1..6, in halves where the dtype has them: no zero divides, and every dtype holds all of them."""
    if not dtype.is_floating_point:
        return whole.to(dtype)
    return torch.tensor(_HALVES, dtype=dtype, device=whole.device)[whole]


def _called(name: str, one: Any, two: Any) -> Any:
    return attempt(lambda: getattr(torch, name)(one, two), gap=_ONE_DEVICE)


def _signed(name: str, one: Any, two: Any) -> Any:
    return attempt(lambda: SIGNS[name](one, two))


def _forms(name: str, x: Any, y: Any, elements: Any) -> list[Callable[[], Any]]:
    """Return the calls with two operands beside the plain one: strided, without dimensions, on the host, in place."""
    there = y[2, 1]
    return [
        lambda: _called(name, x.t(), y[:5].repeat(1, 2)[:, :6]),
        lambda: _called(name, x, there),
        lambda: _called(name, there, x),
        lambda: _called(name, x[1, 1], there),
        lambda: _called(name, x, elements[3]),  # at an offset
        lambda: _called(name, elements[2], x),
        lambda: attempt(lambda: getattr(x.clone(), name + "_")(y)),
        lambda: attempt(lambda: getattr(x[:, 1:].clone(), name + "_")(elements[1]), gap=_ONE_DEVICE),
    ]


def _binary(name: str, first: torch.dtype) -> Any:
    """Ask one operator with a first operand of one dtype against every dtype, as a tensor, a 0-d tensor, a number."""

    def act(p: torch.Tensor, q: torch.Tensor, host: Host) -> Any:
        x, answers = _values(p, first), {}
        for place, second in enumerate(DTYPES, DTYPES.index(first)):
            y, elements = _values(q, second), _values(host.view, second)
            forms = _forms(name, x, y, elements)[place % _PARTS :: _PARTS]
            # Each pair of dtypes as two tensors, and in a third of the other forms: each form meets each dtype.
            answers[short(second)] = [_called(name, x, y), *(form() for form in forms)]
        for number in SCALARS:
            answers[repr(number)] = [_called(name, x, number), _called(name, x[1, 1], number)]
            if name in SIGNS:
                answers[repr(number)] += [_signed(name, x, number), _signed(name, number, x[1:])]
        if name not in SIGNS:
            return answers
        return answers, _signed(name, x, x.mT.reshape(6, 5)), attempt(lambda: SIGNS[name](x, x[:1]))

    return act


def _make(d: Any) -> Any:
    return d.integers(1, 7, 6, 5), d.integers(1, 7, 6, 5), Host(d.integers(1, 7, 5))


for _name in BINARY:
    for _dtype in DTYPES if hasattr(torch, _name) else ():
        if _name.startswith("bitwise") and _dtype.is_floating_point:
            continue
        cases.add(
            f"promotion-{_name}-{short(_dtype)}",
            _binary(_name, _dtype),
            make=_make,
            factor=16 if _name in ("pow", "logaddexp", "xlogy", "atan2", "hypot") else 4,
            states=("fresh",),
            anywhere=True,
            since="1.13",
        )


def _ternary(name: str, first: torch.dtype) -> Any:
    form = TERNARY[name]

    def act(p: torch.Tensor, q: torch.Tensor, r: torch.Tensor, host: Host) -> Any:
        x, answers = _values(p, first), {}
        for second in DTYPES:
            y, z, elements = _values(q, second), _values(r, second), _values(host.view, second)
            answers[short(second)] = [
                attempt(lambda y=y, z=z, number=number, o=o: form(x, y, z, number, o))
                for number, o in ((2, y[1, 1]), (1.5, elements[4]))
            ]
        return answers, attempt(lambda: form(x, _values(q, torch.float32), _values(r, first), 3, x[1, 2]))

    return act


for _name in TERNARY:
    for _dtype in DTYPES:
        cases.add(
            f"promotion-{_name}-{short(_dtype)}",
            _ternary(_name, _dtype),
            make=lambda d: (
                d.integers(1, 7, 6, 5),
                d.integers(1, 7, 6, 5),
                d.integers(1, 7, 6, 5),
                Host(d.integers(1, 7, 5)),
            ),
            terms=30,
            states=("fresh",),
            anywhere=True,
            since="1.13",
        )
