"""The comparison: float64 on the CPU is the truth, the bound follows from precision and accumulation length.

bound = max(c * eps * sqrt(K) * scale, 8 * the CPU's own error at the same dtype), scale = max |reference|.
Integers, bools, dtype, shape and the positions of NaN and infinity are exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, NamedTuple

import torch

CPU_MULTIPLE = 8.0
SMALL = 1024  # elements: below it a tensor costs what its calls cost
_BORDER = 8.0  # of a dtype's eps, about its largest number


class Mismatch(AssertionError):
    """The device's answer is not the reference's."""

    def __init__(self, message: str, error: Error | None = None) -> None:
        super().__init__(message)
        self.error = error


@dataclass(frozen=True)
class Error:
    """How far an answer is off: absolute, relative to the reference's scale, and what was allowed."""

    max_abs: float = 0.0
    max_rel_scaled: float = 0.0
    bound: float = 0.0

    def as_json(self) -> dict[str, float]:
        """Return the error for the outcome line."""
        return {"max_abs": self.max_abs, "max_rel_scaled": self.max_rel_scaled, "bound": self.bound}


class Leaf(NamedTuple):  # a frozen dataclass costs three times as much to make, and there are millions
    """One answer, read back to the host, with what it was on its device."""

    path: str
    value: Any
    device: str = ""
    stride: tuple[int, ...] = ()


def read_back(outputs: Any, path: str = "out") -> list[Leaf]:
    """Return the leaves of nested outputs, tensors copied to the host; call it inside the run."""
    if isinstance(outputs, torch.Tensor):
        plain = outputs.detach() if outputs.requires_grad else outputs
        return [Leaf(path, plain.cpu(), outputs.device.type, outputs.stride())]
    if isinstance(outputs, (tuple, list)):
        return [leaf for index, item in enumerate(outputs) for leaf in read_back(item, f"{path}[{index}]")]
    if isinstance(outputs, dict):
        return [leaf for key, item in outputs.items() for leaf in read_back(item, f"{path}.{key}")]
    return [Leaf(path, outputs)]


def kept(leaves: list[Leaf]) -> list[Leaf]:
    """Return the leaves as no later run can change them: what lay on the host may share memory, so it is copied."""
    return [Leaf(one[0], one[1].clone(), *one[2:]) if one.device == "cpu" else one for one in leaves]


def compare_leaf(
    actual: Leaf,
    reference: Leaf,
    same: Callable[[], Leaf | None],
    *,
    terms: int,
    factor: float,
    floor: float = 0.0,
) -> Error:
    """Return the error of one answer; raise Mismatch where it is out of bounds."""
    if not isinstance(reference.value, torch.Tensor):
        return _compare_plain(actual, reference)
    got, want = actual.value, reference.value
    if not isinstance(got, torch.Tensor) or got.shape != want.shape:
        shape = tuple(got.shape) if isinstance(got, torch.Tensor) else type(got).__name__
        raise Mismatch(f"{actual.path}: shape {shape}, the reference has {tuple(want.shape)}")
    if not (got.dtype.is_floating_point or got.dtype.is_complex):
        return _compare_exactly(actual, reference)
    limits = torch.finfo(got.dtype)
    off, scale = _difference(actual.path, got, want)
    # Below its least normal number a dtype has no finer step: 6e-8 in float16.
    bound = factor * limits.eps * math.sqrt(terms) * max(scale, floor, limits.tiny)
    if off > bound:
        own = same()
        if own is not None and isinstance(own.value, torch.Tensor) and own.value.dtype == got.dtype:
            bound = max(bound, CPU_MULTIPLE * _difference(own.path, own.value, want)[0])
    error = Error(off, off / scale if scale else 0.0, bound)
    if off > bound or math.isinf(
        bound
    ):  # a bound that everything keeps says nothing: the reference is none for this dtype
        raise Mismatch(
            f"{actual.path}: off by {off:.4g} ({error.max_rel_scaled:.3g} of the scale {scale:.4g}), "
            f"allowed {bound:.3g} ({got.dtype}, {terms} terms)",
            error,
        )
    return error


