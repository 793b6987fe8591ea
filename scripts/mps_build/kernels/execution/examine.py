"""One kernel: its contract's programs run in several ways, and what they left compared."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..families.shared.contracts import Case, Kernel, find_binder
from ..judge.client import Answer, Judge, NoAnswer, NoReference
from ..judge.known import explanations_of, has_any_value, races_of
from ..judge.references import ELEMENTWISE, load_references
from ..machine.checks import (
    REVERSE,
    SHUFFLED,
    SIMDGROUPS_IN_TURN,
    BoundsBefore,
    Layout,
    Order,
    Poison,
    Races,
    RunCheck,
    Threadgroups,
)
from ..machine.runner import Runner
from ..machine.troubles import Ran, Trouble
from ..program.launch import (
    Addresses,
    Buffer,
    Check,
    Known,
    NotBound,
    Program,
    Reference,
    View,
    WrongBinding,
    dense_strides,
)

Outcome = Literal[
    "passed", "wrong", "out_of_bounds", "race", "overflow_candidate", "known", "not_bound", "not_compiled", "refused",
    "timeout", "crashed", "misfit", "skipped",
]  # fmt: skip
_OF_TROUBLE: Mapping[str, Outcome] = {
    "fault": "out_of_bounds", "timeout": "timeout", "trap": "crashed", "deadlock": "timeout", "write": "out_of_bounds",
    "race": "race", "bad launch": "misfit",
}  # fmt: skip
_NOT_FINITE = 1e299
Checks = tuple[RunCheck, ...]
_CHECKS: tuple[Checks, ...] = ((Poison(0x5A), BoundsBefore(), Order(REVERSE), Threadgroups()),)
# Where threads work together.
_CHECKS_TOGETHER: tuple[Checks, ...] = (
    (*_CHECKS[0], Races()),
    (Poison(0x00), Order(SIMDGROUPS_IN_TURN)),
    (Poison(0xFF), Order(SHUFFLED)),
)
Digest = Callable[[Program, Ran], tuple[str, str]]


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What is known of one kernel.

    Args:
        reason: why it is not `passed`, with the check that found it.
        inputs: the case: seed, label, and the element's inputs.
        max_ulp: the largest error against float64; `bound_ulp` what is allowed; `cpu_ulp` the CPU's own.
        where: the element, thread or address.
        reference: what a wrong result was held against: `form` (expression, function, dense, bytes), and of a
            reference its `name`, `expression`, the result's `dtype` and the inputs' `types`.
        answers: where requested, of each program, a digest of its inputs and one of its results.
        profile: the largest error in each of 64 parts of the first input's values, from -inf to inf.
        explained: the known issues that together hold all of its wrong values (known.py); the outcome is `wrong`.
    """

    outcome: Outcome
    reason: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    max_ulp: float | None = None
    bound_ulp: float | None = None
    cpu_ulp: float | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    reference: Mapping[str, Any] = field(default_factory=dict)
    programs: int = 0
    threads: int = 0
    inactive: int = 0
    answers: dict[str, str] = field(default_factory=dict)
    explained: tuple[str, ...] = ()
    profile: list[float] = field(default_factory=list)


class _Found(Exception):
    """The first thing that is wrong ends a kernel's examination."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


def examine(kernel: Kernel, case: Case, device: Runner, judge: Judge, *, answer: Digest | None = None) -> Verdict:
    """Run all programs of a kernel's contract; the first disagreement is the verdict."""
    if kernel.contract is None:
        return Verdict(outcome="not_bound", reason="no contract has its signature")
    verdict = Verdict(outcome="passed")
    known, races = explanations_of(kernel.name, case.version), races_of(kernel.name, case.version)
    label = ""
    try:
        for program in find_binder(kernel.contract.binder)(kernel, case):
            label = program.label
            _run(program, device, judge, verdict, known, races, answer)
            verdict.programs += 1
    except (NotBound, NoReference) as reason:
        return Verdict(outcome="not_bound", reason=str(reason))
    except (WrongBinding, NoAnswer) as error:
        return Verdict(outcome="misfit", reason=f"our contract does not fit ({label or 'no case'}): {error}")
    except _Found as found:
        found.verdict.inputs = {"case": label, **found.verdict.inputs}
        found.verdict.programs, found.verdict.threads = verdict.programs, verdict.threads
        found.verdict.answers, found.verdict.profile = verdict.answers, verdict.profile
        return found.verdict
    if not verdict.programs:
        return Verdict(outcome="not_bound", reason="its contract has no case for it")
    return verdict


