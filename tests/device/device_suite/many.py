"""The comparison of a case's many small answers in one pass: most are plainly right, and there are millions."""

from __future__ import annotations

import math
from functools import partial
from typing import Callable

import torch

from .compare import SMALL, Error, Leaf, compare_leaf, largest

_FEW = 8  # answers: below it one pass costs more than it saves


def compare_leaves(
    pairs: list[tuple[Leaf, Leaf]],
    own: Callable[[str], Leaf | None],
    *,
    terms: int,
    factor: float,
    floor: float = 0.0,
) -> Error:
    """Return the largest error of answers beside their references; raise Mismatch where one is out of bounds.

    Args:
        own: gives the CPU's answer of the same dtype at a path.
    """
    worst = Error()
    small = [number for number, pair in enumerate(pairs) if _is_small(*pair)]
    measured = dict(zip(small, _distances([pairs[number] for number in small])))
    for number, (got, want) in enumerate(pairs):
        error = None
        if number in measured:
            off, scale = measured[number]
            bound = factor * torch.finfo(got.value.dtype).eps * math.sqrt(terms) * max(scale, floor)
            if off <= bound:
                if not off:
                    continue
                error = Error(off, off / scale if scale else 0.0, bound)
        if error is None:
            error = compare_leaf(got, want, partial(own, want.path), terms=terms, factor=factor, floor=floor)
        if error.max_rel_scaled > worst.max_rel_scaled:
            worst = error
    return worst


def _is_small(got: Leaf, want: Leaf) -> bool:
    one, other = got.value, want.value
    return (
        isinstance(one, torch.Tensor)
        and isinstance(other, torch.Tensor)
        and (one.is_floating_point() or one.is_complex())
        and one.shape == other.shape
        and one.is_complex() == other.is_complex()
        and 0 < one.numel() < SMALL
    )


def _distances(pairs: list[tuple[Leaf, Leaf]]) -> list[tuple[float, float]]:
    """Return (max |got - want|, max |want|) of each; none where one is infinite or NaN anywhere."""
    if len(pairs) < _FEW:
        return []
    answers, truths = [_line(got.value) for got, _ in pairs], [_line(want.value).double() for _, want in pairs]
    truth = torch.cat(truths)
    gap = torch.cat([one.double() for one in answers]) - truth
    if not math.isfinite(largest(gap)):
        return []
    lengths = torch.tensor([one.numel() for one in truths])
    offs, scales = (torch.segment_reduce(part.abs(), "max", lengths=lengths).tolist() for part in (gap, truth))
    return list(zip(offs, scales))


def _line(x: torch.Tensor) -> torch.Tensor:
    return (torch.view_as_real(x) if x.is_complex() else x).reshape(-1)
