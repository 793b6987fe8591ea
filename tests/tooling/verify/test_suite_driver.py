"""The driver of the device suite: crashes, hangs, faults, several processes, and what they leave in the record."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_suites import DEATHS, DEATHS_ANYWHERE, FAILS_BY_THE_FAULT, ON_THE_CPU, drive, outcomes
from mps_build.common.records.device_record import Case
from mps_build.verify.device_suite import jobs_of
from mps_build.verify.request import VerifyRequest
from mps_build.verify.suite.driver import run_beside
from mps_build.verify.suite.outcomes import OnCase, SuiteRun
from mps_build.verify.suite.request import Limits, Room, SuiteRequest
from processes import wait_until


def only_case(run: SuiteRun, case_id: str) -> Case:
    return next(case for case in run.cases if case.id == case_id)


@pytest.mark.parametrize(
    "ways",
    [("abort", "memory", "exit_with_0"), pytest.param(tuple(DEATHS), marks=pytest.mark.slow)],
    ids=("some", "all"),
)
def test_cases_that_take_their_process_down_cost_one_case_each(tmp_path: Path, ways: tuple[str, ...]) -> None:
    deaths = "".join(f"def test_{name}():\n    {DEATHS[name]}\ndef test_behind_{name}(): pass\n" for name in ways)

    run = drive(tmp_path, deaths, case_seconds=3, memory_bytes=500 << 20)

    assert outcomes(run) == {
        name: outcome
        for way in ways
        for name, outcome in (
            (f"test_{way}", "timeout" if way == "hang" else "crashed"),
            (f"test_behind_{way}", "passed"),
        )
    }
    assert run.bad == len(ways)
    abort = only_case(run, "test_abort")
    assert "SIGABRT" in str(abort.reason) and "failed assertion `no" in str(abort.reason)
    assert abort.error == {"exit": -6, "signal": "SIGABRT", "cut": None, "category": "assertion"}
    assert "more memory than allowed" in str(only_case(run, "test_memory").reason)
    assert "though it had not finished" in str(only_case(run, "test_exit_with_0").reason)


@pytest.mark.slow  # seconds until what ignores SIGTERM is killed
def test_a_case_ends_with_a_driver_that_is_killed(tmp_path: Path) -> None:
    hang = """
import signal, time
from pathlib import Path

def test_a():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
    Path("pid").write_text(str(__import__("os").getpid()))
    time.sleep(600)
