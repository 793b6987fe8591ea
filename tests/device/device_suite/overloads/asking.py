"""Asks all calls of one overload in one run of the device, beside float64 and the CPU in the same dtypes."""

from __future__ import annotations

import functools
import json
import math
from functools import partial
from pathlib import Path
from typing import Any, List, Tuple

import torch

from ..answers import says_missing
from ..cases import Cases
from ..compare import Error, Leaf, Mismatch, compare_leaf
from ..states import Refused
from .described import Drawn, dtype_of, overload, shape_of, texts
from .forwards import choices_of

CALLS = Path(__file__).parent / "calls.json"
# Made when the wider rules had called overloads that no case called before; asked of the torch that they are asked of.
MORE_CALLS, _MORE_SINCE = Path(__file__).parent / "more_calls.json", "2.13"
_HALVES = (torch.float16, torch.bfloat16)
_FACTOR = 64.0
_NOT_COMPARED = (torch.complex32, *(getattr(torch, name) for name in dir(torch) if name.startswith("float8_")))
# Answers that are kept for the gradient, by each back end in its own form and dtype, and in part never written. With
# out= they are the last two operands besides.
_KEPT_BY_NAME: dict[str, tuple[slice, ...]] = {
    "_ctc_loss": (slice(1, None),),
    "_embedding_bag": (slice(1, None),),
    "_embedding_bag_forward_only": (slice(1, None),),
    "_batch_norm_with_update": (slice(1, 4),),
    "_native_batch_norm_legit": (slice(1, 3),),
    "_native_batch_norm_legit.out": (slice(1, 3), slice(-2, None)),
    "_native_batch_norm_legit.no_stats_out": (slice(1, 3), slice(-2, None)),
}


@functools.lru_cache(maxsize=None)
def stored_calls(path: Path = CALLS) -> dict[str, list[Any]]:
    """Return the calls of each overload."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}  # type: ignore[no-any-return]


def add_overloads(cases: Cases) -> None:
    """Register the cases: `overload-<name>`, all calls of one overload in one run, and `overload-<name>-more`."""
    fields: dict[str, Any] = {"check": True, "may_be_missing": True}
    for path, ending, since in ((CALLS, "", None), (MORE_CALLS, "-more", _MORE_SINCE)):
        for name, calls in sorted(stored_calls(path).items()):
            cases.add(f"overload-{name}{ending}", partial(_asked, name, calls), since=since, **fields)


def _asked(name: str, calls: list[Any], bench: Any) -> Any:
    return ask_calls(name, calls, bench)


def ask_calls(name: str, calls: list[Any], bench: Any) -> Error:
    """Return the largest error over some calls of one overload.

    Raises:
        Mismatch: a call is answered wrongly; the message shows the first, and how many others.
        Refused: no call could be asked; the message says why.
    """
    func = overload(name)
    if func is None:
        raise Refused(f"this torch has no {name}")
    drawn = [Drawn(call, number, choices_of(name)) for number, call in enumerate(calls)]
    run = bench.device_run()
    copies = [_copies(one, run) for one in drawn]  # before the run: drawing is the host's work
    run.seed(bench.seed)
    with run:
        answers = [attempt_answers(func, one, run, copy) for one, copy in zip(drawn, copies)]
    return _judged(name, drawn, answers, bench)


def _copies(drawn: Drawn, run: Any) -> Any:
    try:
        return run.copy(drawn.bases)
    except Exception:  # this torch lacks a dtype: asking the call says so
        return None


def _judged(name: str, calls: list[Drawn], answers: list[Any], bench: Any) -> Error:
    worst, wrong, gaps = Error(), [], []
    for number, (drawn, answer) in enumerate(zip(calls, answers)):
        try:
            error = judge(overload(name), drawn, answer, bench)
            worst = error if error.max_rel_scaled > worst.max_rel_scaled else worst
        except Refused as gap:
            gaps.append(str(gap))
        except Mismatch as mismatch:
            wrong.append((number, mismatch))
    if wrong:
        number, first = wrong[0]
        also = f"\nand calls {', '.join(str(one) for one, _ in wrong[1:])}" if wrong[1:] else ""
        raise Mismatch(
            f"call {number}: {first}\ntorch.ops.aten.{name}: {json.dumps(calls[number].call)}{also}", first.error
        )
    if len(gaps) == len(calls):
        raise Refused(gaps[0] if gaps else "no call")
    return worst


def perform(func: Any, drawn: Drawn, run: Any, bases: list[torch.Tensor], *, dense: bool = False) -> list[Any]:
    """Return what a call answers to bases on a run's device, and the bases after it where it writes to them.

    `dense`: what it only reads is contiguous.
    """
    args, kwargs = drawn.arguments(bases, run.device, run.cast)
    if dense:
        args, kwargs = _densely(func, args, kwargs)
    results = wanted_answers(func, args, kwargs)
    return [*results, *bases] if func._schema.is_mutable else results


def is_plain(func: Any) -> bool:
    """Say whether what is called is an overload itself, not a gradient or a public function of it."""
    return isinstance(func, torch._ops.OpOverload)


@functools.lru_cache(maxsize=4096)
def _writes_all_the_same(func: Any) -> bool:
    """Say whether an overload writes to running statistics of which its schema does not speak."""
    return any("running" in argument.name for argument in func._schema.arguments)


class Answers(List[Tuple[Any, str]]):
    """What a call answers, each part with where it lay; `read`: what it was only to read, as it is now and as given."""

    read: tuple[list[torch.Tensor], list[torch.Tensor]] = ([], [])


def written_to(answers: Any) -> str:
    """Say which operand was only to be read and is not, bit by bit, what was given; an empty text where all are.

    Asked when the run is over: a plant, or whoever records what a case calls, has no part in the comparison.
    """
    for number, (now, before) in enumerate(zip(*answers.read)) if isinstance(answers, Answers) else ():
        is_same = now.dtype not in _NOT_COMPARED and torch.equal(now, before)
        if not is_same and not torch.equal(*(one.reshape(-1).view(torch.uint8) for one in (now, before))):
            return f"operand {number} was written to"
    return ""


def wanted_answers(func: Any, args: Any, kwargs: Any) -> list[Any]:
    """Return the parts of an answer, but for those that `output_mask` leaves out: a back end may give them too."""
    answer = func(*args, **kwargs)
    place = _place_of_the_mask(func)
    if place is not None and isinstance(answer, tuple):
        mask = args[place] if place < len(args) else kwargs["output_mask"]
        answer = [one for one, is_wanted in zip(answer, mask) if is_wanted]
    return flat_answers(answer)


@functools.lru_cache(maxsize=4096)
def _place_of_the_mask(func: Any) -> int | None:
    names = [one.name for one in func._schema.arguments]
    return names.index("output_mask") if "output_mask" in names else None


def _densely(func: Any, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments whose tensors are contiguous, but for those that the call writes to or gives views of."""
    free = {argument.name for argument in func._schema.arguments if argument.alias_info is None}

    def made(value: Any) -> Any:
        if isinstance(value, list):
            return [made(one) for one in value]
        return value.contiguous() if isinstance(value, torch.Tensor) else value

    named = [argument.name for argument in func._schema.arguments]
    return (
        [made(value) if name in free else value for name, value in zip(named, args)],
        {name: made(value) if name in free else value for name, value in kwargs.items()},
    )


