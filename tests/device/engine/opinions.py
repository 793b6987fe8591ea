"""Further references, computed after a mismatch alone: does the operator leave this answer open?

The CPU computes again with operands, and with fractional options, that differ by their last place. An answer that lies
where these lie is right: a border was met, or a matrix is nearly singular. So is another place of an equal number.
"""

from __future__ import annotations

import math
from typing import Any, Callable

import torch

from . import exclusions
from .reference import Truth, read
from .transformation import Call, Transformation

# Of the operands' last place, both ways.
_STEPS = (1.0, -1.0, 4.0)
_BROADER, _ROUNDINGS = 4.0, 16.0
# Of a fractional option: a scale of 1/3 is none that a computer holds.
_OPTION = 1e-6

Change = Callable[[torch.Tensor], torch.Tensor]


def leave_open(call: Call, truth: Truth, transformation: Transformation, bench: Any, answer: Any) -> bool:
    """Say whether the device's answer is one that the CPU gives, or nearly, where its operands move by so little."""
    if isinstance(answer, Exception):
        return False
    chosen_from = [x for x in transformation.chosen_from(call, bench.same()) if isinstance(x, torch.Tensor)]
    if call.levels["@form"] == "grad" and exclusions.chooses(call) and any(map(_has_equals, chosen_from)):
        return True  # of rounded numbers some are equal: whose gradient it is, is open
    moved = [_Moved(call, _nudged(units)) for units in (0.0, *_STEPS)]
    moved += [_Moved(_with_options(call, share), _nudged(0.0)) for share in (_OPTION, -_OPTION)]
    found = [_answers(one, truth, transformation, bench) for one in moved]
    own = found[0]
    if own is None or len(own) != len(answer):
        return False
    others = [one for one in found if one is not None and len(one) == len(own)]
    written = call.places(truth) if call.levels["@form"] == "out" else []
    return all(
        _is_among(got, [one[number][0] for one in others])
        or (
            isinstance(got, torch.Tensor)
            and _is_beside_alike(got, own[number][0], written[number : number + 1])
            and any(_ties(x, *_seen(got, own[number][0], written[number : number + 1])) for x in chosen_from)
        )
        for number, (got, _) in enumerate(answer)
    )


def _with_options(call: Call, share: float) -> Call:
    """Return the call with fractional options that are moved."""
    for name, level in call.levels.items():
        if name[0] != "@":
            call = call.with_level(name, _moved_option(level, share))
    return call


def _moved_option(level: Any, share: float) -> Any:
    if isinstance(level, tuple):
        return tuple(_moved_option(one, share) for one in level)
    return level * (1 + share) if isinstance(level, float) and level != 1.0 else level


def _answers(call: Any, truth: Truth, transformation: Transformation, bench: Any) -> Any:
    run = bench.same()
    run.seed(bench.seed)
    try:
        return read(transformation.perform(call, run, truth))
    except Exception:
        return None


class _Moved:
    """A call whose operands are moved."""

    def __init__(self, call: Call, change: Change) -> None:
        self._call, self._change = call, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def changed(self, **levels: Any) -> Any:
        return _Moved(self._call.changed(**levels), self._change)

    def bases(self, run: Any) -> list[Any]:
        return [(self._of(base), layout, shape) for base, layout, shape in self._call.bases(run)]

    def _of(self, base: Any) -> Any:
        if isinstance(base, (tuple, list)):
            return type(base)(self._of(one) for one in base)
        return self._change(base) if isinstance(base, torch.Tensor) and base.numel() else base


def _nudged(units: float) -> Change:
    def nudged(x: torch.Tensor) -> torch.Tensor:
        if not x.is_floating_point():
            return x
        pattern = (torch.arange(x.numel()) % 3 - 1).reshape(x.shape)
        return (x.double() * (1 + units * torch.finfo(x.dtype).eps * pattern)).to(x.dtype)

    return nudged


def _has_equals(x: torch.Tensor) -> bool:
    """Say whether two numbers are equal along any dimension.

    >>> _has_equals(torch.tensor([[1.0, 2.0], [1.0, 3.0]])), _has_equals(torch.arange(3))
    (True, False)
    """
    return any(
        bool((line[1:] == line[:-1]).any()) for line in (x.sort(dim)[0].movedim(dim, 0) for dim in range(x.dim()))
    )