"""
    driver = f"from test_suite_driver import *; drive(Path({str(tmp_path)!r}), {hang!r})"
    root = Path(__file__).parents[1]
    folders = (Path(__file__).parent, root / "fakes", root.parents[1] / "scripts")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    reported = tmp_path / "run" / "pid"
    with subprocess.Popen((sys.executable, "-c", driver), env=environ) as process:
        wait_until(lambda: reported.exists() and reported.read_text() != "")
        process.kill()

    wait_until(lambda: not _runs(int(reported.read_text())))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")  # where nobody adopts it, it stays as a zombie
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_process_that_ends_between_two_cases_is_recorded_and_the_rest_still_runs(tmp_path: Path) -> None:
    run = drive(tmp_path, "def test_dies_behind(): pass\ndef test_c(): pass\n")

    assert outcomes(run) == {
        "test_dies_behind": "passed",
        "test_fake_0::between-cases": "crashed",
        "test_c": "passed",
    }


def test_a_crash_after_the_last_case_is_recorded(tmp_path: Path) -> None:
    run = drive(tmp_path, "def test_at_exit(): pass\n")

    assert outcomes(run) == {"test_at_exit": "passed", "test_fake_0::end": "crashed"}


def test_what_goes_wrong_in_a_living_process_is_a_failure_where_it_happened_and_the_rest_runs(tmp_path: Path) -> None:
    """A case without an outcome, a fault of the GPU in a case that passes, a file that cannot be imported."""
    fault = "import sys; sys.stderr.write('Internal Error (0000000e:Internal Error)\\n')"

    run = drive(
        tmp_path,
        f"def test_a(): pass\ndef test_silent(): pass\ndef test_b():\n    {fault}\ndef test_c(): pass\n",
        "import no_such_module\n",
        "def test_d(): pass\n",
    )

    assert outcomes(run) == {
        "test_fake_1::collection": "crashed",
        "test_a": "passed",
        "test_silent": "failed",
        "test_b": "failed",
        "test_c": "passed",
        "test_d": "passed",
    }
    assert str(only_case(run, "test_b").reason).startswith("gpu_fault")
    assert "no_such_module" in str(only_case(run, "test_fake_1::collection").reason)
    assert (run.stopped, run.bad) == (None, 3)
    # All files share a process, and each case knows its file.
    assert {case.id: case.file for case in run.cases if len(case.id) == len("test_a")} == {
        **dict.fromkeys(("test_a", "test_b", "test_c"), "test_fake_0.py"),
        "test_d": "test_fake_2.py",
    }
    assert [path.name for path in (tmp_path / "run").glob("*.log")] == ["suite.1.log"]


def test_a_failure_outside_of_any_case_is_not_lost(tmp_path: Path) -> None:
    fixture = "import pytest\n@pytest.fixture\ndef broken(): assert 0, 'no device'\n"

    run = drive(tmp_path, fixture + "def test_silent(broken): pass\ndef test_a(): pass\n")

    assert outcomes(run) == {"test_a": "passed", "test_fake_0::outside": "failed", "test_silent": "failed"}
    assert "no device" in str(only_case(run, "test_fake_0::outside").reason)


def test_two_gpu_faults_stop_the_run(tmp_path: Path) -> None:
    fault = "def test_{}():\n    import sys; sys.stderr.write('Internal Error (0000000e:Internal Error)\\n')\n"

    run = drive(tmp_path, fault.format("a"), fault.format("b"), "def test_c(): pass\n")

    assert run.stopped == "gpu_fault"
    assert "test_c" not in outcomes(run)


def test_a_device_at_fault_stops_the_run(tmp_path: Path) -> None:
    die = "import os; print('The MPS backend is supported on', flush=True); os.abort()"

    run = drive(tmp_path, f"def test_a():\n    {die}\ndef test_b(): pass\n")

    assert run.stopped == "mps_unavailable"
    assert "test_b" not in outcomes(run)


def test_a_crash_is_known_only_if_a_row_says_that_it_crashes(tmp_path: Path) -> None:
    words = ("crashes", "flaky", "fails")
    rows: list[dict[str, object]] = [
        {"id": word, "cases": [f"test_{word}*"], "outcome": word, "reason": "aborts"} for word in words
    ]

    run = drive(tmp_path, "".join(f"def test_{word}():\n    {DEATHS['abort']}\n" for word in words), known=rows)

    assert outcomes(run) == {"test_crashes": "known", "test_flaky": "known", "test_fails": "crashed"}
    assert [case.known_issue for case in run.cases] == ["crashes", "flaky", None]


def test_a_fault_stops_the_run_at_the_first_failure(tmp_path: Path) -> None:
    fails = f"def test_a():\n    {FAILS_BY_THE_FAULT}\n"

    run = drive(tmp_path, fails + "def test_b(): pass\n", "def test_c(): pass\n", fault="p.py:fault")

    assert run.fault_result() == "caught"
    assert "test_c" not in outcomes(run)


@pytest.mark.parametrize("fault", ["p.py:uncounted", "p.py:reaching"])
def test_a_case_that_fails_before_the_first_hit_is_no_catch_and_does_not_end_the_run(
    tmp_path: Path, fault: str
) -> None:
    """Without HITS nobody knows: the first failure ends the run."""
    cases = ("by_itself", "reached", "behind")

    run = drive(tmp_path, "".join(f"def test_{name}():\n    {FAILS_BY_THE_FAULT}\n" for name in cases), fault=fault)

    assert run.fault_result() == "caught"
    assert list(outcomes(run)) == [f"test_{name}" for name in cases[: 1 if "uncounted" in fault else 2]]


@pytest.mark.parametrize(("fault", "result"), [("p.py:reaching", "missed"), ("p.py:unhit", "not_exercised")])
def test_a_fault_is_not_caught_by_cases_that_fail_by_themselves(tmp_path: Path, fault: str, result: str) -> None:
    files = ("def test_a(): assert 0\ndef test_reached(): pass\n", "import nowhere\n", "def test_c(): pass\n")

    run = drive(tmp_path, *files, fault=fault)

    assert run.fault_result() == result
    assert {name: outcome for name, outcome in outcomes(run).items() if outcome != "passed"} == {
        "test_a": "failed",
        "test_fake_1::collection": "crashed",
    }
    assert outcomes(run)["test_c"] == "passed"


def test_hits_of_an_earlier_process_do_not_make_a_later_failure_a_catch(tmp_path: Path) -> None:
    cases = "def test_reached_leaves(): pass\ndef test_fails(): assert 0\ndef test_behind(): pass\n"

    run = drive(tmp_path, cases, fault="p.py:reaching")

    assert (run.fault_result(), run.fault_hits, len(run.cases)) == ("missed", 1, 3)


@pytest.mark.parametrize("fault", [pytest.param("p.py:fault", marks=pytest.mark.slow), "p.py:uncounted"])
def test_a_case_that_fails_without_the_fault_too_catches_nothing_though_it_had_a_hit(
    tmp_path: Path, fault: str
) -> None:
    behind = f"def test_fails(): assert 0\ndef test_dies():\n    {DEATHS_ANYWHERE['abort']}\ndef test_b(): pass\n"

    run = drive(tmp_path, behind, fault=fault, device="cpu")

    assert run.fault_result() == "missed"
    assert outcomes(run) == {"test_fails": "failed", "test_dies": "skipped", "test_b": "passed"}


@pytest.mark.parametrize(
    ("fault", "result"),
    [
        ("p.py:fault", "caught"),
        pytest.param("p.py:uncounted", "caught", marks=pytest.mark.slow),
        pytest.param("p.py:unhit", "not_exercised", marks=pytest.mark.slow),
    ],
)
def test_a_process_that_dies_leaves_the_count_of_hits_behind(tmp_path: Path, fault: str, result: str) -> None:
    dies = "import os; os.environ['FAKE_FAULT'] and os.abort()"

    run = drive(tmp_path, f"def test_a():\n    {dies}\ndef test_b(): pass\n", fault=fault)

    expected = {"test_a": "crashed"} if result == "caught" else {"test_a": "crashed", "test_b": "passed"}
    assert (run.fault_result(), outcomes(run)) == (result, expected)


@pytest.mark.parametrize("device", [pytest.param("cpu", marks=pytest.mark.slow), "mps"])
def test_a_case_in_which_the_cpu_dies_too_has_no_reference(tmp_path: Path, device: str) -> None:
    ways = {way: DEATHS_ANYWHERE[way] for way in ("segfault", "memory")}
    deaths = "".join(f"def test_{way}():\n    {body}\n" for way, body in ways.items())

    run = drive(tmp_path, deaths + "def test_b(): pass\n", memory_bytes=500 << 20, device=device)

    assert outcomes(run) == {**{f"test_{way}": "skipped" for way in ways}, "test_b": "passed"}
    reason = str(only_case(run, "test_segfault").reason)
    assert reason == "no reference: this torch's CPU fails in this case by itself: the process died with SIGSEGV"
    assert f"test_segfault: {reason}" in run.notes
    assert "more memory than allowed" in str(only_case(run, "test_memory").reason)
    assert (run.bad, only_case(run, "test_segfault").error) == (
        0,
        {"exit": -11, "signal": "SIGSEGV", "cut": None, "category": "unknown"},
    )


@pytest.mark.parametrize(("fault", "result"), [("p.py:fault", "missed"), ("p.py:unhit", "not_exercised")])
def test_a_fault_that_nobody_noticed_was_missed_or_never_fired(tmp_path: Path, fault: str, result: str) -> None:
    run = drive(tmp_path, "def test_a(): pass\n", fault=fault)

    assert run.fault_result() == result


def test_a_fault_that_cannot_be_loaded_is_an_error_with_the_reason(tmp_path: Path) -> None:
    run = drive(tmp_path, "def test_a(): pass\n", fault="fault.py:no-such-fault")

    assert run.fault_result() == "error"
    assert "has no callable no-such-fault" in str(run.refused)


def test_a_fault_that_takes_the_process_down_when_it_is_loaded_is_an_error(tmp_path: Path) -> None:
    run = drive(tmp_path, "import os\nos.abort()\n", fault="p.py:fault")

    assert (run.fault_result(), run.cases) == ("error", [])
    assert "SIGABRT, before its first case" in str(run.refused)


def test_only_what_is_chosen_runs_and_its_error_and_bound_are_kept(tmp_path: Path) -> None:
    run = drive(tmp_path, "def test_a(): pass\ndef test_b(): pass\n", "def test_c(): pass\n", only=("test_b",))

    assert outcomes(run) == {"test_b": "passed"}
    case = run.cases[0]
    assert (case.largest, case.bound, case.issue, case.layer) == (0.5, 1.0, ("1",), "fake")


def test_after_a_crash_the_next_process_asks_what_is_left_and_nothing_again(tmp_path: Path) -> None:
    note = "    import pathlib\n    with pathlib.Path('ran').open('a') as file:\n        file.write('{0}')\n"
    asks = "def test_{0}():\n" + note
    dies = f"def test_{{0}}():\n    {ON_THE_CPU} or (pathlib.Path('ran').open('a').write('{{0}}'), os.abort())\n"

    files = (
        asks.format("a"),
        "import os, pathlib\n" + dies.format("b") + asks.format("c"),
        "import no_such_module\n",
        asks.format("d"),
    )
    run = drive(tmp_path, *files)

    passed = dict.fromkeys(("test_a", "test_c", "test_d"), "passed")
    assert outcomes(run) == {**passed, "test_b": "crashed", "test_fake_2::collection": "crashed"}
    assert len(run.cases) == 5  # a file that cannot be imported is named once
    assert (tmp_path / "run" / "ran").read_text() == "abcd"
    assert sorted(path.name for path in (tmp_path / "run").glob("*.log")) == [
        "suite-alone.1.log",  # does the CPU die in it too?
        "suite.1.log",
        "suite.2.log",
    ]


def test_a_suite_may_leave_the_rest_to_another_process(tmp_path: Path) -> None:
    run = drive(tmp_path, "def test_a(): pass\ndef test_leaves(): pass\ndef test_b(): pass\n", "def test_c(): pass\n")

    assert outcomes(run) == dict.fromkeys(("test_a", "test_leaves", "test_b", "test_c"), "passed")
    assert len(list((tmp_path / "run").glob("*.log"))) == 2


def test_a_file_whose_import_kills_the_process_costs_that_file_only(tmp_path: Path) -> None:
    run = drive(tmp_path, "def test_a(): pass\n", "import os\nos.abort()\n", "def test_c(): pass\n")

    assert outcomes(run) == {"test_a": "passed", "test_fake_1::collection": "crashed", "test_c": "passed"}


MANY = "".join(f"def test_{number}(): assert {number} != 5\n" for number in range(9))


def test_every_case_is_run_once_and_a_file_that_cannot_be_imported_is_named_once(tmp_path: Path) -> None:
    run = drive(tmp_path, MANY, "import no_such_module\n", "def test_a(): pass\n", jobs=3)

    expected = {f"test_{n}": "failed" if n == 5 else "passed" for n in range(9)} | {"test_a": "passed"}
    assert outcomes(run) == expected | {"test_fake_1::collection": "crashed"}
    assert len(run.cases) == 11
    assert run.collected == 10
    assert run.bad == 2
    assert set(run.files) >= expected.keys()


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


def test_what_was_requested_holds() -> None:
    assert jobs_of(VerifyRequest(jobs=3, full=True), ROOM) == 3
    assert jobs_of(VerifyRequest(jobs=3), ROOM, is_resumed=True) == 1
    assert jobs_of(VerifyRequest(jobs=3, fault="f.py:a"), ROOM) == 1