def _run(
    program: Program,
    device: Runner,
    judge: Judge,
    verdict: Verdict,
    known: Sequence[str],
    races: Sequence[str],
    answer: Digest | None,
) -> None:
    is_cooperative = any(device.codes[step.kernel].is_cooperative for step in program.steps)
    is_ordered = False
    watched = (Races(),) if is_cooperative else ()
    first = device.run(program, watched)
    if races and [each.kind for each in first.troubles] == ["race"]:
        found = _of_trouble(first.troubles[0])
        verdict.outcome, verdict.reason, verdict.where = found.outcome, found.reason, found.where
        verdict.explained = tuple(dict.fromkeys([*verdict.explained, *races]))
        # What such a kernel leaves may depend on the order of its threads: it is tested in one only, or not at all.
        if has_any_value(races):
            return
        is_ordered, first = True, device.run(program)
    _stop_at_trouble(first)
    verdict.threads += first.threads
    verdict.inactive += first.inactive
    if answer is not None and not program.varies:
        inputs, results = answer(program, first)
        verdict.answers[inputs] = results
    for checks in () if is_ordered else _CHECKS_TOGETHER if is_cooperative else _CHECKS:
        again = device.run(program, checks)
        _stop_at_trouble(again)
        _compare_runs(program, device, first, again, checks, judge, known)
    _compare_gaps(program, first)
    for check in program.checks:
        _judge(check, device, judge, first, verdict, known)
    if verdict.explained and "case" not in verdict.inputs:
        verdict.inputs = {"case": program.label, **verdict.inputs}


def _stop_at_trouble(ran: Ran) -> None:
    if ran.troubles:
        raise _Found(_of_trouble(ran.troubles[0]))


def _of_trouble(trouble: Trouble) -> Verdict:
    outcome = _OF_TROUBLE.get(trouble.kind, "crashed")
    where = {**trouble.where, **({"thread": list(trouble.thread)} if trouble.thread else {})}
    return Verdict(outcome=outcome, reason=trouble.text, where=where)


def _results(program: Program) -> list[View]:
    return [check.got for check in program.checks]


def _compare_runs(
    program: Program, device: Runner, first: Ran, again: Ran, checks: Checks, judge: Judge, known: Sequence[str]
) -> None:
    """What a check looks at must not depend on how it was run."""
    if program.varies:
        for check in program.checks:
            _judge(check, device, judge, again, Verdict(outcome="passed"), known)
        return
    for view in _results(program):
        before, after = (ran.contents[id(view.buffer)] for ran in (first, again))
        if after is before:  # the process says that they are the same
            continue
        at = device.first_difference(device.take(view, after), device.take(view, before), view)
        if at is not None:
            raise _Found(_explain(program, device, first, checks, view, at))


def _explain(program: Program, device: Runner, first: Ran, checks: Checks, view: View, at: int) -> Verdict:
    """Change one thing at a time to say what the result depends on."""
    where = {"element": at, "shape": list(view.shape)}
    single: list[tuple[Checks, Outcome, str]] = [((), "wrong", "is not deterministic: two equal runs differ")]
    single += [((each,), each.outcome, each.text) for each in checks if each.text]
    for one, outcome, text in single:
        ran = device.run(program, one)
        if ran.troubles:
            return _of_trouble(ran.troubles[0])
        got, want = (device.take(view, each.contents[id(view.buffer)]) for each in (ran, first))
        if device.first_difference(got, want, view) is not None:
            return Verdict(outcome=outcome, reason=f"its result {text}", where=where)
    return Verdict(outcome="wrong", reason="its result depends on how it is run", where=where)


def _compare_gaps(program: Program, ran: Ran) -> None:
    """Bytes of an output that no view covers must be as they were."""
    by_buffer: dict[int, list[View]] = {}
    buffers: dict[int, Buffer] = {}
    for view in _results(program):
        by_buffer.setdefault(id(view.buffer), []).append(view)
        buffers[id(view.buffer)] = view.buffer
    for key, views in by_buffer.items():
        if buffers[key].role == "output" and (at := gap_changed(views, ran.contents[key], Layout().poison)) is not None:
            raise _Found(
                Verdict(outcome="out_of_bounds", reason="writes between the elements of its output", where={"byte": at})
            )


def _judge(check: Check, device: Runner, judge: Judge, ran: Ran, verdict: Verdict, known: Sequence[str]) -> None:
    if isinstance(check, Reference):
        _against_torch(check, judge, ran, verdict, known)
        return
    got = device.take(check.got, ran.contents[id(check.got.buffer)])
    want = check.want if isinstance(check, Known) else device.take(check.want, ran.contents[id(check.want.buffer)])
    at = device.first_difference(got, want, check.got)
    if at is not None:
        size = check.got.dtype.size
        form, what = (
            ("bytes", "what it must be") if isinstance(check, Known) else ("dense", "the dense form of its operator")
        )
        raise _Found(
            Verdict(
                outcome="wrong",
                reason=f"differs from {what}",
                reference={"form": form, "dtype": check.got.dtype.torch},
                where={"element": at, "got": got[at * size :][:size].hex(), "want": want[at * size :][:size].hex()},
            )
        )


