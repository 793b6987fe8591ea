"""Asks rows: the reference in float64 once, the device once, one comparison each."""

from __future__ import annotations

import contextlib
import math
from typing import Any, Callable, Iterator

import torch

from ..answers import says_missing
from ..compare import Error, Leaf, Mismatch, compare_leaf, is_far, largest
from ..states import Refused
from .drawing import Context, Placed, narrowed
from .program import program
from .spec import DRAWN, HOMES, Row, Spec, spellings

# Sums are accumulated in float32 or wider whatever the dtype: a longer one costs half precision next to nothing.
_MOST_TERMS = {torch.float16: 4, torch.bfloat16: 4}
_MOST_FACTOR = {torch.float16: 16.0, torch.bfloat16: 6.0}
_KEPT_ELEMENTS = 5_000
# The harness asks the same rows under hundreds of plants: it puts a dict here, and small references are kept.
KEPT: dict[Any, Any] | None = None


class Gap(Exception):
    """This torch or this back end does not have what a row asks."""


def ask_rows(spec: Spec, rows: list[Row], bench: Any) -> Error:
    """Return the largest error over some rows of one operator.

    Raises:
        Mismatch: a row is answered wrongly; the message is the program of the first, and the numbers of the others.
        Refused: no row could be asked; the message says why.
    """
    with _float64_by_default():
        truths = [_truth(spec, row, bench) for row in rows]
    asked = [(row, truth, _drawn(spec, row, truth)) for row, truth in zip(rows, truths) if not isinstance(truth, str)]
    answers = []
    run = bench.device_run()
    run.seed(bench.seed)
    with run:
        for row, _, drawn in asked:
            try:
                answers.append(_read(perform(spec, row, run, *drawn)))
            except Exception as raised:
                answers.append(raised)
    return _judge_all(spec, bench, [(row, truth, answer) for (row, truth, _), answer in zip(asked, answers)], truths)


def _judge_all(spec: Spec, bench: Any, asked: list[Any], truths: list[Any]) -> Error:
    worst, wrong = Error(), []
    gaps = [truth for truth in truths if isinstance(truth, str)]
    for row, truth, answer in asked:
        try:
            error = judge(spec, row, bench, truth, answer)
            worst = error if error.max_rel_scaled > worst.max_rel_scaled else worst
        except Gap as gap:
            gaps.append(str(gap))
        except Mismatch as mismatch:
            wrong.append((row, mismatch))
    if wrong:
        row, first = wrong[0]
        also = f"\nand rows {', '.join(one.digits for one, _ in wrong[1:])}" if wrong[1:] else ""
        raise Mismatch(f"row {row.digits}: {first}\n{program(spec, row)}{also}", first.error)
    if len(gaps) == len(truths):
        raise Refused(gaps[0] if gaps else "no row")
    return worst


def judge(spec: Spec, row: Row, bench: Any, truth: Any, answer: Any) -> Error:
    """Return the error of one answer: within bounds of float64, or of the CPU in the row's own dtype.

    The second opinion is for operators that round between their parts, and for what CPU builds do by design.
    """
    if isinstance(answer, Exception):
        if says_missing(answer) and bench.device.type != "cpu":
            raise Gap(f"not on this device: {answer}")
        _own(spec, row, bench, truth)  # what this torch's CPU refuses too is a gap
        raise Mismatch(f"raised {type(answer).__name__}: {answer}")
    quick = _quick(spec, row, bench, truth, answer)
    if quick is not None:
        return quick
    worst = Error()
    if len(answer) != len(truth.answers):
        raise Mismatch(f"{len(answer)} answers, the CPU gives {len(truth.answers)}")
    for number, (got, want) in enumerate(zip(answer, truth.answers)):
        path = f"answer {number}"

        def own(path: str = path, number: int = number) -> Leaf:
            return Leaf(path, _own(spec, row, bench, truth)[number][0])

        _check_form(path, row, bench, got, want, own)
        worst = max(worst, _leaf(spec, row, Leaf(path, got[0]), want, own), key=lambda one: one.max_rel_scaled)
    return worst


def _quick(spec: Spec, row: Row, bench: Any, truth: Any, answer: list[Any]) -> Error | None:
    """Return the error where every answer is plainly right, None where a closer look is needed."""
    if len(answer) != len(truth.answers):
        return None
    off = scale = bound = 0.0
    for (got, device), want in zip(answer, truth.answers):
        if not isinstance(got, torch.Tensor) or not isinstance(want, torch.Tensor):
            if got != want:
                return None
            continue
        if got.shape != want.shape or got.dtype != narrowed(want.dtype, row) or device != bench.device.type:
            return None
        if want.dtype not in (torch.float64, torch.complex128):
            if not torch.equal(got, want):
                return None
        elif got.numel():
            off, scale = largest(got - want), largest(want)
            bound = _bound(spec, row, got.dtype, scale)
            if not off <= bound or math.isinf(off):
                return None
    return Error(off, off / scale if scale else 0.0, bound)


