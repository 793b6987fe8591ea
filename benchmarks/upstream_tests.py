"""PyTorch's own tests on the simulated device, unchanged: how many pass, and why the others fail.

    nox -s benchmark -- upstream_tests [--recipe v2.6.0] [--macos 15.2] [--source TREE] [--only PATTERN] [--part I/N]
                                       [--jobs N] [--failed | --again | --sum] [--ran-on TEXT] [--write]

The files are those that the release's `test/run_test.py --mps` runs, and test_optim.py. With `--recipe torch==2.15.0`
it is the official wheel's own OpInfo database: each operator and dtype, forward and first gradient, mps against the
CPU, with the tolerances and failures that the wheel says upstream expects (consistency/test). Each test runs under the
watchdog of verify_mps: a crash or a hang costs that test, and the next goes on. What came of each stands in the folder
--record, and a test that has an outcome there is not run again: an interrupted run goes on, and parts of several
machines can be put together by copying their files into one folder. --failed asks again what failed, --again all;
--sum runs nothing and sums up what the folder holds. --write puts the figure into results.json and the counts into
upstream_tests.json. Exit 1: a failure without a reason, or no test was run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.cores import usable_cores
from mps_build.common.files import write_whole
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.workspace import work_folder
from mps_build.simulation import DEFAULT_MACOS
from mps_build.simulation.libraries import libraries_of
from mps_build.simulation.official import session
from mps_build.simulation.session import check_macos, provide, simulated_environ, upstream_tests
from mps_build.verify.suite.request import Limits, default_limit_bytes
from mps_build.verify.upstream.outcomes import BAD, UpstreamOutcome, read_outcomes, read_sizes
from mps_build.verify.upstream.run import FILES, PACKAGES, UpstreamRequest, run_upstream
from mps_build.verify.upstream.summary import Summary, explained, load_upstream_explanations, summed_up
from shared.record import record

COMMAND = "nox -s benchmark -- upstream_tests --write"
SUMMARY = Path(__file__).with_suffix(".json")
# A summary by the wheel's release.
WHEELS = Path(__file__).with_name("upstream_wheels.json")
CONSISTENCY = Path(__file__).parent / "consistency" / "test"
# What the wheel's own database, and pytest, need beside it.
BESIDE = ("pytest", "expecttest", "scipy")
# CPU seconds of a test below the emulator, and of a start.
TEST_SECONDS, START_SECONDS = 1.0, 60
START_LIMIT = 1200.0  # of a start below the emulator, on a machine that others use


def main() -> int:
    """Run what has no outcome yet; return 1 where a failure has no explanation, or no test was run."""
    given = _parser().parse_args()
    check_macos(given.macos)
    rows, console = load_upstream_explanations(), Console()
    is_wheel = given.recipe.startswith("torch")
    ready = session.prepare(session.Request(target=given.recipe), console) if is_wheel else None
    release = str(ready.wheel.version) if ready else find_recipe(given.recipe).version
    folder = (given.record or work_folder() / f"upstream-{release}-macos-{given.macos}").absolute()
    tested = {"release": release, "macos": given.macos}
    _check_same(folder, tested | ({"sha256": ready.wheel.sha256} if ready else {}))

    def on_test(test: UpstreamOutcome) -> None:
        if test.outcome in BAD:
            row = explained([test], rows, macos=given.macos)[test.id]
            print(f"{test.outcome} {test.id}: {row.id if row else 'NEW ' + test.error}", flush=True)

    if not given.sum:
        with ExitStack() as stack:
            where = _of_wheel(ready, given, stack, console) if ready else _of_source(given, release, console)
            run_upstream(_request(given, folder, where), on_test)
    tests = {test_id: test for test_id, test in read_outcomes(folder).items() if _is_tested(test_id, given.only)}
    day = datetime.now(timezone.utc).date().isoformat()
    sizes = read_sizes(folder)
    summary = summed_up(tests.values(), rows, sizes, release=release, macos=given.macos, date=day, ran_on=given.ran_on)
    if not summary.ran:
        raise SystemExit(f"no test was run: none in {folder} fits, or each left itself out")
    print(f"{summary.passed} of {summary.ran} passed; {len(summary.failing)} failed, {summary.new} without a reason")
    if given.write and ready:
        known = json.loads(WHEELS.read_text(encoding="utf-8")) if WHEELS.is_file() else {}
        known[release] = summary.model_dump(mode="json")
        write_whole(WHEELS, json.dumps(dict(sorted(known.items())), indent=1) + "\n")
    elif given.write:
        _write(summary)
    return 1 if summary.new else 0


def _check_same(folder: Path, tested: dict[str, str]) -> None:
    """Refuse to go on with the outcomes of another release, or of another macOS."""
    file = folder / "tested.json"
    if file.is_file() and (before := json.loads(file.read_text(encoding="utf-8"))) != tested:
        raise SystemExit(f"{folder} holds outcomes of {before}, not of {tested}: name another folder by --record")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps(tested) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Where:
    """What runs the tests, and which: `tests` is the folder that `files` are below."""

    interpreter: Path
    environ: Mapping[str, str]
    tests: Path
    files: tuple[str, ...]
    start_seconds: float = 300.0


def _of_source(given: argparse.Namespace, release: str, console: Console) -> _Where:
    """Return upstream's own files over the host code of a release."""
    source = given.source.absolute() if given.source else None
    built = provide(release, source=source, jobs=usable_cores(), reporter=console)
    libraries = libraries_of(built, packages=PACKAGES, folder=None, reporter=console)
    assert libraries is not None
    return _Where(
        interpreter=libraries / "bin/python",
        environ=simulated_environ(built, macos=given.macos, environ=os.environ, libraries=libraries),
        tests=source / "test" if source else upstream_tests(release, reporter=console),
        files=tuple((given.files or ",".join(FILES)).split(",")),
    )


