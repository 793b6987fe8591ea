"""`python -m engine.reduction CASE --file test_x.py`: prints one failing case as a short script, as JSON."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Iterator

import torch

from ..cases import Case
from ..faults import FaultError, InjectedFault
from ..runs import Bench, DeviceRun, FaultMaker
from ..selection import prepare_device
from ..states import _DRAWS
from .rendering import facts_of, render
from .shrinking import Asker, Budget, Fault, Shrinker, isolated, slice_of, written_out
from .steps import Inexpressible, Program, Recorder

_SUITE = Path(__file__).parents[2]
CPU = torch.device("cpu")
_UNKNOWN_TERMS = 64.0
MOST_BYTES = 64 << 20


def main(argv: list[str] | None = None) -> int:
    """Return 0 where the answer was written, which may be a refusal; 2 where something is not there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case")
    parser.add_argument("--file", required=True)
    parser.add_argument("--device", default="")
    parser.add_argument("--named", default="mps", help="the device that the script asks where none is named")
    parser.add_argument("--inject", dest="fault", default="")
    parser.add_argument("--reason", default="", help="what the record says of it")
    parser.add_argument("--said", default="", help="the first words of the script")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--or-record", action="store_true", help="without the device, or where it is right: the record")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(argv)
    path = next(_SUITE.rglob(options.file), _SUITE / options.file)
    module = importlib.import_module(".".join(path.relative_to(_SUITE).with_suffix("").parts))
    case = next((one for one in module.cases.listed(full=True) if one.id == options.case), None)
    if case is None:
        return _written(options.output, {"refused": "this torch does not have the case"})
    found = _found(case, options, options.device)
    if "script" not in found and options.or_record:
        alone = _found(case, options, "")
        found = alone if "script" in alone else {"refused": found.get("refused") or alone.get("refused")}
    return _written(options.output, found)


def _found(case: Case, options: argparse.Namespace, name: str) -> dict[str, Any]:
    """Return the script and what a title says; or why there is none: a device that is missing, a case that stays."""
    try:
        device = prepare_device(name) if name else None
        torch.ones(1, device=device)
        around = InjectedFault(options.fault).maker if options.fault and name else contextlib.nullcontext
    except (ValueError, FaultError, RuntimeError, AssertionError, ImportError) as missing:
        return {"missing": str(missing)}
    try:
        program, fault = reduce_case(case, options.reason, device, around, options.seconds)
        found = facts_of(program, fault)
        found["script"] = render(program, options.said, options.device or options.named)
    except Inexpressible as why:
        return {"refused": str(why)}
    except Exception as raised:  # what a case does inside a transform or a compiler cannot be known
        return {"refused": f"it cannot be recorded: {type(raised).__name__}: {str(raised)[:200]}"}
    found["ran_on"] = name
    return found


def _written(path: Path, found: dict[str, Any]) -> int:
    path.write_text(json.dumps(found), encoding="utf-8")
    return 0


def reduce_case(
    case: Case, reason: str, device: torch.device | None, around: FaultMaker, seconds: float
) -> tuple[Program, Fault | None]:
    """Return the smallest program found, and what was wrong where a device was given.

    Raises:
        Inexpressible: the case cannot be written as a few public calls, or the device is right in them.
    """
    budget = Budget(seconds)
    for number, states in enumerate(_states(case, reason)):
        if number and budget.is_over:
            raise Inexpressible(f"nothing wrong was found in its calls within {seconds:.0f} s")
        program, paths = record(case, reason, states)
        if device is None:
            return _by_record(program, paths, reason), None
        asker = Asker(device, around)
        fault = asker.first_fault(program)
        if fault is None:
            continue
        open_ended = replace(program, answers=())

        def fails(one: Program, asker: Asker = asker) -> bool:
            return asker.first_fault(one) is not None

        cuts = [isolated(open_ended, fault), _cut_to(program, fault)]
        cut = next((one for one in cuts if one is not None and fails(one)), None)
        if cut is None:
            continue
        small = Shrinker(fails, budget.rest()).shrink(cut)
        return small, asker.first_fault(small) or fault
    raise Inexpressible("the device is right in each of its calls, one after another")


