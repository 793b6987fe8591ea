"""Tables whose answers are compared with the CPU's own of the same dtypes: bit for bit, or within a share.

For what a reference in float64 cannot tell: one step of the dtype, where it overflows, and the sign of a zero.
"""

from __future__ import annotations

from typing import Any

import torch

from . import Cases
from .answers import Absent, attempt
from .compare import Leaf, kept, read_back
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
    found, wanted = (_answers(forms, bases, run) for run in (bench.device_run(), bench.same()))
    asked = {name: want for name, want in wanted.items() if not isinstance(want, Absent)}
    absent = {name for name in asked if isinstance(found[name], Absent)}
    if len(absent) == len(asked):
        raise Refused("no form has an answer here")
    gaps = {name for name in absent if found[name].missing and bench.device.type != "cpu"}
    wrong = [f"{name}: raised {found[name].kind}: {found[name].text}" for name in absent - gaps]
    for name, want in asked.items():
        told = "" if name in absent else _difference(found[name], want, bound, bench.device.type)
        wrong += [f"{name}{told}"] if told else []
    assert not wrong, f"{len(wrong)} of {len(asked)} forms differ from the CPU's answer: {'; '.join(wrong[:5])}"


def _answers(forms: dict[str, Any], bases: Any, run: Any) -> dict[str, Any]:
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
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        same = type(one) is type(other) and (one == other or (one != one and other != other))
        return "" if same else f"{one!r:.60}, not {other!r:.60}"
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return f"{one.dtype} {tuple(one.shape)}, not {other.dtype} {tuple(other.shape)}"
    if got.device != device:
        return f"lies on {got.device}"
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
