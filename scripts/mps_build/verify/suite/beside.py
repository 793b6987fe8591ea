"""Parts of the suite in processes beside each other: what one of them compiles, the others do not wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

from mps_build.common.records.device_record import FAILED, Case

from .run import OnCase, SuiteRun
from .suite_request import SuiteRequest


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
        asked = replace(request, jobs=1, shard=f"{number}/{request.jobs}", limits=limits)
        run_part(asked, parts[number], heard, stop.is_set)
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
    run.not_asked = sum(part.not_asked for part in parts)
    run.threads = max((part.threads for part in parts if part.threads is not None), default=None)
    run.stopped = next((part.stopped for part in parts if part.stopped), None)
    run.refused = next((part.refused for part in parts if part.refused), None)
