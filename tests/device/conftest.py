"""pytest's side of the device suite: options, which cases run, and what is written about each."""

from __future__ import annotations

import gc
import os
import sys
import time
from pathlib import Path
from typing import Any

# Chosen when libtorch loads: with it, a missing operator would run on the CPU and be compared with the CPU.
os.environ.pop("PYTORCH_ENABLE_MPS_FALLBACK", None)
sys.path.insert(0, str(Path(__file__).parent))

import pytest
import torch

from device_suite.cases import Case
from device_suite.compare import Mismatch
from device_suite.known import KnownIssuesError, load_known
from device_suite.outcomes import OutcomeLog, judge
from device_suite.plants import Plant, PlantError
from device_suite.runs import Bench
from device_suite.selection import Selection, Shard, load_quick, prepare_device, why_not_here
from device_suite.states import Refused, run_case
from device_suite.touch import TouchMap, TouchRecorder

TOUCH_MAP = Path(__file__).parent / "touch_map.json"
# The references are small: more threads wait for each other. MKL's LU of a batch is wrong or hangs with more than one:
# https://github.com/pytorch/pytorch/issues/142815
REFERENCE_THREADS = 1 if torch.backends.mkl.is_available() else 4
QUICK = Path(__file__).parent / "quick.json"


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("device suite")
    group.addoption("--device", default="mps", help="mps, cuda, or cpu (a rehearsal)")
    group.addoption("--full", action="store_true", help="also cases that need memory or minutes")
    group.addoption("--quick", action="store_true", help="only the cases that notice most in a minute (quick.json)")
    group.addoption("--only", default="", metavar="ID,...", help="only these cases (ids or patterns)")
    group.addoption("--op", default="", metavar="NAME", help="only cases that dispatch this operator: aten.add.Tensor")
    group.addoption("--after", default="", metavar="ID", help="only cases after this one, in the file's order")
    group.addoption("--skip-ids", default="", metavar="ID,...", help="without these cases")
    group.addoption("--shard", default="", metavar="I/N", help="only this part of the cases, 0/N to N-1/N")
    group.addoption("--plant", default="", metavar="FILE.py:NAME", help="a fault to hold around each device run")
    group.addoption("--known", default="", metavar="FILE.json", help="active known issues")
    group.addoption("--outcomes", default="", metavar="FILE.jsonl", help="append one JSON line per event")
    group.addoption("--record-touch", default="", metavar="FILE", help="write which operators each case dispatches")
    group.addoption("--seed", type=int, default=0, help="seed of the host's data")


class Run:
    """What the options ask for, made ready once per process."""

    def __init__(self, config: Any) -> None:
        option = config.getoption
        self.device = prepare_device(option("--device"))
        if self.device.type != "cpu":
            torch.set_num_threads(min(torch.get_num_threads(), REFERENCE_THREADS))
        self.log = OutcomeLog(Path(option("--outcomes")) if option("--outcomes") else None)
        self.known = load_known(Path(option("--known"))) if option("--known") else ()
        self.plant = Plant(option("--plant")) if option("--plant") else None
        self.recorder = TouchRecorder() if option("--record-touch") else None
        self.touched: dict[str, list[str]] = {}
        self.spent: dict[str, float] = {}
        self.full = bool(option("--full"))
        self.selection = Selection(
            only=option("--only"),
            after=option("--after"),
            without=option("--skip-ids"),
            operator=option("--op"),
            touch=TouchMap.load(TOUCH_MAP) if option("--op") else TouchMap({}),
            quick=load_quick(QUICK) if option("--quick") else None,
            shard=Shard.of(option("--shard")),
        )
        around = self.plant.maker if self.plant else self.recorder.maker if self.recorder else None
        self.bench = Bench(self.device, around=around, seed=option("--seed"))
        self.last: Case | None = None
        self.item: Any = None

    def leave(self, session: Any, after: Case) -> None:
        """End this process after a case: the driver starts another one for the rest."""
        self.log.write("leave", after=after.id)
        session.shouldstop = f"the rest is for another process, after {after.id}"

    def must_leave(self, case: Case, failed: bool) -> bool:
        """Say whether what comes after a case needs another process."""
        if not self.log.read_by_a_driver:
            return False
        return case.alone or (failed and self.device.type != "cpu" and not self.bench.still_serves())


def pytest_configure(config: Any) -> None:
    try:
        config.device_run = Run(config)
        config.pluginmanager.register(_Imports(config.device_run.log))
    except (PlantError, KnownIssuesError, ValueError) as wrong:
        raise pytest.UsageError(str(wrong)) from wrong


