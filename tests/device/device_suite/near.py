"""Beside the CPU's own answers of the same dtypes, bit for bit or within a share of them.

For operands of which a reference in float64 would take too long, and for what it cannot tell: one step of the dtype,
where it overflows, and the sign of a zero.
"""

from __future__ import annotations

import math
from typing import Any, Callable

import torch

from . import Cases
from .answers import Absent, attempt
from .compare import Error, Leaf, Mismatch, kept, read_back
from .states import Refused

_Bound = tuple[float, "float | None"]


def add_beside(
    cases: Cases,
    name: str,
    forms: dict[str, Any],
    make: Any,
    share: float = 0.0,
    floor: float | None = None,
    **fields: Any,
) -> None:
    """Add one case that asks every form of a table and compares each with the CPU's own answer of the same dtypes.

    Args:
        make: operands from a source of numbers.
        share: of the largest number of an answer: how far each of its numbers may be off; 0 compares the bits
            (a NaN is a NaN, and -0 is not 0).
        floor: where given, each number is judged by its own size, or by this where it is smaller.
        fields: of the case, besides the usual.
    """
    cases.add(
        f"condition-limit-{name}",
        lambda bench: _asked(forms, make, (share, floor), bench),
        **{"check": True, "may_be_missing": True, **fields},
    )


def _asked(forms: dict[str, Any], make: Any, bound: _Bound, bench: Any) -> None:
    bases = make(bench.draw("beside"))
    found, wanted = (_each_answer(forms, bases, run) for run in (bench.device_run(), bench.same()))
    asked = {name: want for name, want in wanted.items() if not isinstance(want, Absent)}
    absent = {name for name in asked if isinstance(found[name], Absent)}
    gaps = {name for name in absent if found[name].missing and bench.device.type != "cpu"}
    if len(gaps) == len(asked):  # what is refused in other words is wrong, if it be all of them
        raise Refused("no form has an answer here")
    wrong = [f"{name}: raised {found[name].kind}: {found[name].text}" for name in absent - gaps]
    for name, want in asked.items():
        told = "" if name in absent else _difference(found[name], want, bound, bench.device.type)
        wrong += [f"{name}{told}"] if told else []
    assert not wrong, f"{len(wrong)} of {len(asked)} forms differ from the CPU's answer: {'; '.join(wrong[:5])}"


def _each_answer(forms: dict[str, Any], bases: Any, run: Any) -> dict[str, Any]:
    copies = run.copy(bases)
    with run:
        here = run.bring(copies)
        answers = {name: attempt(lambda form=form: read_back(form(*here), "")) for name, form in forms.items()}
    return {name: one if isinstance(one, Absent) else kept(one) for name, one in answers.items()}


def _difference(found: list[Leaf], wanted: list[Leaf], bound: _Bound, device: str) -> str:
    """Return how the leaves of one form differ; nothing where they do not."""
    if len(found) != len(wanted):
        return f": {len(found)} answers, not {len(wanted)}"
    for got, want in zip(found, wanted):
        told = _apart(got, want, bound, device)
        if told:
            return f"{got.path}: {told}"
    return ""


def _apart(got: Leaf, want: Leaf, bound: _Bound, device: str) -> str:
    one, other = got.value, want.value
    told = _form_told(got, want, device)
    if told or not isinstance(one, torch.Tensor):
        return told
    if one.dtype.is_complex:
        one, other = torch.view_as_real(one.resolve_conj()), torch.view_as_real(other.resolve_conj())
    if not one.dtype.is_floating_point:
        return "" if torch.equal(one, other) else _first(one != other, one, other)
    finite = other.isfinite()
    wrong = one.isnan() != other.isnan()
    wrong |= ~finite & ~other.isnan() & (one != other)
    share, floor = bound
    if share == 0.0:
        wrong |= ~other.isnan() & ((one != other) | (one.signbit() != other.signbit()))
    elif bool(finite.any()):
        size = other.abs().double()
        scale = size[finite].max() if floor is None else size.clamp(min=floor)
        wrong |= finite & ~((one.double() - other.double()).abs() <= share * scale)
    return _first(wrong, one, other) if bool(wrong.any()) else ""


def _first(wrong: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> str:
    place = tuple(int(i) for i in wrong.nonzero()[0])
    count = f"{int(wrong.sum())} of {wrong.numel()}"
    return f"{count} numbers, first at {place}: {one[place].item()!r}, not {other[place].item()!r}"


def demand_near(act: Callable[..., Any], operands: Any, bench: Any, share: float) -> Error:
    """Return the largest error over what an act answers of copies of some operands.

    Args:
        share: of the largest number of an answer: how far each of its numbers may be off.

    Raises:
        Mismatch: an answer is not there, lies elsewhere, has another form, or is further off.
    """
    found, wanted = (_answers(act, operands, run) for run in (bench.device_run(), bench.same()))
    if len(found) != len(wanted):
        raise Mismatch(f"{len(found)} answers, the CPU gives {len(wanted)}")
    errors = [_error(got, want, bench.device.type, share) for got, want in zip(found, wanted)]
    return max(errors, key=lambda one: one.max_rel_scaled, default=Error())


def _answers(act: Callable[..., Any], operands: Any, run: Any) -> list[Leaf]:
    copies = run.copy(operands)
    with run:
        leaves = read_back(act(*run.bring(copies)))
    return kept(leaves)  # outside of the run: it is no call of the case


def _error(got: Leaf, want: Leaf, device: str, share: float) -> Error:
    one, other = got.value, want.value
    told = _form_told(got, want, device)
    if told:
        raise Mismatch(f"{got.path}: {told}")
    if not isinstance(one, torch.Tensor) or not one.numel():
        return Error()
    off, scale = (float(x.abs().max()) for x in (one.double() - other.double(), other.double()))
    error = Error(off, off / scale if scale else 0.0, share * scale)
    if not off <= error.bound or math.isinf(off):
        raise Mismatch(f"{got.path}: off by {off:.3g}, the CPU's largest number is {scale:.3g}", error)
    return error


def _form_told(got: Leaf, want: Leaf, device: str) -> str:
    """Return how an answer differs in what it is: no tensor or another value, its dtype, its shape, where it lies."""
    one, other = got.value, want.value
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        same = type(one) is type(other) and (one == other or (one != one and other != other))
        return "" if same else f"{one!r:.80}, the CPU gives {other!r:.80}"
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return f"{one.dtype} {tuple(one.shape)}, the CPU gives {other.dtype} {tuple(other.shape)}"
    return "" if got.device == device else f"lies on {got.device}, not on {device}"
