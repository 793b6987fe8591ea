"""pytest's side of the device suite: the options, each case as an item, and what is said of it."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from pathlib import Path
from typing import Any

# Chosen when libtorch loads: with it, a missing operator would run on the CPU and be compared with the CPU.
os.environ.pop("PYTORCH_ENABLE_MPS_FALLBACK", None)

import pytest

import operators
import transforms
from engine import states
from engine.cases import Case, Cases
from engine.compare import Mismatch
from engine.faults import FaultError
from engine.known import KnownIssuesError
from engine.outcomes import OutcomeLog
from engine.session import Session


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("device suite")
    group.addoption("--device", default="mps", help="mps, cuda, or cpu (a rehearsal)")
    group.addoption("--list", action="store_true", help="only say what is described: each operator, by file")
    group.addoption("--full", action="store_true", help="also cases that need memory or minutes")
    group.addoption("--quick", action="store_true", help="the first of the core, and drawn cases up to 2000 graphs")
    group.addoption("--layer", action="append", default=[], metavar="NAME,...", help="only these layers")
    group.addoption("--cases", type=int, default=0, metavar="N", help="so many cases in all (default 8000)")
    group.addoption("--keys", type=int, default=0, metavar="N", help="so many graphs in all (default 10000)")
    group.addoption("--time", default="", metavar="10m", help="until this time is over: seconds, or 10m, or 1h")
    group.addoption("--no-estimate", action="store_true", help="do not say what the run will take")
    group.addoption("--only", action="append", default=[], metavar="ID,...", help="only these cases (ids or patterns)")
    group.addoption("--op", default="", metavar="NAME", help="only cases that dispatch this operator: aten.add.Tensor")
    group.addoption("--after", default="", metavar="ID", help="only cases after this one, in the file's order")
    group.addoption("--done", default="", metavar="FILE.json", help="without the cases of this list of ids")
    group.addoption("--skip-ids", action="append", default=[], metavar="ID,...", help="without these cases")
    group.addoption("--shard", default="", metavar="I/N", help="only this part of the cases, 0/N to N-1/N")
    group.addoption("--inject", default="", metavar="FILE.py:NAME", help="a fault to hold around each device run")
    group.addoption("--plant", dest="inject", default="", help=argparse.SUPPRESS)
    group.addoption("--known", default="", metavar="FILE.json", help="active known issues")
    group.addoption("--outcomes", default="", metavar="FILE.jsonl", help="append one JSON line per event")
    group.addoption("--seed", type=int, default=0, help="seed of the host's data")


def pytest_cmdline_main(config: Any) -> int | None:
    """List what is described, and end: no case is collected, and no device is needed."""
    if not config.option.list:
        return None
    print(operators.listing(), f"transforms/: {', '.join(transforms.known())}", sep="\n")
    return 0


class CaseItem(pytest.Item):
    """One case. Not a parametrised function: fixtures and parameters of 16,000 functions take seconds."""

    def __init__(self, *, case: Case, **fields: Any) -> None:
        super().__init__(**fields)
        self.case = case
        self.add_marker(pytest.mark.issue(*case.issues))
        self.add_marker(pytest.mark.layer(case.layer))

    def runtest(self) -> None:
        self.config.device_run.ask(self.case, self)

    def reportinfo(self) -> Any:
        return self.path, None, self.name

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Tell what is wrong; where, if that is in the case: the lines of pytest and of the comparison say nothing."""
        says_it_all = isinstance(excinfo.value, Mismatch) and excinfo.value.__cause__ is None
        excinfo.traceback = excinfo.traceback.cut(path=self.path).cut(path=states.__file__)
        return excinfo.getrepr(style="value" if says_it_all else "short")


class _Nothing(pytest.File):
    """A file of which the options choose no case: it is not imported."""

    def collect(self) -> Any:
        return []


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> Any:
    left_out = parent.config.device_run.selection.leaves_out(module_path)
    return _Nothing.from_parent(parent, path=module_path) if left_out else None


def pytest_pycollect_makeitem(collector: Any, name: str, obj: Any) -> Any:
    if name != "cases" or not isinstance(obj, Cases):
        return None
    chosen = collector.config.device_run.listed(obj)
    return [CaseItem.from_parent(collector, name=f"test_case[{case.id}]", case=case) for case in chosen]


def pytest_configure(config: Any) -> None:
    if any(word.partition("=")[0] == "--plant" for word in config.invocation_params.args):
        print("note: --plant is now --inject; the old name goes with the next release", file=sys.stderr)
    try:
        config.device_run = Session(config.getoption)
        config.pluginmanager.register(_Imports(config.device_run.log))
    except (FaultError, KnownIssuesError, ValueError, OSError) as wrong:
        raise pytest.UsageError(str(wrong)) from wrong


class _Imports:
    """Says of each file that it cannot be imported: the other files' cases are run all the same."""

    def __init__(self, log: OutcomeLog) -> None:
        self._log = log

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._log.write("uncollected", file=Path(report.nodeid).name, text=str(report.longrepr)[-2000:])


def pytest_sessionstart(session: Any) -> None:
    session.config.device_run.begin()


def pytest_collection_finish(session: Any) -> None:
    items = [item for item in session.items if isinstance(item, CaseItem)]
    run = session.config.device_run
    if not session.testsfailed:  # a file that cannot be imported may have them
        try:
            run.check_names()
        except ValueError as wrong:
            raise pytest.UsageError(str(wrong)) from wrong
    run.log.write("collected", ids=[item.case.id for item in items], files=[item.path.name for item in items])
    if not items and not session.testsfailed:
        print("no case: the options together choose none", flush=True)
    if not session.config.option.collectonly:
        run.tell_estimate([item.case for item in items])
    gc.collect()
    gc.freeze()  # what was collected stays to the end: it need not be walked again after every few cases


def pytest_runtest_protocol(item: Any, nextitem: Any) -> bool:
    """Run an item in one phase: a case has nothing to set up or to tear down, and three phases take seconds."""
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reraise = (pytest.exit.Exception, KeyboardInterrupt)
    call = pytest.CallInfo.from_call(lambda: hook.pytest_runtest_call(item=item), "call", reraise=reraise)
    report = hook.pytest_runtest_makereport(item=item, call=call)
    hook.pytest_runtest_logreport(report=report)
    if report.failed:
        hook.pytest_exception_interact(node=item, call=call, report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    if nextitem is not None and nextitem.path != item.path:
        item.config.device_run.bench.release()
    return True


def pytest_sessionfinish(session: Any) -> None:
    session.config.device_run.end()