class _Imports:
    """Says of each file that it cannot be imported: the other files' cases are asked all the same."""

    def __init__(self, log: OutcomeLog) -> None:
        self._log = log

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._log.write("uncollected", file=Path(report.nodeid).name, text=str(report.longrepr)[-2000:])


def pytest_sessionstart(session: Any) -> None:
    run = session.config.device_run
    run.log.write(
        "session",
        torch=torch.__version__,
        git=getattr(torch.version, "git_version", None),
        device=str(run.device),
        threads=torch.get_num_threads(),
        seed=run.bench.seed,
        plant=run.plant.name if run.plant else None,
    )


def pytest_generate_tests(metafunc: Any) -> None:
    if "case" not in metafunc.fixturenames:
        return
    run = metafunc.config.device_run
    chosen = run.selection.choose(metafunc.module.cases.listed(full=run.full))
    metafunc.parametrize(
        "case",
        [
            pytest.param(case, id=case.id, marks=[pytest.mark.issue(*case.issues), pytest.mark.layer(case.layer)])
            for case in chosen
        ],
    )


def pytest_collection_modifyitems(items: list[Any]) -> None:
    # Where nothing of a file is chosen, pytest makes one skipped item without a case; no item is what is meant.
    items[:] = [
        item for item in items if not hasattr(item, "callspec") or isinstance(item.callspec.params.get("case"), Case)
    ]


def pytest_collection_finish(session: Any) -> None:
    items = [item for item in session.items if hasattr(item, "callspec")]
    ids = [item.callspec.params["case"].id for item in items]
    session.config.device_run.log.write("collected", ids=ids, files=[Path(item.location[0]).name for item in items])
    gc.collect()
    gc.freeze()  # what was collected stays to the end: it need not be walked again after every few cases


def pytest_runtest_teardown(item: Any, nextitem: Any) -> None:
    if nextitem is not None and nextitem.location[0] != item.location[0]:
        item.config.device_run.bench.release()


def pytest_runtest_setup(item: Any) -> None:
    item.config.device_run.item = item


@pytest.fixture(scope="session")  # one for all: a fixture for each of 16,000 cases takes seconds
def ask(pytestconfig: Any) -> Any:
    """Return the function that runs a case, judges it and writes its line."""
    run: Run = pytestconfig.device_run

    def asked(case: Case) -> None:
        reason = why_not_here(case, device=run.device, full=run.full)
        if case.alone and reason is None and run.last is not None and run.log.read_by_a_driver:
            run.leave(run.item.session, run.last)
            return
        run.last = case
        issue = next((row for row in run.known if row.covers(case.id)), None)
        run.log.started(case)
        begun, error = time.perf_counter(), {}
        wrong: BaseException | None = None
        try:
            if reason is None:
                error = run_case(case, run.bench).as_json()
        except Refused as refused:
            reason = str(refused)
        except pytest.skip.Exception as skipped:
            reason = str(skipped)
        except Exception as raised:
            wrong = raised
        if run.recorder is not None:
            run.touched[case.id] = run.recorder.take()
        seconds = time.perf_counter() - begun
        file = Path(run.item.location[0]).name
        run.spent[file] = run.spent.get(file, 0.0) + seconds
        if reason is not None:
            run.log.finished(case, "skipped", reason, {}, seconds)
            pytest.skip(reason)
        if isinstance(wrong, Mismatch) and wrong.error is not None:
            error = wrong.error.as_json()
        outcome = judge(wrong is not None, issue)
        text = "" if wrong is None else f"{type(wrong).__name__}: {wrong}"
        run.log.finished(case, outcome, text, error, seconds)
        if run.must_leave(case, wrong is not None):
            run.leave(run.item.session, case)
        if outcome == "failed" and run.plant is not None:
            run.item.session.shouldstop = f"the plant is caught by {case.id}"
        if outcome == "known":
            pytest.xfail(f"{issue.id if issue else ''}: {text}")
        if wrong is not None:
            raise wrong

    return asked


def pytest_sessionfinish(session: Any) -> None:
    run = session.config.device_run
    if run.plant is not None:
        run.log.write("plant", name=run.plant.name, hits=run.plant.hits)
    run.log.write("files", seconds={file: round(seconds, 2) for file, seconds in run.spent.items()})
    if run.recorder is not None:
        TouchMap(run.touched).save(Path(session.config.getoption("--record-touch")))
    run.log.write("end")