def _against_torch(check: Reference, judge: Judge, ran: Ran, verdict: Verdict, known: Sequence[str]) -> None:
    answer = judge.ask(check, ran.contents, known)
    verdict.max_ulp = max(verdict.max_ulp or 0.0, answer.max_ulp)
    verdict.bound_ulp = max(verdict.bound_ulp or 0.0, answer.bound_ulp)
    verdict.cpu_ulp = max(verdict.cpu_ulp or 0.0, answer.cpu_ulp)
    if profile := answer.profile:
        held = verdict.profile or [0.0] * len(profile)
        verdict.profile = [max(pair) for pair in zip(held, profile, strict=True)]
    if not answer.wrong:
        return
    found = _disagreement(check, answer)
    if not answer.explained:
        raise _Found(found)
    # Known values of a kernel do not end its examination: another fault may be in it.
    if not verdict.explained:
        verdict.outcome, verdict.reason, verdict.where = "wrong", found.reason, found.where
        verdict.inputs, verdict.reference = found.inputs, found.reference
    verdict.explained = tuple(dict.fromkeys([*verdict.explained, *answer.explained]))


def _disagreement(check: Reference, answer: Answer) -> Verdict:
    ulp = f", {answer.ulp:.4g} ulp" if answer.ulp is not None and answer.ulp < _NOT_FINITE else ""
    cpu = f", the CPU has {answer.cpu}" if answer.cpu is not None else ""
    return Verdict(
        outcome="wrong",
        reason=f"{answer.wrong} of {answer.count} elements differ from torch ({check.name}): "
        f"got {answer.got}, expected {answer.want}{cpu}{ulp}",
        inputs=answer.inputs,
        max_ulp=answer.max_ulp if answer.ulp is None else answer.ulp,
        bound_ulp=answer.bound_ulp,
        cpu_ulp=answer.cpu_ulp if "cpu_ulp" in answer.model_fields_set else None,
        where={"element": answer.index, "got": answer.got, "want": answer.want},
        reference=reference_of(check),
    )


def reference_of(check: Reference) -> dict[str, Any]:
    """Return what a result was held against, for whoever asks torch the same elsewhere."""
    row = load_references()[check.name]
    if check.got.dtype.kind == "complex" and "complex" in row:
        row = {**{key: value for key, value in row.items() if key not in ("expr", "function")}, **row["complex"]}
    return {
        "form": "expression" if "expr" in row else "function",
        "name": check.name,
        "expression": row.get("expr", ""),
        "dtype": check.got.dtype.torch,
        "types": {name: each.dtype.torch for name, each in check.inputs.items() if isinstance(each, View)},
        "is_elementwise": row["family"] in ELEMENTWISE,
    }


# Which bytes of an output a program may write: those of its views, and no others.


def gap_changed(views: Sequence[View], contents: bytes, poison: int) -> int | None:
    """Return the first byte outside of all views that is not `poison` any more, or None.

    >>> from ..program.dtypes import DTYPES; from ..program.launch import output_buffer
    >>> view = View(buffer=output_buffer(4), dtype=DTYPES["char"], shape=(2,), strides=(2,))
    >>> gap_changed([view], bytes([1, 9, 2, 9]), 9), gap_changed([view], bytes([1, 9, 2, 3]), 9)
    (None, 3)
    """
    if any(view.count * view.dtype.size == len(contents) and _is_dense(view) for view in views):
        return None
    mask = bytearray(b"\xff" * len(contents))
    for view in views:
        if view.count:
            _clear(mask, view)
    changed = int.from_bytes(contents, "little") ^ int.from_bytes(bytes([poison]) * len(contents), "little")
    left = changed & int.from_bytes(mask, "little")
    return None if not left else ((left & -left).bit_length() - 1) // 8


def _is_dense(view: View) -> bool:
    return view.strides is None or view.strides == dense_strides(view.shape)


def _clear(mask: bytearray, view: View) -> None:
    size = view.dtype.size
    strides = view.strides if view.strides is not None else dense_strides(view.shape)
    *outer, inner = view.shape or (1,)
    step = strides[-1] if strides else 1
    for index in itertools.product(*(range(n) for n in outer)):
        at = view.offset + sum(i * s for i, s in zip(index, strides, strict=False))
        if step == 1:
            mask[at * size : (at + inner) * size] = bytes(inner * size)
        else:
            for i in range(inner):
                mask[(at + i * step) * size : (at + i * step + 1) * size] = bytes(size)


# What a program was given and what it left, as digests: equal for two kernels that answer alike.


def answer_of(program: Program, ran: Ran, device: Runner) -> tuple[str, str]:
    """Return digests of a program's inputs (with its label and sizes), and of its results."""
    given, got = hashlib.sha256(program.label.encode()), hashlib.sha256()
    for step in program.steps:
        for value in step.arguments.values():
            buffers = value.places.values() if isinstance(value, Addresses) else (value,)
            for buffer in buffers:
                if isinstance(buffer, Buffer) and buffer.data:
                    given.update(buffer.data)
    for check in program.checks:
        view = check.got
        given.update(f"{view.shape} {view.dtype.name}".encode())
        got.update(device.canonical(device.take(view, ran.contents[id(view.buffer)]), view))
    return given.hexdigest()[:20], got.hexdigest()[:20]