def _bound(spec: Spec, row: Row, dtype: torch.dtype, scale: float) -> float:
    return _factor(spec, row) * torch.finfo(dtype).eps * math.sqrt(_terms(spec, row)) * max(scale, _floor(spec, row))


def _factor(spec: Spec, row: Row) -> float:
    return min(spec.factor, _MOST_FACTOR.get(row.levels["@dtype"], spec.factor))


def _floor(spec: Spec, row: Row) -> float:
    return max(spec.floor, spec.wide_floor) if row.levels["@values"] == "wide" else spec.floor


def _terms(spec: Spec, row: Row) -> int:
    count = math.prod(spec.shapes[row.levels["@size"]]) if spec.terms == "all" else spec.terms
    return int(min(max(count, 1), _MOST_TERMS.get(row.levels["@dtype"], count + 1)))


def _check_form(path: str, row: Row, bench: Any, got: Any, want: Any, own: Callable[[], Leaf]) -> None:
    value, device = got
    if not isinstance(value, torch.Tensor) or not isinstance(want, torch.Tensor):
        return
    if device != bench.device.type:
        raise Mismatch(f"{path}: lies on {device}, not on {bench.device.type}")
    if value.dtype != narrowed(want.dtype, row) and value.dtype != own().value.dtype:
        raise Mismatch(f"{path}: dtype {value.dtype}, the CPU gives {own().value.dtype}")


def _leaf(spec: Spec, row: Row, got: Leaf, want: Any, own: Callable[[], Leaf]) -> Error:
    """Return the error of one answer; the CPU's own is asked only where float64's is far."""
    bounds: Any = {"terms": _terms(spec, row), "factor": _factor(spec, row), "floor": _floor(spec, row)}

    def opinion() -> Leaf | None:
        """Some CPU kernels write an out= that is not dense as if it were: that is no measure of rounding."""
        mine = own()
        return None if row.levels["@form"] == "out" and is_far(mine.value, want) else mine

    try:
        return compare_leaf(got, Leaf(got.path, want), opinion, **bounds)
    except Mismatch as wrong:
        try:
            return compare_leaf(got, own(), own, **bounds)
        except Mismatch:
            raise wrong from None


class Truth:
    """The reference's answers to a row, and the forms of what is to be written or derived."""

    def __init__(self, answers: list[Any], forms: list[Any]) -> None:
        self.answers, self.forms = answers, forms
        self.own: Any = None


def _truth(spec: Spec, row: Row, bench: Any) -> Truth | str:
    """Return the reference's answers, or why there are none."""
    key = spec.name, row.digits
    if KEPT is not None and key in KEPT:
        return KEPT[key]  # type: ignore[no-any-return]
    run = bench.reference()
    try:
        found: Any = _reference(spec, row, run)
        small = sum(one.numel() for one in found.answers if isinstance(one, torch.Tensor)) < _KEPT_ELEMENTS
    except NameError:  # a mistake in the case itself, no refusal
        raise
    except Exception as raised:
        found, small = f"the CPU raises {type(raised).__name__}: {raised}", True
    if KEPT is not None and small:
        KEPT[key] = found
    return found  # type: ignore[no-any-return]


def _reference(spec: Spec, row: Row, run: Any) -> Truth:
    context = Context(spec, row, precise=True)
    bases, form = context.bases(), row.levels["@form"]
    if form in ("call", "inplace"):
        return Truth(perform(spec, row, run, bases, []), [])
    call = Row(row.digits, row.number, {**row.levels, "@form": "call"})
    results = [one for one in perform(spec, call, run, bases, []) if isinstance(one, torch.Tensor)]
    if form == "grad":
        results = [one for one in results if one.is_floating_point() or one.is_complex()]
    forms = [(tuple(one.shape), narrowed(one.dtype, row)) for one in results]
    places = context.places(forms)
    wide = [(base.to(result.dtype), layout, shape) for (base, layout, shape), result in zip(places, results)]
    if form == "grad":
        return Truth(perform(spec, row, run, bases, wide), forms)
    for (base, layout, shape), result in zip(wide, results):
        if shape == tuple(result.shape):
            layout.cut(base, shape).copy_(result)
    written = [base if shape == tuple(result.shape) else result for (base, _, shape), result in zip(wide, results)]
    return Truth(written, forms)


def _drawn(spec: Spec, row: Row, truth: Truth) -> tuple[list[Placed], list[Placed]]:
    context = Context(spec, row)
    return context.bases(), context.places(truth.forms) if truth.forms else []