def judge(func: Any, drawn: Drawn, answer: Any, bench: Any) -> Error:
    """Return the error of one answer: within bounds of float64, or of the CPU in the call's own dtypes.

    An answer that is the CPU's own to the last bit is right without float64, and has no error.
    """
    own = attempt_answers(func, drawn, _seeded(bench.same()))
    if isinstance(own, Exception):
        raise Refused(f"this torch's CPU raises {type(own).__name__}: {own}")
    if isinstance(answer, Exception):
        if says_missing(answer) and bench.device.type != "cpu":
            raise Refused(f"not on this device: {answer}")
        raise Mismatch(f"raised {type(answer).__name__}: {answer}")
    if told := written_to(answer):
        raise Mismatch(told)
    if _is_own(answer, own, bench):
        return Error()
    # Some functions of the CPU ignore the strides of what they read (native_group_norm_backward, the statistics of a
    # batch norm in half precision): the truth is what they answer to dense operands.
    truth = attempt_answers(func, drawn, _seeded(bench.reference()), dense=True)
    if isinstance(truth, Exception) or len(truth) != len(own):
        truth = own
    if len(answer) != len(own):
        raise Mismatch(f"{len(answer)} answers, the CPU gives {len(own)}")
    worst = Error()
    terms = _terms(drawn.call)
    kept = kept_places(func, len(own))
    for place, (got, mine, want) in enumerate(zip(answer, own, truth)):
        if place in kept:
            continue
        path = f"answer {place}"
        if got[1] != (bench.device.type if mine[1] else ""):
            raise Mismatch(f"{path}: lies on {got[1]}, not on {bench.device.type}")
        if isinstance(mine[0], torch.Tensor) and isinstance(got[0], torch.Tensor) and got[0].dtype != mine[0].dtype:
            raise Mismatch(f"{path}: dtype {got[0].dtype}, the CPU gives {mine[0].dtype}")
        error = _compared(Leaf(path, got[0]), Leaf(path, want[0]), Leaf(path, mine[0]), terms)
        worst = error if error.max_rel_scaled > worst.max_rel_scaled else worst
    return worst