def bits_differ(first: Leaf, second: Leaf) -> bool:
    """Say whether two answers to the same call differ; NaN equals NaN."""
    if not isinstance(first.value, torch.Tensor):
        return bool(first.value != second.value and first.value == first.value)
    one, two = first.value, second.value
    if one.shape != two.shape or one.dtype != two.dtype:
        return True
    if torch.equal(one, two):  # the usual case: no NaN either
        return False
    different = one.ne(two)
    if one.dtype.is_floating_point or one.dtype.is_complex:
        different = different & ~(torch.isnan(one) & torch.isnan(two))
    return bool(different.any())


def _compare_plain(actual: Leaf, reference: Leaf) -> Error:
    got, want = actual.value, reference.value
    if isinstance(want, float) and isinstance(got, float):
        off = 0.0 if got == want or (math.isnan(got) and math.isnan(want)) else abs(got - want)
        # A Python float came out of a tensor of unknown dtype; float32 is what the suite reads with .item().
        bound = 64 * torch.finfo(torch.float32).eps * abs(want)
        if off and not off <= bound:
            raise Mismatch(f"{actual.path}: {got!r}, the reference has {want!r}", Error(off, 0.0, bound))
        return Error(off, 0.0, bound)
    are_nan = not isinstance(got, torch.Tensor) and got != got and want != want
    if isinstance(got, torch.Tensor) or (got != want and not are_nan):
        raise Mismatch(f"{actual.path}: {got!r}, the reference has {want!r}")
    return Error()


def _compare_exactly(actual: Leaf, reference: Leaf) -> Error:
    got, want = actual.value, reference.value
    if got.dtype != want.dtype:
        raise Mismatch(f"{actual.path}: dtype {got.dtype}, the reference has {want.dtype}")
    if torch.equal(got, want):
        return Error()
    wrong = got.ne(want)
    count = int(wrong.sum())
    if count:
        first = tuple(int(index) for index in wrong.nonzero()[0])
        raise Mismatch(
            f"{actual.path}: {count} of {want.numel()} elements wrong, first at {first}: "
            f"{got[first].item()}, the reference has {want[first].item()}"
        )
    return Error()


def _difference(path: str, got: torch.Tensor, want: torch.Tensor) -> tuple[float, float]:
    """Return (max |got - want|, max |want|) over finite places; raise where NaN or infinity lie elsewhere."""
    if got.numel() == 0:
        return 0.0, 0.0
    if got.dtype.is_complex:
        got, want = torch.view_as_real(got.resolve_conj()), torch.view_as_real(want.resolve_conj())
    truth = want.double()
    gap = got - truth  # in float64
    off = largest(gap)
    if off == 0.0:  # copies and bases that nobody wrote to: the scale says nothing
        return 0.0, 0.0
    if math.isfinite(off):  # the usual case: nothing is NaN or infinite
        return off, largest(truth)
    if not torch.equal(torch.isnan(got), torch.isnan(want)):
        raise Mismatch(
            f"{path}: NaN at other places: {int(torch.isnan(got).sum())}, expected {int(torch.isnan(want).sum())}"
        )
    rounded = want.to(got.dtype)  # what overflows in the device's dtype is infinite there too
    infinite, answered = torch.isinf(rounded), torch.isinf(got)
    if not torch.equal(answered, infinite) or not torch.equal(got[infinite], rounded[infinite]):
        # At the end of the range rounding alone decides what overflows.
        limits = torch.finfo(got.dtype)
        is_border = (truth.abs() / limits.max - 1).abs() <= _BORDER * limits.eps
        wrong = (answered != infinite) | (infinite & (got != rounded))
        if bool((wrong & ~(is_border & (got.sign() == truth.sign()))).any()):
            raise Mismatch(f"{path}: infinity at other places")
    finite = torch.isfinite(truth) & ~infinite & ~answered
    if not bool(finite.any()):
        return 0.0, 0.0
    return largest(gap[finite]), largest(truth[finite])


def is_far(one: Any, other: Any) -> bool:
    """Say whether two answers of one shape are a quarter of their scale apart, or NaN at other places.

    No rounding does that.
    """
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor) or one.shape != other.shape:
        return False
    try:
        off, scale = _difference("", one, other)
    except Mismatch:
        return True
    return off > scale / 4


def largest(x: torch.Tensor) -> float:
    """Return max |x|, NaN where one is: small tensors by one call, large ones in one pass."""
    if x.numel() < SMALL or x.is_complex():
        return float(torch.linalg.vector_norm(x, math.inf))
    low, high = torch.aminmax(x)
    return max(-float(low), float(high))


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