def _cut_to(program: Program, fault: Fault) -> Program:
    if fault.answer:
        return slice_of(program, (fault.answer,), fault.step)
    last = program.steps[fault.step]
    held = last.result or next((ref.text for ref in last.refs()), "")
    return slice_of(program, (held,) if held else (), fault.step)


def _states(case: Case, reason: str) -> Iterator[tuple[str, ...]]:
    """Yield which states to record: the one that failed, then it after those before."""
    if case.check:
        yield ()
        return
    named = reason.rpartition("Mismatch: ")[2].partition(":")[0].strip()
    if named in _DRAWS and named in case.states:
        yield (named,)
        yield case.states[: case.states.index(named) + 1]
    else:
        for state in case.states:
            yield (state,)
        yield case.states


def record(case: Case, reason: str, states: tuple[str, ...]) -> tuple[Program, dict[str, str]]:
    """Return the case as a program, recorded on the CPU, and its outputs by the paths of the judge."""
    recorder = Recorder(CPU)
    bench = Bench(CPU, around=lambda: recorder)
    paths: dict[str, str] = {}
    factor = case.factor * math.sqrt(case.terms)
    if case.check:
        factor = _UNKNOWN_TERMS
        with contextlib.suppress(Exception):  # what it says of the CPU does not matter
            case.act(bench)
        if not recorder.steps:
            raise Inexpressible("it makes no public call that can be recorded")
    for state in states:
        paths = _record_state(case, bench, recorder, state)
    if sum(one.value.numel() * one.value.element_size() for one in recorder.inputs.values()) > MOST_BYTES:
        raise Inexpressible("its inputs are too large to be tried many times")
    return replace(recorder.program(), factor=factor), paths


def _record_state(case: Case, bench: Bench, recorder: Recorder, state: str) -> dict[str, str]:
    run = DeviceRun(CPU, tested=True, around=lambda: recorder)
    copies = run.copy(bench.bases(case, _DRAWS[state]))
    run.seed(bench.seed)
    try:
        with run:
            brought = run.bring(copies)
            outputs = case.act(run, *brought) if case.wants_run else case.act(*brought)
    except Inexpressible:
        raise
    except Exception as raised:
        raise Inexpressible(f"the CPU raises {type(raised).__name__}: {raised}") from raised
    found = {}
    for path, value in [*_leaves(outputs, "out"), *_leaves(brought, "base")]:
        name = recorder.name_of(value)
        if name is not None:
            found[path] = name
    return found


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, (tuple, list)):
        for number, one in enumerate(value):
            yield from _leaves(one, f"{path}[{number}]")
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(one, f"{path}.{key}")


def _by_record(program: Program, paths: dict[str, str], reason: str) -> Program:
    """Return the calls behind the answer that the record names, without a device."""
    named = next((name for path, name in paths.items() if f"{path}: " in reason), None)
    answers = (named,) if named else tuple(dict.fromkeys(name for path, name in paths.items() if path[0] == "o"))
    if not answers:
        if reason.startswith("AssertionError") and "raised " not in reason:
            # A call that should have been refused, or two answers that differ: the last answer alone may well be right.
            raise Inexpressible("the record names no wrong answer, but a demand of the case")
        results = [step.result for step in program.steps if step.result]
        answers = tuple(results[-1:])
        number = re.search(r"\banswer (\d+)\b", reason)
        if number is None and not program.steps[-1].changes and len(program.steps) > 40:
            raise Inexpressible("the record does not say which of its many answers was wrong")
    return written_out(slice_of(program, answers, len(program.steps) - 1))


if __name__ == "__main__":
    sys.exit(main())
