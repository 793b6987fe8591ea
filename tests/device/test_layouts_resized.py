"""Images resized between many sizes, up and down, in each mode, with gradients."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import backward, leaf

cases = Cases("layouts")
_SIZES = (1, 2, 3, 5, 7, 8, 11, 13, 20)


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0


def _is_settled(size: int, to: int, half: Fraction) -> bool:
    """Say whether no place lies where float32 and float64 may choose another neighbour, there or back."""
    scale = Fraction(size, to)
    exact = _is_power(scale.denominator) and _is_power(scale.numerator)
    return exact or all(((place + half) * scale).denominator != 1 for place in range(0 if half else 1, to))


_PLAIN = tuple((size, to) for size in _SIZES for to in _SIZES if size != to)
_NEAREST = tuple(pair for pair in _PLAIN if _is_settled(*pair, Fraction(0)))
_EXACT = tuple(pair for pair in _PLAIN if _is_settled(*pair, Fraction(1, 2)))
_MODES: dict[str, tuple[tuple[tuple[int, int], ...], dict[str, Any]]] = {
    "nearest": (_NEAREST, {"mode": "nearest"}),
    "nearest-exact": (_EXACT, {"mode": "nearest-exact"}),
    "bilinear": (_PLAIN, {"mode": "bilinear"}),
    "corners": (_PLAIN, {"mode": "bilinear", "align_corners": True}),
    "bicubic": (_PLAIN, {"mode": "bicubic"}),
    "antialias": (_PLAIN, {"mode": "bilinear", "antialias": True}),
    "area": (_PLAIN, {"mode": "area"}),
}


def _resized(pairs: Any, options: dict[str, Any]) -> Any:
    def act(x: torch.Tensor, weight: torch.Tensor) -> Any:
        answers = {}
        for place, (size, to) in enumerate(pairs):
            # The other side goes through the pairs in another order.
            rows, height = pairs[(place * 5 + 3) % len(pairs)]
            start = leaf(x[:, :, :rows, :size])
            found = F.interpolate(start, (height, to), **options)
            answers[f"{rows}x{size}-{height}x{to}"] = backward(found * weight[:, :, :height, :to], start)
        return answers

    return act


def _lines(pairs: Any, options: dict[str, Any]) -> Any:
    def act(x: torch.Tensor, weight: torch.Tensor) -> Any:
        answers = {}
        for size, to in pairs:
            start = leaf(x[:, 0, :, :size])
            answers[f"{size}-{to}"] = backward(F.interpolate(start, to, **options) * weight[:, 0, :1, :to], start)
        return answers

    return act


for _name, (_pairs, _options) in _MODES.items():
    _line = {"bilinear": "linear", "nearest": "nearest", "nearest-exact": "nearest-exact", "area": "area"}.get(_name)
    _acts = {"image": _resized(_pairs, _options)}
    if _line:
        _acts["line"] = _lines(_pairs, {**_options, "mode": _line})
    for _what, _act in _acts.items():
        cases.add(
            f"layout-resized-{_name}-{_what}",
            _act,
            make=lambda d: (d.normal(2, 3, 20, 20), d.normal(2, 3, 20, 20)),
            terms=64,
            factor=16.0,
            floor=1.0,
            states=("fresh",),
            may_be_missing=True,
            since="2.0",
        )