def _of_wheel(ready: session.Official, given: argparse.Namespace, stack: ExitStack, console: Console) -> _Where:
    """Return the sweep over a wheel's own database; the kernel server runs until the stack ends."""
    beside = session.packages_beside(ready, BESIDE, console)
    part, count = given.part
    console.print(
        f"some 6,250 tests a release, of which part {part} of {count} is run: about {TEST_SECONDS:.0f} s of CPU each, "
        f"and {START_SECONDS} s for each process; `--part I/N` runs a share, and an interrupted run goes on"
    )
    variables = session.program_environ(ready, environ=os.environ, macos=given.macos)
    return _Where(
        interpreter=ready.python,
        environ={**variables, **stack.enter_context(session.served(ready)), "PYTHONPATH": str(beside)},
        tests=CONSISTENCY,
        files=tuple((given.files or "test_consistency.py").split(",")),
        start_seconds=START_LIMIT,
    )


def _request(given: argparse.Namespace, folder: Path, where: _Where) -> UpstreamRequest:
    tested = {test_id: test for test_id, test in read_outcomes(folder).items() if _is_tested(test_id, given.only)}
    failed = frozenset(test_id for test_id, test in tested.items() if test.outcome in BAD)
    return UpstreamRequest(
        interpreter=where.interpreter,
        environ=where.environ,
        tests=where.tests,
        files=where.files,
        folder=folder,
        limits=Limits(
            memory_bytes=default_limit_bytes() // given.jobs,
            case_seconds=given.seconds,
            start_seconds=where.start_seconds,
        ),
        only=tuple(map(escape, sorted(failed))) if given.failed else tuple(given.only),
        part=given.part,
        jobs=given.jobs,
        again=frozenset(tested) if given.again else failed if given.failed else frozenset(),
    )


def _is_tested(test_id: str, only: list[str]) -> bool:
    return not only or any(fnmatchcase(test_id, pattern) for pattern in only)


def _part(text: str) -> tuple[int, int]:
    number, parts = map(int, text.split("/"))
    if not 0 <= number < parts:
        raise ValueError(text)
    return number, parts


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="v2.6.0", help="a release's source, or torch==2.15.0: its official wheel")
    parser.add_argument("--macos", default=DEFAULT_MACOS)
    parser.add_argument("--source", type=Path, metavar="TREE", help="a PyTorch tree of the release, with its tests")
    parser.add_argument("--files", help="files below PyTorch's test folder")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="only tests that fit it")
    parser.add_argument("--part", type=_part, default=(0, 1), metavar="I/N", help="each N-th test, from the I-th on")
    parser.add_argument("--jobs", type=int, default=1, help="processes beside each other")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="where the outcomes are, and are written")
    parser.add_argument("--seconds", type=float, default=300, help="time limit of a test")
    parser.add_argument("--failed", action="store_true", help="ask only what failed before")
    parser.add_argument("--again", action="store_true", help="ask also what has an outcome")
    parser.add_argument("--sum", action="store_true", help="run nothing: sum up what --record holds")
    parser.add_argument("--ran-on", default="", metavar="TEXT", help="the machine it ran on, for the page")
    parser.add_argument("--write", action="store_true", help="put the figure into benchmarks/results.json")
    return parser


def _write(summary: Summary) -> None:
    write_whole(SUMMARY, summary.model_dump_json(indent=1) + "\n")
    record(
        "simulation.upstream_passed",
        [summary.passed / summary.ran],
        unit="share",
        command=COMMAND,
        target=">= 0.9; each other is explained",
        versions=f"torch {summary.release} as macOS {summary.macos}: {summary.passed} of {summary.ran} run, "
        f"of {summary.tests} in the files; {len(summary.failing) - summary.new} explained, {summary.new} not; "
        f"{summary.unknown} have no outcome yet" + (f"; ran on {summary.ran_on}" if summary.ran_on else ""),
    )


if __name__ == "__main__":
    sys.exit(main())
