"""Which of a release's tests run on mps: those that its own `run_test.py --mps` starts, and who else asks for it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.cores import with_share
from mps_build.common.errors import OwnFault
from mps_build.common.process import Command

from ..suite.child import ChildEnd, run_child
from ..suite.outcomes import describe_end, is_orderly, last_lines
from ..suite.request import Limits
from .outcomes import UpstreamOutcome, read_outcomes, write_outcome

# Of 2.6.0: the list in test/run_test.py, and test_optim.py, which says `allow_mps=True` as well.
FILES = (
    *("test_mps.py", "test_metal.py", "test_modules.py", "nn/test_convolution.py", "nn/test_dropout.py"),
    *("nn/test_pooling.py", "test_view_ops.py", "test_nn.py", "test_optim.py"),
)
# What these files import that Debian's torch comes without.
PACKAGES = ("setuptools", "scipy")
_MPS_ALONE = ("test_mps.py",)


def patterns_of(file: str) -> tuple[str, ...]:
    """Return the patterns of a file's tests that use mps: of most files these are some classes.

    >>> patterns_of("nn/test_dropout.py")
    ('nn/test_dropout.py::*MPS::*',)
    """
    return (f"{file}::*",) if file in _MPS_ALONE else (f"{file}::*MPS::*",)


_PLUGIN = Path(__file__).parent / "plugin"
# A process leaves the rest to another from here on: graphs and buffers of thousands of tests pile up.
_LEAVE_BYTES = 5 << 29

OnTest = Callable[[UpstreamOutcome], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamRequest:
    """One run: `tests` is upstream's `test` folder, `folder` holds the outcomes, also of runs before.

    `only`: patterns of ids, all where it is empty. `part`: (I, N), each N-th test from the I-th on; `jobs` processes
    share it. `again`: tests that are run although they have an outcome.
    """

    interpreter: Path
    environ: Mapping[str, str]
    tests: Path
    files: tuple[str, ...]
    folder: Path
    limits: Limits
    only: tuple[str, ...] = ()
    part: tuple[int, int] = (0, 1)
    jobs: int = 1
    again: frozenset[str] = frozenset()


def run_upstream(request: UpstreamRequest, on_test: OnTest = lambda _: None) -> None:
    """Run every test that has no outcome in the folder yet, and write what came of it there.

    Raises:
        OwnFault: a file's tests cannot be run at all.
    """
    request.folder.mkdir(parents=True, exist_ok=True)
    done = frozenset(read_outcomes(request.folder)) - request.again
    number, parts = request.part
    stop = threading.Event()

    def one(job: int) -> None:
        part = f"{number * request.jobs + job}/{parts * request.jobs}"
        for file in request.files:
            if not stop.is_set():
                _Part(request, file, part, done, on_test, stop.is_set).go()

    with ThreadPoolExecutor(request.jobs) as pool:
        try:
            for future in [pool.submit(one, job) for job in range(request.jobs)]:
                future.result()
        except BaseException:
            stop.set()
            raise


class _Part:
    """A part of one file's tests, in as many children as it takes."""

    def __init__(
        self,
        request: UpstreamRequest,
        file: str,
        part: str,
        done: frozenset[str],
        on_test: OnTest,
        is_stopped: Callable[[], bool],
    ) -> None:
        self._request, self._file, self._part = request, file, part
        self._done, self._on_test, self._is_stopped = set(done), on_test, is_stopped
        self._name = f"{file.removesuffix('.py').replace('/', '-')}.{part.replace('/', '-')}"
        self._outcomes = request.folder / f"{self._name}.jsonl"
        self._log = request.folder / f"{self._name}.log"
        self._seen = 0
        # A child's lines stand in a file of their own: the watchdog reads it from its beginning.
        self._children = len(list(request.folder.glob(f"{self._name}.*.jsonl")))

    def go(self) -> None:
        """Run them to their end."""
        while not self._is_stopped():
            before = self._seen
            end = self._child()
            if end.cut == "stopped" or (end.running is None and end.left_after is None and is_orderly(end)):
                return
            if end.running is not None:
                self._tell(end, end.running)
            elif end.left_after is None and self._seen == before:  # nothing came of it: the next would end the same way
                raise OwnFault(
                    f"{self._file}: no test could be run: {describe_end(end)}: {last_lines(end.output)}",
                    hint=f"the whole output is in {self._log}",
                )

    def _tell(self, end: ChildEnd, test_id: str) -> None:
        reason = f"{describe_end(end)}: {last_lines(end.output, 12)}"
        seconds = round(time.monotonic() - end.running_since, 3) if end.running else 0.0
        outcome = "timeout" if end.cut == "timeout" else "crashed"
        test = UpstreamOutcome(id=test_id, outcome=outcome, reason=reason, seconds=seconds)
        write_outcome(self._outcomes, test, time.time())
        self._take(test)

    def _take(self, test: UpstreamOutcome) -> None:
        self._done.add(test.id)
        self._seen += 1
        self._on_test(test)

    def _on_event(self, event: Mapping[str, Any]) -> None:
        if event.get("event") == "finished":
            seconds = float(event["seconds"])
            self._take(
                UpstreamOutcome(id=event["id"], outcome=event["outcome"], reason=event["reason"], seconds=seconds)
            )

    def _child(self) -> ChildEnd:
        request = self._request
        self._children += 1
        outcomes = request.folder / f"{self._name}.{self._children}.jsonl"
        left_out = request.folder / f"{self._name}.done"
        left_out.write_text("\n".join(sorted(self._done)), encoding="utf-8")
        only = request.only or patterns_of(self._file)
        argv = [str(request.interpreter), "-m", "pytest", "-c", "../pytest.ini", "--rootdir", ".", "-q"]
        argv += ["-p", "mps_build_outcomes", "-p", "no:cacheprovider", "--mps-outcomes", str(outcomes)]
        argv += ["--mps-leave-out", str(left_out), "--mps-part", self._part, "--mps-memory", str(_LEAVE_BYTES)]
        argv += [word for pattern in only for word in ("--mps-only", pattern)]
        beside = request.environ.get("PYTHONPATH")
        paths = os.pathsep.join((str(_PLUGIN), str(request.tests), *([beside] if beside else ())))
        programs = f"{_programs(request)}{os.pathsep}{request.environ['PATH']}"
        environ = {**with_share(request.environ, request.jobs), "PYTHONPATH": paths, "PATH": programs}
        return run_child(
            Command(argv=(*argv, self._file), cwd=request.tests, environ=environ),
            log=self._log,
            outcomes=outcomes,
            limits=request.limits,
            on_event=self._on_event,
            is_stopped=self._is_stopped,
        )


def _programs(request: UpstreamRequest) -> Path:
    """Return a folder with what test_mps.py starts to ask a Mac for its memory; it says what a test may hold."""
    programs = request.folder / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "sysctl").write_text(
        f"#!/bin/sh\n# sysctl -n hw.memsize\necho {request.limits.memory_bytes}\n", encoding="utf-8"
    )
    (programs / "sysctl").chmod(0o755)
    return programs
