"""pytest's side of PyTorch's own tests: chooses this process's part, and says at once what came of each test.

It stands on the path of the interpreter that has torch, and knows nothing of mps_build.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

_PAGE = 4096
# Which failures these tests expect, and which they leave out, depends on the macOS that Python says it runs on.
platform.mac_ver = lambda *_, **__: (os.environ["MPS_BUILD_MACOS"], ("", "", ""), "arm64")


def pytest_addoption(parser: Any) -> None:
    """Let the driver say where outcomes go, and which tests are this process's."""
    group = parser.getgroup("mps_build")
    group.addoption("--mps-outcomes", metavar="FILE.jsonl", required=True, help="append one JSON line per event")
    group.addoption("--mps-leave-out", metavar="FILE", required=True, help="the tests that are not run, one a line")
    group.addoption("--mps-only", metavar="PATTERN", action="append", default=[], help="only tests that fit one")
    group.addoption("--mps-part", metavar="I/N", default="0/1", help="only each N-th test, from the I-th on")
    group.addoption("--mps-memory", metavar="BYTES", type=int, required=True, help="leave the rest to a new process")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: Any) -> None:
    """Write down each outcome, after all other plugins are there."""
    config.pluginmanager.register(_Outcomes(config))


class _Outcomes:
    """Keeps what is known of the running test, and writes a line when it begins and ends."""

    def __init__(self, config: Any) -> None:
        self._file = Path(config.getoption("--mps-outcomes")).open("ab", buffering=0)  # noqa: SIM115 - to the end
        self._left_out = frozenset(Path(config.getoption("--mps-leave-out")).read_text().splitlines())
        self._only = config.getoption("--mps-only")
        self._part, self._parts = map(int, config.getoption("--mps-part").split("/"))
        self._memory = config.getoption("--mps-memory")
        self._reports: list[Any] = []
        self._began = 0.0

    def _write(self, event: str, **facts: Any) -> None:
        self._file.write(json.dumps({"event": event, "time": time.time(), **facts}).encode() + b"\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        mine = [item for item in items if any(fnmatchcase(item.nodeid, each) for each in self._only)]
        self._write("collected", files=dict(Counter(item.nodeid.partition("::")[0] for item in mine)), only=self._only)
        mine = mine[self._part :: self._parts]
        items[:] = [item for item in mine if item.nodeid not in self._left_out]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._reports, self._began = [], time.monotonic()
        self._write("started", id=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._reports.append(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        outcome, reason = _outcome(self._reports)
        seconds = round(time.monotonic() - self._began, 3)
        self._write("finished", id=nodeid, outcome=outcome, reason=reason, seconds=seconds)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Any:
        report = yield
        if nextitem is not None and int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE > self._memory:
            self._write("leave", after=item.nodeid)
            pytest.exit("the rest is for a new process", returncode=0)
        return report

    def pytest_sessionfinish(self) -> None:
        self._write("end")


def _outcome(reports: list[Any]) -> tuple[str, str]:
    """Return what came of a test's three phases; a failure that the test expects is `xfailed`."""
    for report in reports:
        if report.failed:
            return "failed", str(report.longrepr)[-3000:]
    for report in reports:
        if report.skipped:
            if hasattr(report, "wasxfail"):
                return "xfailed", str(report.wasxfail)
            longrepr = report.longrepr
            return "skipped", str(longrepr[2] if isinstance(longrepr, tuple) else longrepr)
    return ("passed", "") if any(report.when == "call" for report in reports) else ("failed", "no outcome")
