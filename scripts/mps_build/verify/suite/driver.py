"""Runs the device suite: one child serves as many cases as it survives, a hang or an abort costs one of them."""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from mps_build.common.records.device_record import FAILED, Case, Estimate, Result

from .child import SUMMARY, Alone, ChildEnd, run_alone, run_child
from .outcomes import (
    FAULT_EVENTS,
    WHERE,
    JudgeText,
    OnCase,
    SuiteRun,
    case_of_event,
    describe_end,
    finding_of_event,
    hits_in,
    is_orderly,
    known_death,
    last_lines,
    signal_name,
)
from .request import SuiteRequest, layer_of, suite_command

# What a process may write while all its cases seem to pass: the GPU dropped work, its answers are worth nothing.
_VOIDING = frozenset({"gpu_fault", "gpu_timeout", "virtual_gpu_unusable"})
# Beside the file of outcomes: how often the fault has fired, in 8 bytes (tests/device).
HITS_SUFFIX = ".hits"
# How often a case is tried on the CPU, whether it dies there too. Where that is the device, it has died once: a kernel
# that reads memory which is not its own does not die each time.
_TRIES = {"cpu": 3}


def run_suite(
    request: SuiteRequest,
    *,
    judge_text: JudgeText,
    on_case: OnCase,
    on_estimate: Callable[[Estimate], None] = lambda estimate: None,
    run: SuiteRun | None = None,
) -> SuiteRun:
    """Run the suite and return all outcomes, in order; `on_estimate` hears before the first what it will take.

    All files share a process, and another one takes over after a crash, a hang, or where the suite asks for it
    (event `leave`). Only where a child dies before it could list its cases has each file one of its own: it is
    then named. With `jobs` there are several such processes, each with its part of the cases; there is one where a
    fault is injected or a run is resumed. With a fault the run stops at the first case that fails with a hit in it and
    passes without it. It also stops where the machine is at fault. A case in which the CPU dies too has no reference:
    it is skipped.
    """
    run = run or SuiteRun()
    request.folder.mkdir(parents=True, exist_ok=True)
    known = request.folder / "known.json"
    known.write_text(json.dumps(list(request.known), indent=1), encoding="utf-8")

    def part(request: SuiteRequest, run: SuiteRun, on_case: OnCase, is_stopped: Callable[[], bool]) -> None:
        _run_part(_Part(request, known, judge_text, on_case, is_stopped, estimates, end), run)

    beside = request.jobs > 1 and request.fault is None and not run.cases
    estimates = Estimates(request.jobs if beside else 1, on_estimate)
    end = time.monotonic() + request.seconds if request.seconds else None
    if beside:
        run_beside(request, part, run, on_case)
    else:
        part(request, run, on_case, lambda: False)
    return run


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of a run: what its children are to do, and who hears of it."""

    request: SuiteRequest
    known: Path
    judge_text: JudgeText
    on_case: OnCase
    is_stopped: Callable[[], bool]
    estimates: Estimates
    end: float | None  # when the time of the whole run is over


def _run_part(part: _Part, run: SuiteRun) -> None:
    request = part.request
    if _GroupRun(part, request.files, run).go():
        return
    for file in request.files:
        if run.stopped or run.refused or run.caught or part.is_stopped():
            break
        _GroupRun(part, (file,), run).go()


class _GroupRun:
    """The files of the suite that share a process, in as many children as it takes."""

    def __init__(self, part: _Part, files: tuple[Path, ...], run: SuiteRun) -> None:
        self._part, self._request, self._files, self._run = part, part.request, files, run
        self._judge_text, self._on_case = part.judge_text, part.on_case
        self._layer = layer_of(files[0])
        self._name = files[0].stem if len(files) == 1 else "suite"
        self._file_name = "-".join((self._name, *self._request.shard.split("/")[:1])).rstrip("-")
        self._expected: list[str] | None = None
        self._seen: dict[str, None] = {}
        self._file_of: dict[str, str] = {}
        # Of the fault, in this child: so far, and before the case. None: the file does not count, or says nothing.
        self._hits: int | None = None
        self._hits_before: int | None = None
        self._outcomes = self._request.folder / f"{self._file_name}.outcomes.jsonl"
        self._suspect: str | None = None  # the case that failed with a hit in it
        self._uncollected = False  # a file of the child could not be imported: its exit status says so each time
        self._estimates, self._is_estimating = True, False
        self._is_time_over = False
        self._done: Path | None = None

    def go(self) -> bool:
        """Run the files to their end; False where their child died before it could list their cases."""
        self._take_up()
        after: str | None = None
        first = 1 + len(list(self._request.folder.glob(f"{self._file_name}.*.outcomes.jsonl")))
        for number in range(first, 1_000_000):
            if self._part.end is not None and time.monotonic() >= self._part.end:
                self._is_time_over = True
                break
            bad = self._run.bad + self._run.own
            end = self._child(number, after)
            if self._is_estimating and end.cut != "stopped" and not is_orderly(end):
                self._estimates = False  # it died before its first case, in none of them
                continue
            if self._expected is None and len(self._files) > 1 and end.exit != 4 and self._request.fault is None:
                return False
            self._hear(end, bad)
            if end.cut == "stopped":
                return True
            after = self._after_child(end)
            if self._run.stopped or self._run.refused or self._run.caught:
                return True
            if self._is_time_over or after is None:
                break
        self._account_for_the_rest()
        return True

    def _take_up(self) -> None:
        """Leave out what a run that is resumed has done: processes beside each other leave gaps in the order."""
        names = {file.name for file in self._files}
        before = [case for case in self._run.cases if case.file in names]
        self._seen |= {case.id: None for case in before}
        self._file_of |= {case.id: str(case.file) for case in before}
        if before:
            self._done = self._request.folder / f"{self._file_name}.done.json"
            self._done.write_text(json.dumps(list(self._seen)), encoding="utf-8")

    def _hear(self, end: ChildEnd, bad: int) -> None:
        """Judge what a child wrote outside of its cases; `bad`: how many had failed before it."""
        if end.exit == 1 and self._run.bad + self._run.own == bad and not self._uncollected:
            self._add_outside(end)
        for case_id, text in end.slices:
            if case_id is None or case_id not in (SUMMARY, end.running):
                self._judge_output(case_id, text)

    def _account_for_the_rest(self) -> None:
        """Say of each case that nobody spoke of that it was left: it must not look like one that was never there."""
        left = [case_id for case_id in self._expected or () if case_id not in self._seen]
        if self._is_time_over:
            self._run.not_run += len(left)
            return
        for case_id in left:
            self._add(Case(id=case_id, layer=self._layer, outcome="failed", reason="the suite reported no outcome"))

    def _files_from(self, after: str | None) -> tuple[Path, ...]:
        """Return the files that still have cases: those before the file of the last case are done."""
        name = self._file_of.get(after or "")
        place = next((place for place, file in enumerate(self._files) if file.name == name), 0)
        return self._files[place:]

    def _child(self, number: int, after: str | None) -> ChildEnd:
        request = self._request
        name = f"{self._file_name}.{number}"
        self._uncollected = False
        self._hits = self._hits_before = self._suspect = None
        self._outcomes = request.folder / f"{name}.outcomes.jsonl"
        if self._part.end is not None:
            request = replace(request, seconds=max(self._part.end - time.monotonic(), 0.1))
        self._is_estimating = False
        command = suite_command(
            request,
            self._files_from(after),
            known=self._part.known,
            outcomes=self._outcomes,
            after=after,
            done=self._done,
            estimates=self._estimates and after is None,
        )
        return run_child(
            command,
            log=request.folder / f"{name}.log",
            outcomes=self._outcomes,
            limits=request.limits,
            on_event=self._on_event,
            on_output=self._judge_output,
            is_stopped=self._part.is_stopped,
        )

    def _on_event(self, event: Mapping[str, Any]) -> None:
        kind = event.get("event")
        if kind == "started":
            self._hits_before = self._hits
            self._is_estimating = False
        elif kind == "estimate":
            self._is_estimating = False
            self._part.estimates.take(event)
        elif kind == "time_over":
            self._is_time_over = True
        self._hits = hits_in(event, otherwise=self._hits)
        if kind == "collected" and self._expected is None:
            self._expected = [str(case_id) for case_id in event.get("ids", ())]
            self._file_of |= dict(zip(self._expected, map(str, event.get("files", ())), strict=False))
            self._run.files |= {case_id: self._file_of.get(case_id, "") for case_id in self._expected}
            self._run.collected += sum(case_id not in self._seen for case_id in self._expected)
            self._is_estimating = self._estimates
        elif kind == "session" and isinstance(threads := event.get("threads"), int):
            self._run.threads = max(self._run.threads or 0, threads)
        elif kind == "uncollected":
            self._add_uncollected(str(event.get("file")), str(event.get("text") or ""))
        elif kind in FAULT_EVENTS and event.get("hits") is not None:
            self._count_hits(int(event["hits"]))
        elif kind == "finished":
            if found := finding_of_event(event):
                self._run.findings.setdefault(found.id, found)
            self._add(case_of_event(event, self._layer))

    def _count_hits(self, hits: int) -> None:
        self._hits = hits
        self._run.fault_hits = (self._run.fault_hits or 0) + hits

    def _take_hits_of_the_dead(self) -> None:
        """Read how often the fault had fired when the process died; unknown where its file does not count."""
        file = self._outcomes.with_suffix(HITS_SUFFIX)
        if self._request.fault is None:
            return
        if file.is_file():
            self._count_hits(int.from_bytes(file.read_bytes()[:8], sys.byteorder))
        else:
            self._hits = None

    def _add(self, case: Case) -> None:
        if case.id in self._seen:
            return
        self._seen[case.id] = None
        alone = self._files[0].name if len(self._files) == 1 else case.file
        case = case.model_copy(update={"file": self._file_of.get(case.id, alone)})
        self._run.cases.append(case)
        if case.outcome in FAILED:
            self._count_bad(case)
        self._run.own += case.outcome == "own_fault"
        self._on_case(self._run, case)

    def _count_bad(self, case: Case) -> None:
        """Count a case that did not end well, and suspect the fault where it had a hit in it, or nobody counts."""
        self._run.bad += 1
        if self._request.fault is not None and not case.is_event and not self._suspect:
            hit = self._hits is None or self._hits != (self._hits_before or 0)
            self._suspect = case.id if hit else None

    def _add_uncollected(self, file: str, text: str) -> None:
        self._uncollected = True
        reason = f"the file cannot be imported: {last_lines(text)}"
        case_id = f"{Path(file).stem}::collection"
        self._add(Case(id=case_id, layer=layer_of(Path(file)), file=file, outcome="crashed", reason=reason))

    def _name_at(self, case_id: str | None) -> str:
        """Return the file of a case, without its suffix: it names what happened around it."""
        return self._file_of.get(case_id or "", self._name).removesuffix(".py")

    def _add_outside(self, end: ChildEnd) -> None:
        """Record what failed outside of any case: a fixture, or a test that is none."""
        written = next((text for part, text in end.slices if part == SUMMARY), end.output)
        reason = f"something failed outside of a case: {last_lines(written)}"
        self._add(Case(id=f"{self._name}::outside", layer=self._layer, outcome="failed", reason=reason))

    def _after_child(self, end: ChildEnd) -> str | None:
        """Judge what a child left behind; return the case to go on after, None if the file is done."""
        if self._is_time_over and end.running is None:
            return None
        # 4 is pytest's "usage error": the suite refuses its options, a fault that cannot be loaded above all.
        if end.exit == 4 and not end.cases:
            self._run.refused = last_lines(end.output)
            return None
        if end.running is not None:
            self._take_hits_of_the_dead()
            self._add(self._without_reference(self._left_behind(end, end.running)))
        if self._suspect is not None:
            self._run.caught = self._run_alone(self._suspect, self._request.device).passed
            if self._run.caught:
                return None
        if end.running is not None or end.left_after is not None or self._suspect is not None:
            return end.running or end.left_after or self._suspect
        if end.cut or not is_orderly(end):
            last = next(reversed(self._seen), None)
            what = "collection" if last is None else "end" if end.finished else "between cases"
            said = f": {last_lines(end.output)}" if end.output.strip() else ""
            reason = f"{describe_end(end)}, {WHERE[what]}{said}"
            if self._request.fault is not None and last is None:
                self._run.refused = reason  # an injected fault that cannot even be loaded was caught by nobody
                return None
            self._add(
                Case(
                    id=f"{self._name_at(last)}::{what.replace(' ', '-')}",
                    layer=self._layer,
                    outcome="timeout" if end.cut == "timeout" else "crashed",
                    reason=reason,
                    error=self._error_of(end),
                )
            )
            return last if end.cases and not end.finished else None
        return None

    def _left_behind(self, end: ChildEnd, case_id: str) -> Case:
        outcome: Result = "timeout" if end.cut == "timeout" else "crashed"
        reason = f"{describe_end(end)}{': ' + last_lines(end.output) if end.output.strip() else ''}"
        row = known_death(case_id, reason, self._request.known)
        return Case(
            id=case_id,
            layer=self._layer,
            outcome="known" if row else outcome,
            reason=reason,
            error=self._error_of(end),
            seconds=round(time.monotonic() - end.running_since, 3),
            known_issue=str(row["id"]) if row else None,
        )

    def _without_reference(self, case: Case) -> Case:
        """Return a case that ended its process; where the CPU's ends there too, without a reference: skipped."""
        if case.outcome not in FAILED or self._run.stopped or self._part.is_stopped():
            return case
        for _ in range(_TRIES.get(self._request.device, 1)):
            cpu = self._run_alone(case.id, "cpu")
            if cpu.died:
                reason = f"no reference: this torch's CPU fails in this case by itself: {describe_end(cpu.end)}"
                self._run.notes.append(f"{case.id}: {reason}")
                return case.model_copy(update={"outcome": "skipped", "reason": reason})
        return case

    def _run_alone(self, case_id: str, device: str) -> Alone:
        name = self._file_of.get(case_id, self._files[0].name)
        return run_alone(
            self._request,
            case_id,
            next(file for file in self._files if file.name == name),
            device=device,
            known=self._part.known,
            name=f"{self._file_name}-alone",
            is_stopped=self._part.is_stopped,
        )

    def _error_of(self, end: ChildEnd) -> dict[str, Any]:
        name = signal_name(end.exit)
        judged = self._judge_text(end.output, end.exit, name)
        if judged.stop:
            self._run.stopped = judged.category
        return {"exit": end.exit, "signal": name, "cut": end.cut or None, "category": judged.category}

    def _judge_output(self, case_id: str | None, text: str) -> bool:
        """Read what the child wrote: a GPU may drop work, write so, and let the process end with 0. True: enough."""
        judged = self._judge_text(text, 0, None)
        if judged.category not in _VOIDING:
            return False
        self._run.faults += 1
        if judged.stop or self._run.faults > 1:
            self._run.stopped = judged.category
        self._void(case_id, judged.category, text)
        return self._run.stopped is not None

    def _void(self, case_id: str | None, category: str, text: str) -> None:
        """Turn a pass that the text contradicts into a failure; work the GPU dropped between cases taints the file."""
        reason = f"{category}: {last_lines(text)}"
        for index, case in enumerate(self._run.cases):
            if case.id == case_id:
                if case.outcome in ("passed", "unexpected_pass", "skipped"):
                    self._run.cases[index] = case.model_copy(
                        update={"outcome": "failed", "reason": reason, "error": {"category": category}}
                    )
                    self._count_bad(self._run.cases[index])
                return
        self._add(
            Case(
                id=f"{self._name_at(next(reversed(self._seen), None))}::output",
                layer=self._layer,
                outcome="failed",
                reason=reason,
                error={"category": category},
            )
        )


