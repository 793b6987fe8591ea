"""Processes times threads never exceed the cores: what each process is given, what the record keeps, what is slow."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fake_suites import judge_text
from mps_build.commands import simulate
from mps_build.common import cores as counted
from mps_build.common.console import Console
from mps_build.common.cores import THREAD_VARIABLES
from mps_build.common.errors import OwnFault
from mps_build.common.process import Command
from mps_build.common.records.device_record import Case, Concurrency, Estimate
from mps_build.kernels.execution import servers, verify_all
from mps_build.verify import device_suite, progress
from mps_build.verify.bisection import answers
from mps_build.verify.bisection.runner import Prepared
from mps_build.verify.device_suite import DeviceSuite
from mps_build.verify.progress import Load, Progress, likely_cause
from mps_build.verify.record_builder import RecordBuilder
from mps_build.verify.request import VerifyRequest
from mps_build.verify.suite.outcomes import SuiteRun
from mps_build.verify.suite.request import Limits
from mps_build.verify.upstream.run import UpstreamRequest, run_upstream
from mps_build.verify.verification import RunContext
from rich.console import Console as RichConsole

GIB = 1 << 30
# Plays torch and its suite: it writes what it is given, and answers one case.
CHILD = """#!/bin/sh
outcomes= shard=0
while [ $# -gt 0 ]; do
  case $1 in --outcomes) outcomes=$2 ;; --shard) shard=${2%%/*} ;; esac
  shift
done
echo "$OMP_NUM_THREADS $MKL_NUM_THREADS $OPENBLAS_NUM_THREADS $VECLIB_MAXIMUM_THREADS $DEVICE_SUITE_THREADS \
$TORCHINDUCTOR_COMPILE_THREADS" >>FOLDER/given
cat >>"$outcomes" <<EVENTS
{"event": "session", "threads": ${OMP_NUM_THREADS:-64}}
{"event": "collected", "ids": ["case-$shard"], "files": ["test_smoke_a.py"]}
{"event": "started", "id": "case-$shard", "layer": "smoke"}
{"event": "finished", "id": "case-$shard", "layer": "smoke", "outcome": "passed", "seconds": 0.1}
{"event": "end"}
EVENTS
"""
ALL = 6


def fake_torch(folder: Path) -> Path:
    child = folder / "python"
    child.write_text(CHILD.replace("FOLDER", str(folder)))
    child.chmod(0o755)
    return child


def ask(
    folder: Path, monkeypatch: pytest.MonkeyPatch, cores: int, request: VerifyRequest, environ: dict[str, str]
) -> tuple[list[int], Concurrency, str]:
    """Return the threads that each process was given, what the record says of them, and what was printed."""
    monkeypatch.setattr(device_suite, "usable_cores", lambda: cores)
    monkeypatch.setattr(device_suite, "total_bytes", lambda: 512 * GIB)
    monkeypatch.setattr(device_suite, "judge_text_on", lambda host, torch: judge_text)
    printed = io.StringIO()
    builder = RecordBuilder(gpu={"memory_bytes": 80 * GIB} if request.device == "cuda" else {})
    context = RunContext(
        target=cast(
            Any,
            SimpleNamespace(
                interpreter=SimpleNamespace(executable=fake_torch(folder)),
                environ=SimpleNamespace(variables={"PATH": os.environ["PATH"], **environ}),
            ),
        ),
        host=cast(Any, None),
        known=(),
        folder=folder / "run",
        builder=builder,
        run=SuiteRun(),
        on_case=lambda run, case: None,
        on_estimate=lambda estimate: None,
        console=Console(rich=RichConsole(file=printed, width=200)),
    )
    suite = DeviceSuite(request)
    suite.files = (folder / "test_smoke_a.py",)
    suite.run(context)
    rows = [line.split() for line in (folder / "given").read_text().splitlines()]
    assert all(len(row) == ALL and len(set(row)) == 1 for row in rows), rows
    together = builder.concurrency_of(context.run)
    assert together is not None
    return [int(row[0]) for row in rows], together, printed.getvalue()


@pytest.mark.parametrize(
    ("device", "cores", "processes", "threads"),
    [
        ("cpu", 1, 1, 1),
        ("cpu", 2, 2, 1),
        ("cpu", 8, 8, 1),
        ("cpu", 16, 16, 1),
        ("cpu", 64, 16, 4),
        ("mps", 1, 1, 1),
        ("mps", 2, 1, 2),
        ("mps", 8, 4, 2),
        ("mps", 16, 8, 2),
        ("cuda", 64, 8, 8),
    ],
)
def test_each_process_gets_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, cores: int, processes: int, threads: int
) -> None:
    reported, together, printed = ask(tmp_path, monkeypatch, cores, VerifyRequest(device=device), {})

    assert reported == [threads] * processes
    assert sum(reported) <= cores
    assert together == Concurrency(cores=cores, processes=processes, threads=threads)
    assert (f"{processes} processes, {threads} thread" in printed) == (processes > 1)


@pytest.mark.parametrize(
    ("request_", "environ", "processes", "threads"),
    [
        (VerifyRequest(device="cpu", only=("a",)), {}, 1, 16),
        (VerifyRequest(device="mps", quick=True), {}, 4, 4),  # each imports torch for longer than it computes
        (VerifyRequest(device="cpu", jobs=3), {}, 3, 5),
        (VerifyRequest(device="cpu"), {"OMP_NUM_THREADS": "6"}, 2, 6),  # so many have room
        (VerifyRequest(device="mps"), {"MKL_NUM_THREADS": "16"}, 1, 16),
        (VerifyRequest(device="cpu", jobs=4), {"OMP_NUM_THREADS": "16"}, 4, 16),  # both are the user's word
    ],
)  # fmt: skip
def test_what_the_user_set_stays(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request_: VerifyRequest,
    environ: dict[str, str],
    processes: int,
    threads: int,
) -> None:
    reported, together, _ = ask(tmp_path, monkeypatch, 16, request_, environ)

    assert reported == [threads] * processes
    assert together == Concurrency(cores=16, processes=processes, threads=threads)


class _Started(Exception):
    pass


def test_the_judge_and_the_other_servers_of_kernels_have_one_thread_for_each_of_as_many_workers_as_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, str]] = []

    class Watched:
        def __init__(self, command: Command, *, log: Path) -> None:
            seen.append(dict(command.environ or {}))

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(servers, "watched", Watched)
    monkeypatch.setattr(servers, "build_runtime", lambda cache: b"")
    monkeypatch.setattr(verify_all, "usable_cores", lambda: 16)
    with servers.servers(tmp_path, Path("python"), {"PATH": "/bin"}):
        pass

    assert [[each[name] for name in THREAD_VARIABLES] for each in seen] == [["1"] * 4] * 3
    assert verify_all.workers_of(cast(Any, SimpleNamespace(jobs=None))) == 16


@pytest.fixture(name="quota_of_two")
def _quota_of_two(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(counted, "usable_cores", lambda: 2)
    monkeypatch.setattr(counted, "visible_cores", lambda: 64)
    yield


@pytest.mark.usefixtures("quota_of_two")
def test_a_simulated_program_gets_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, str]] = []

    def simulated_environ(built: object, *, environ: dict[str, str], **_: object) -> dict[str, str]:
        seen.append(environ)
        raise _Started

    monkeypatch.setattr(simulate, "provide", lambda *_, **__: None)
    monkeypatch.setattr(simulate, "libraries_of", lambda *_, **__: None)
    monkeypatch.setattr(simulate, "program_argv", lambda *_, **__: ())
    monkeypatch.setattr(simulate, "simulated_environ", simulated_environ)
    options = simulate.Options(
        recipe="v2.6.0", source=None, torch=None, macos="15.2", rebuild=False, jobs=1, packages=(), venv=None,
        timing=None, trust=False, interpreter=None, as_mac=False, cache_key=False, command=("python", "a.py"),
    )  # fmt: skip
    with pytest.raises(_Started):
        simulate.run(options, Console())

    assert [seen[0][name] for name in THREAD_VARIABLES] == ["2"] * 4


@pytest.mark.usefixtures("quota_of_two")
def test_a_question_of_bisect_gets_the_quota(tmp_path: Path) -> None:
    argv = ("sh", "-c", f'echo "$OMP_NUM_THREADS" >{tmp_path}/given')
    predicate = answers.Predicate(argv=argv, seconds=30, log=tmp_path / "log", environ=os.environ)

    assert predicate.ask(Prepared(subject="2.6.0")).word == "good"
    assert (tmp_path / "given").read_text() == "2\n"


@pytest.mark.usefixtures("quota_of_two")
def test_processes_of_upstream_tests_share_the_cores(tmp_path: Path) -> None:
    child = tmp_path / "python"
    child.write_text(f'#!/bin/sh\necho "$OMP_NUM_THREADS" >>{tmp_path}/given\nexit 3\n')
    child.chmod(0o755)
    (tmp_path / "test").mkdir()
    request = UpstreamRequest(
        interpreter=child,
        environ={"PATH": os.environ["PATH"]},
        tests=tmp_path / "test",
        files=("test_mps.py",),
        folder=tmp_path / "record",
        limits=Limits(memory_bytes=4 * GIB),
        jobs=2,
    )
    with pytest.raises(OwnFault):
        run_upstream(request)

    assert set((tmp_path / "given").read_text().split()) == {"1"}


# The progress line.

FILE, EACH = "test_models.py", 0.01
SHARED_BADLY = Concurrency(cores=16, processes=8, threads=16)


def shown(monkeypatch: pytest.MonkeyPatch, times: float, together: Concurrency) -> tuple[str, Progress]:
    """Return what is printed of 400 cases that took so many times what was estimated."""
    monkeypatch.setattr(progress, "load_now", lambda: Load(running=3, free_memory=0.5))
    printed = io.StringIO()
    console = Console(rich=RichConsole(file=printed, width=300))
    console.plain_interval_seconds = 0.0
    run = SuiteRun(files={f"case-{number}": FILE for number in range(1000)}, collected=1000)
    line = Progress(console, (), lambda run: together)
    seconds = 1000 * EACH / together.processes
    line.expect(Estimate(cases=1000, keys=10, low_seconds=seconds, high_seconds=seconds))
    for number in range(400):
        case = Case(id=f"case-{number}", layer="layouts", outcome="passed", seconds=times * EACH)
        run.cases.append(case)
        line.show(run, case)
    return printed.getvalue(), line


def test_the_progress_line_notices_a_run_that_is_ten_times_slower_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    printed, line = shown(monkeypatch, 40.0, SHARED_BADLY)

    said = (
        "40 times slower than estimated: 8 processes with 16 threads each on 16 cores: unset OMP_NUM_THREADS and --jobs"
    )
    assert line.slow == said
    assert printed.count("warning") == 1
    assert f"{said}  last: case-399" in printed.replace("\n", " ")


def test_a_run_that_is_somewhat_slower_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    printed, line = shown(monkeypatch, 6.0, SHARED_BADLY)

    assert line.slow is None
    assert "slower" not in printed


def test_one_case_that_hangs_is_no_slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    _, line = shown(monkeypatch, 1.0, SHARED_BADLY)
    run = SuiteRun(files={"a": FILE})
    for _ in range(100):
        line.show(run, Case(id="a", layer="layouts", outcome="passed", seconds=EACH))
    line.show(run, Case(id="a", layer="layouts", outcome="passed", seconds=9.0))
    for outcome in ("timeout", "skipped"):
        for _ in range(200):
            line.show(run, Case(id="a", layer="layouts", outcome=outcome, seconds=900.0))

    assert line.slow is None


@pytest.mark.parametrize(
    ("together", "load", "said"),
    [
        (SHARED_BADLY, Load(running=2, free_memory=0.01), "8 processes with 16 threads each on 16 cores"),
        (Concurrency(cores=16, processes=8, threads=2), Load(running=2, free_memory=0.01), "memory is short"),
        (Concurrency(cores=16, processes=8, threads=2), Load(running=60, free_memory=0.5), "60 processes want"),
        (Concurrency(cores=16, processes=8, threads=2), Load(running=16, free_memory=0.5), "the machine is slow"),
        (None, Load(running=60, free_memory=0.5), "the machine is slow"),
    ],
)  # fmt: skip
def test_the_likely_cause_is_named(together: Concurrency | None, load: Load, said: str) -> None:
    assert said in likely_cause(together, load)


# A real torch, where there is one.

TORCH = os.environ.get("MPS_BUILD_TEST_TORCH") or os.environ.get("MPS_BUILD_TORCH_PYTHON") or ""


@pytest.mark.skipif(not TORCH, reason="needs torch: nox -s tests -- --tier torch")
def test_torch_has_the_threads_that_its_process_is_given(tmp_path: Path) -> None:
    from mps_build.verify.suite.driver import run_suite
    from mps_build.verify.suite.request import SuiteRequest

    suite = Path(__file__).parents[2] / "device"
    request = SuiteRequest(
        interpreter=Path(TORCH),
        environ={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
        ini=suite / "pytest.ini",
        files=(suite / "regressions" / "test_norms.py",),
        device="cpu",
        folder=tmp_path,
        limits=Limits(memory_bytes=8 * GIB),
        only=("issue-131750",),
        threads=3,
    )
    run = run_suite(request, judge_text=judge_text, on_case=lambda run, case: None)

    assert run.threads == 3
    assert [case.outcome for case in run.cases] == ["passed"]