def _is_own(answer: list[Any], own: list[Any], bench: Any) -> bool:
    """Say whether answers lie where they must and are the CPU's bit by bit; NaN is compared elsewhere."""
    return len(answer) == len(own) and all(
        got[1] == (bench.device.type if mine[1] else "") and _is_equal(got[0], mine[0])
        for got, mine in zip(answer, own)
    )


def _is_equal(got: Any, mine: Any) -> bool:
    if not isinstance(got, torch.Tensor) or not isinstance(mine, torch.Tensor):
        return type(got) is type(mine) and bool(got == mine)
    is_plain = got.layout == mine.layout == torch.strided and got.dtype != torch.complex32  # no torch compares that
    return is_plain and got.dtype == mine.dtype and bool(torch.equal(got, mine))


def kept_places(func: Any, count: int) -> set[int]:
    """Return the places among some answers of what is kept for the gradient; what answers its gradient keeps none."""
    if getattr(func, "derives", False):
        return set()
    packet = func._schema.name.split("::")[1]
    slices = _KEPT_BY_NAME.get(f"{packet}.{func._overloadname}", _KEPT_BY_NAME.get(packet, ()))
    return {place for one in slices for place in range(count)[one]}


def _compared(got: Leaf, want: Leaf, mine: Leaf, terms: int) -> Error:
    """Return the error against float64's answer; where the bound is missed, against the CPU's own."""
    bounds: Any = {"terms": terms, "factor": _FACTOR if terms > 4 else _FACTOR / 4, "floor": 0.0}
    whole = isinstance(mine.value, torch.Tensor) and not (mine.value.is_floating_point() or mine.value.is_complex())
    try:
        return compare_leaf(got, mine if whole else want, lambda: mine, **bounds)
    except Mismatch as wrong:
        try:
            return compare_leaf(got, mine, lambda: mine, **bounds)
        except Mismatch:
            raise wrong from None


def _terms(call: Any) -> int:
    """Return K of the bound: the elements of the largest operand; a few for half precision, which is summed wider."""
    every = texts(call)
    count = max((math.prod(shape_of(one)) for one in every), default=1)
    return min(max(count, 1), 4) if any(dtype_of(one) in _HALVES for one in every) else max(count, 1)


def _seeded(run: Any) -> Any:
    run.seed(0)
    return run


def flat_answers(answer: Any) -> list[Any]:
    """Return the parts of an answer, however it is nested; None is no part."""
    if isinstance(answer, (tuple, list)):
        return [one for part in answer for one in flat_answers(part)]
    return [] if answer is None else [answer]


def attempt_answers(
    func: Any, drawn: Drawn, run: Any, copies: list[torch.Tensor] | None = None, *, dense: bool = False
) -> Any:
    """Return what a call answers to copies of its tensors, read back to the host, or what it raises."""
    try:
        if copies is None:
            copies = drawn.bases if only_reads(func, run) else run.copy(drawn.bases)
        brought = run.bring(copies)
        answers = _read(perform(func, drawn, run, brought, dense=dense), copies)
        if run.tested and is_plain(func) and not func._schema.is_mutable and not _writes_all_the_same(func):
            answers.read = [one.cpu() for one in brought], drawn.bases
        return answers
    except Exception as raised:
        return raised


def only_reads(func: Any, run: Any) -> bool:
    """Say whether nothing writes to the operands, which need no copy then: the CPU, asked for a plain function."""
    return is_plain(func) and not func._schema.is_mutable and not run.tested and not run.precise


def _read(answers: list[Any], operands: list[torch.Tensor]) -> Answers:
    """Return each answer on the host, with where it lay; what is an operand's memory is copied: that may be written."""
    shared = {_memory(one) for one in operands} - {None}
    found = Answers()
    for one in answers:
        if isinstance(one, torch.Tensor):
            read = one.detach().cpu()
            read = read.resolve_conj().resolve_neg() if read.layout == torch.strided else read
            memory = _memory(read)
            found.append((read.clone() if memory is None or memory in shared else read, one.device.type))
        else:
            found.append((one, ""))
    return found


def _memory(x: torch.Tensor) -> int | None:
    """Return where a tensor's memory begins on the host; None where it has none of its own there."""
    has_one = x.layout == torch.strided and x.device.type == "cpu" and not x._is_zerotensor()
    return x.untyped_storage().data_ptr() if has_one else None