class RunPart(Protocol):
    """Runs one part of the suite to its end, or until it is stopped."""

    def __call__(
        self, request: SuiteRequest, run: SuiteRun, on_case: OnCase, is_stopped: Callable[[], bool], /
    ) -> None: ...


def run_beside(request: SuiteRequest, run_part: RunPart, run: SuiteRun, on_case: OnCase) -> None:
    """Run `request.jobs` parts at once; `run` holds all their outcomes, and `on_case` hears of one at a time.

    Each part may hold its share of the memory. Where one finds the machine at fault, the others end too.
    """
    parts = [SuiteRun() for _ in range(request.jobs)]
    listed: dict[int, int] = {}
    lock, stop, seen = threading.Lock(), threading.Event(), set[str]()

    # With each case, no more is done than for that case: there are tens of thousands.
    def heard(part: SuiteRun, case: Case) -> None:
        with lock:
            if case.id in seen:
                return
            seen.add(case.id)
            run.cases.append(case)
            run.bad += case.outcome in FAILED
            run.findings |= part.findings
            if len(part.files) != listed.get(id(part)):
                listed[id(part)] = len(part.files)
                run.files |= part.files
            _sum_up(run, parts)
            on_case(run, case)

    def one(number: int) -> None:
        limits = replace(request.limits, memory_bytes=request.limits.memory_bytes // request.jobs)
        own = replace(request, jobs=1, shard=f"{number}/{request.jobs}", limits=limits)
        run_part(own, parts[number], heard, stop.is_set)
        if parts[number].stopped or parts[number].refused:
            stop.set()

    with ThreadPoolExecutor(request.jobs) as pool:
        try:
            for future in [pool.submit(one, number) for number in range(request.jobs)]:
                future.result()
        except BaseException:
            stop.set()
            raise
    # An outcome may have been taken back, and a file that no part can import is named by each.
    run.cases = list({case.id: case for part in reversed(parts) for case in part.cases}.values())
    run.bad = sum(case.outcome in FAILED for case in run.cases)  # each part counts a file that no part can import
    for part in parts:
        run.files |= part.files
    _sum_up(run, parts)
    run.notes = [note for part in parts for note in part.notes]


def _sum_up(run: SuiteRun, parts: list[SuiteRun]) -> None:
    run.collected = sum(part.collected for part in parts)
    run.own = sum(part.own for part in parts)
    run.faults = sum(part.faults for part in parts)
    run.not_run = sum(part.not_run for part in parts)
    run.threads = max((part.threads for part in parts if part.threads is not None), default=None)
    run.stopped = next((part.stopped for part in parts if part.stopped), None)
    run.refused = next((part.refused for part in parts if part.refused), None)


class Estimates:
    """Puts together what the processes of a run say, and tells it once the last has spoken."""

    def __init__(self, parts: int, tell: Callable[[Estimate], None]) -> None:
        self._parts, self._tell = parts, tell
        self._found: list[Estimate] = []
        self._lock = threading.Lock()

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in one process's event; a damaged one is none."""
        try:
            found = Estimate.model_validate({name: event.get(name) for name in Estimate.model_fields})
        except ValueError:
            return
        with self._lock:
            self._found.append(found)
            if len(self._found) == self._parts:
                self._tell(together(self._found))


def together(parts: list[Estimate]) -> Estimate:
    """Return what processes beside each other take: the mean without the highest quarter.

    Each has as much to do; what one alone takes long for, as for a function that is compiled late, is rare.

    >>> one = Estimate(cases=10, keys=20, low_seconds=1.0, high_seconds=2.0)
    >>> together([one, one, one, one.model_copy(update={"low_seconds": 60.0, "high_seconds": 90.0})])
    Estimate(cases=40, keys=80, low_seconds=1.0, high_seconds=2.0)
    """

    def usual(seconds: Iterable[float]) -> float:
        return statistics.mean(sorted(seconds)[: len(parts) - len(parts) // 4])

    return Estimate(
        cases=sum(part.cases for part in parts),
        keys=sum(part.keys for part in parts),
        low_seconds=usual(part.low_seconds for part in parts),
        high_seconds=usual(part.high_seconds for part in parts),
    )
