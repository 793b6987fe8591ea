"""Several processes beside each other: every case once, a crash costs one case, a machine at fault ends all."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_suites import DEATHS, drive, outcomes
from mps_build.common.records.device_record import Case
from mps_build.verify.device_suite import jobs_of
from mps_build.verify.request import VerifyRequest
from mps_build.verify.suite.driver import run_beside
from mps_build.verify.suite.outcomes import OnCase, SuiteRun
from mps_build.verify.suite.request import Limits, Room, SuiteRequest

MANY = "".join(f"def test_{number}(): assert {number} != 5\n" for number in range(9))


def test_every_case_is_asked_once_and_a_file_that_cannot_be_imported_is_named_once(tmp_path: Path) -> None:
    run = drive(tmp_path, MANY, "import no_such_module\n", "def test_a(): pass\n", jobs=3)

    asked = {f"test_{n}": "failed" if n == 5 else "passed" for n in range(9)} | {"test_a": "passed"}
    assert outcomes(run) == asked | {"test_fake_1::collection": "crashed"}
    assert len(run.cases) == 11
    assert run.collected == 10
    assert run.bad == 2
    assert set(run.files) >= asked.keys()


def test_processes_run_at_the_same_time(tmp_path: Path) -> None:
    met = "def test_{0}():\n    import pathlib, time\n    here = pathlib.Path({2!r})\n    (here / '{0}').touch()\n" + (
        "    while not (here / '{1}').exists():\n        time.sleep(0.05)\n"
    )
    run = drive(tmp_path, met.format("a", "b", str(tmp_path)) + met.format("b", "a", str(tmp_path)), jobs=2)

    assert outcomes(run) == {"test_a": "passed", "test_b": "passed"}


def test_a_crash_costs_one_case(tmp_path: Path) -> None:
    run = drive(tmp_path, MANY + f"def test_dies():\n    {DEATHS['abort']}\n" + "def test_behind(): pass\n", jobs=2)

    assert outcomes(run)["test_dies"] == "crashed"
    assert outcomes(run)["test_behind"] == "passed"
    assert len(run.cases) == 11


@pytest.mark.slow  # three processes, as the test of every case
def test_more_processes_than_cases_is_no_error(tmp_path: Path) -> None:
    assert outcomes(drive(tmp_path, "def test_a(): pass\n", jobs=4)) == {"test_a": "passed"}


def test_a_machine_at_fault_ends_all(tmp_path: Path) -> None:
    die = "import os; os.write(2, b'The MPS backend is supported on MacOS 12.3+'); os._exit(1)"
    run = drive(tmp_path, f"def test_a():\n    {die}\ndef test_b():\n    import time; time.sleep(300)\n", jobs=2)

    assert run.stopped == "mps_unavailable"
    assert "test_b" not in outcomes(run)  # whoever waits for it sees it pass


def test_an_interruption_ends_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mps_build.verify.suite import driver

    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(driver, "_sum_up", broken)
    done = tmp_path / "done"
    slow = f"def test_b():\n    import pathlib, time; time.sleep(300)\n    pathlib.Path({str(done)!r}).touch()\n"
    with pytest.raises(KeyboardInterrupt):
        drive(tmp_path, f"def test_a(): pass\n{slow}", jobs=2)

    assert not done.exists()


def test_each_of_many_cases_costs_as_little_as_one_of_few(tmp_path: Path) -> None:
    """Of 33,000 cases it took 208 s in the process that reads what eight others report: they waited for it."""

    def report(request: SuiteRequest, run: SuiteRun, on_case: OnCase, is_stopped: Callable[[], bool]) -> None:
        part, parts = map(int, request.shard.split("/"))
        run.files = {f"case-{number}": "test_a.py" for number in range(part, 12_000, parts)}
        for case_id in run.files:
            run.cases.append(Case(id=case_id, layer="smoke", outcome="passed"))
            on_case(run, run.cases[-1])

    request = SuiteRequest(
        interpreter=Path(sys.executable),
        environ={},
        ini=tmp_path / "pytest.ini",
        files=(tmp_path / "test_a.py",),
        device="cpu",
        folder=tmp_path,
        limits=Limits(memory_bytes=8 << 30),
        jobs=8,
    )
    run, begun = SuiteRun(), time.process_time()
    run_beside(request, report, run, lambda run, case: None)

    assert len(run.cases) == len(run.files) == 12_000
    assert time.process_time() - begun < 4  # 0.3 s here; 25 s before


ROOM = Room(cores=16, memory=128 << 30, device_memory=80 << 30)


@pytest.mark.parametrize(
    ("room", "jobs"),
    [
        (ROOM, 8),
        (Room(cores=64, memory=512 << 30, device_memory=80 << 30), 8),
        (Room(cores=16, memory=12 << 30, device_memory=80 << 30), 3),
        (Room(cores=16, memory=128 << 30, device_memory=8 << 30), 2),
        (Room(cores=8, memory=8 << 30), 1),
        (Room(cores=10, memory=32 << 30), 4),
        (Room(cores=1, memory=2 << 30), 1),
    ],
)
def test_the_number_of_processes_follows_from_the_machine(room: Room, jobs: int) -> None:
    assert jobs_of(VerifyRequest(), room) == jobs


@pytest.mark.parametrize("chosen", [{"full": True}, {"only": ("a",)}, {"op": "aten.add.Tensor"}, {"fault": "f.py:a"}])
def test_what_is_small_or_large_has_one_process(chosen: dict[str, object]) -> None:
    assert jobs_of(VerifyRequest(**chosen), ROOM) == 1  # type: ignore[arg-type]


def test_what_was_asked_holds() -> None:
    assert jobs_of(VerifyRequest(jobs=3, full=True), ROOM) == 3
    assert jobs_of(VerifyRequest(jobs=3), ROOM, is_resumed=True) == 1
    assert jobs_of(VerifyRequest(jobs=3, fault="f.py:a"), ROOM) == 1