def _seen(got: torch.Tensor, own: torch.Tensor, written: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the parts of two answers that an out= shows; of any other answer, all of it."""
    for _, layout, shape in written:
        if shape != (0,) and got.shape == own.shape:
            return layout.cut(got, shape), layout.cut(own, shape)
    return got, own


def _is_beside_alike(got: torch.Tensor, own: torch.Tensor, written: list[Any]) -> bool:
    """Say whether two answers are alike where an out= does not show them."""
    if got.shape != own.shape or not written or written[0][2] == (0,):
        return True
    beside = torch.ones(got.shape, dtype=torch.bool)
    written[0][1].cut(beside, written[0][2]).fill_(False)
    return bool((got == own)[beside].all())


def _ties(x: torch.Tensor, got: torch.Tensor, own: torch.Tensor) -> bool:
    """Say whether two answers are places in `x` at which the numbers are equal.

    They are places along one of its dimensions, in all of it, or in its planes, as pooling counts them.
    """
    if got.dtype != torch.int64 or own.dtype != torch.int64 or got.shape != own.shape or not got.numel():
        return False
    planes = [
        (x.flatten(-n), [places.flatten(-n) for places in (got, own)], -1) for n in (2, 3) if x.dim() >= n <= got.dim()
    ]
    for line, places, dim in (
        *((x, [got, own], dim) for dim in range(x.dim())),
        (x.reshape(-1), [got, own], None),
        *planes,
    ):
        side = line.numel() if dim is None else line.shape[dim]
        if not (int(torch.stack(places).min()) >= 0 and int(torch.stack(places).max()) < side):
            continue
        try:
            one, two = (_numbers_at(line, dim, each) for each in places)
        except (IndexError, RuntimeError):  # not along this one
            continue
        if bool(((one == two) | ((one != one) & (two != two))).all()):
            return True
    return False


def _numbers_at(x: torch.Tensor, dim: int | None, places: torch.Tensor) -> torch.Tensor:
    if dim is None:
        return x[places]
    return x.gather(dim, places if places.dim() == x.dim() else places.unsqueeze(dim))


def _is_among(got: Any, others: list[Any]) -> bool:
    """Say whether each number lies where the CPU's answers lie, four times as far apart, but for rounding.

    The first of the others is what the CPU answers to the operands as they are.
    """
    own = others[0]
    if not isinstance(got, torch.Tensor) or not isinstance(own, torch.Tensor):
        return bool(got == own or (got != got and own != own))
    if (got.shape, got.dtype) != (own.shape, own.dtype):
        return False
    alike = [
        one for one in others if isinstance(one, torch.Tensor) and (one.shape, one.dtype) == (own.shape, own.dtype)
    ]
    if not got.numel():
        return True
    floating = got.dtype.is_floating_point or got.dtype.is_complex
    eps = torch.finfo(got.dtype).eps if floating else 0.0
    value, *rest = (_real(one) for one in (got, *alike))
    # Past the range, which part of a complex number is NaN, infinite or 0 depends on how its product is written down.
    is_open = ~rest[0].isfinite() if got.dtype.is_complex else torch.zeros((), dtype=torch.bool)
    every = torch.stack(rest)
    some, all_ = every.isnan().any(0), every.isnan().all(0)
    low, high = every.nan_to_num(math.inf, math.inf, -math.inf).min(0)[0], every.nan_to_num(-math.inf).max(0)[0]
    high = torch.maximum(high, torch.where(every == math.inf, every, -math.inf).max(0)[0])
    broader = _BROADER if floating else 0.0
    # Where all are one infinity, inf - inf is NaN: there is no slack.
    size = torch.maximum(low.abs(), high.abs())
    size = size.amax(-1, keepdim=True) if got.dtype.is_complex else size  # the smaller part is rounded as the larger
    slack = (broader * (high - low) + _ROUNDINGS * eps * size).nan_to_num(0.0)
    slack = slack + (torch.finfo(got.dtype).tiny if floating else 0.0)  # 1 / (1 + exp(89)) is 0, as exp(89) is infinite
    within = (value >= low - slack) & (value <= high + slack) & ~all_
    return bool((within | (some & ~all_) | (value.isnan() & all_) | is_open).all())  # some, not all: a singular point


def _real(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(x.resolve_conj()).double() if x.is_complex() else x.double()