def _own(spec: Spec, row: Row, bench: Any, truth: Truth) -> list[Any]:
    """Return the CPU's answers in the row's own dtype, without any plant; raise Gap where it refuses."""
    if truth.own is None:
        drawn = _drawn(spec, row, truth)
        run = bench.same()
        run.seed(bench.seed)
        try:
            truth.own = _read(perform(spec, row, run, *drawn))
        except Exception as raised:
            raise Gap(f"this torch's CPU raises {type(raised).__name__}: {raised}") from raised
    return truth.own  # type: ignore[no-any-return]


def _read(answers: list[Any]) -> list[tuple[Any, str]]:
    """Return each answer on the host, with where it lay."""
    return [(one.detach().cpu(), one.device.type) if isinstance(one, torch.Tensor) else (one, "") for one in answers]


def perform(spec: Spec, row: Row, run: Any, bases: list[Placed], places: list[Placed]) -> list[Any]:
    """Return what a row answers on a run: move, cut, call; an in-place call and out= answer with their whole base."""
    placed = _bring(run, bases)
    operands, args = [_taken(one, spec, run) for one in placed], row.args(run.cast)
    for key in DRAWN:
        args.pop(key, None)
    operands += [args.pop(key) for key in list(args) if key[0] == "_"]
    form = row.levels["@form"]
    function = target(spec, row)
    if form == "grad":
        return _derive(spec, function, operands, args, [_taken(one, spec, run) for one in _bring(run, places)])
    if form == "inplace":
        function(*operands, **args)
        return [placed[0][0]]
    if form == "out":
        outs = _bring(run, places)
        views = tuple(_cut(one) for one in outs)
        function(*operands, **args, out=views[0] if len(views) == 1 else views)
        return [view if one[2] == (0,) else one[0] for view, one in zip(views, outs)]
    return flatten(_finished(spec, function(*operands, **args)))


def target(spec: Spec, row: Row) -> Any:
    """Return the spelling that a row asks, looked up now: a plant may have replaced it."""
    if spec.act is not None:
        return spec.act
    every, form = spellings(spec.name, spec.paths), row.levels["@form"]
    if form == "inplace":
        every = tuple(
            (home, name + "_") for home, name in (*every, ("aten", spec.name)) if hasattr(HOMES[home], name + "_")
        )
    elif form == "out":
        every = tuple((home, name) for home, name in every if home not in ("Tensor", "F")) or (("aten", spec.name),)
    if not every:
        raise NotImplementedError(f"this torch has no {spec.name}")
    home, name = every[row.number % len(every)]
    return getattr(HOMES[home], name)


def _derive(spec: Spec, function: Any, operands: list[Any], args: Any, grads: list[Any]) -> list[Any]:
    starts = [one.detach().requires_grad_() if _can_want(one) else one for one in operands]
    results = [one for one in flatten(_finished(spec, function(*starts, **args))) if _can_want(one)]
    pairs = [(result, grad) for result, grad in zip(results, grads) if result.requires_grad]
    if not pairs:
        raise NotImplementedError("not implemented: no gradient")
    leaves = [one for one in starts if isinstance(one, torch.Tensor) and one.requires_grad]
    found = torch.autograd.grad([one for one, _ in pairs], leaves, [one for _, one in pairs], allow_unused=True)
    # Autograd itself demands that a gradient lies where its operand does: that of a number of the host is there.
    return [one.to(pairs[0][0].device) for one in found if one is not None]


def _can_want(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _finished(spec: Spec, answer: Any) -> Any:
    return answer if spec.finish is None else spec.finish(answer)


def flatten(answer: Any) -> list[Any]:
    """Return the parts of nested tuples and lists, in order."""
    if isinstance(answer, (tuple, list)):
        return [one for part in answer for one in flatten(part)]
    return [answer]


def _bring(run: Any, placed: list[Placed]) -> list[Placed]:
    return [(_moved(run, base), layout, shape) for base, layout, shape in placed]


def _moved(run: Any, base: Any) -> Any:
    if isinstance(base, (tuple, list)):
        return type(base)(_moved(run, one) for one in base)
    return base.to(run.device) if isinstance(base, torch.Tensor) else base


def _cut(placed: Placed) -> Any:
    base, layout, shape = placed
    return base if layout is None else layout.cut(base, shape)


def _taken(placed: Placed, spec: Spec, run: Any) -> Any:
    view = _cut(placed)
    is_dense = spec.dense_on_cpu and run.device.type == "cpu" and isinstance(view, torch.Tensor)
    return view.contiguous() if is_dense else view


@contextlib.contextmanager
def _float64_by_default() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
