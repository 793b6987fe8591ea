"""What a run of the suite is given: its files, its layers, its budget; and what its files need of an old torch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_suites import drive, outcomes
from mps_build.common.errors import UsageError
from mps_build.common.process import Command, capture
from mps_build.common.records.device_record import Case, Estimate
from mps_build.verify import VerifyRequest
from mps_build.verify.progress import Pace
from mps_build.verify.suite.driver import Estimates, together
from mps_build.verify.suite.outcomes import SuiteRun
from mps_build.verify.suite.request import Limits, SuiteRequest, suite_command, suite_files


def _request(folder: Path) -> SuiteRequest:
    return SuiteRequest(
        interpreter=Path("python"),
        environ={},
        ini=folder / "pytest.ini",
        files=(),
        device="mps",
        folder=folder,
        limits=Limits(memory_bytes=1),
        quick=True,
        layers=("smoke", "drawn"),
        cases=300,
        keys=400,
        seconds=600.0,
        seed=7,
        skip=("issue-1", "issue-2-*"),
    )


def test_the_suite_gets_its_budget(tmp_path: Path) -> None:
    argv = suite_command(_request(tmp_path), (), known=tmp_path, outcomes=tmp_path).argv

    given = " ".join(argv)
    for option in ("--quick", "--layer smoke,drawn", "--cases 300", "--keys 400", "--time 600.0", "--seed 7"):
        assert option in given
    assert "--skip-ids issue-1,issue-2-*" in given
    assert "--no-estimate" in given


def test_a_run_says_first_what_it_will_take(tmp_path: Path) -> None:
    heard: list[Estimate] = []

    drive(tmp_path, "def test_a(): pass\ndef test_b(): pass\n", on_estimate=heard.append)

    assert heard == [Estimate(cases=2, keys=7, low_seconds=1.5, high_seconds=2.5)]


def test_processes_beside_each_other_take_what_most_of_them_take(tmp_path: Path) -> None:
    heard: list[Estimate] = []

    drive(tmp_path, "def test_a(): pass\ndef test_b(): pass\n", jobs=2, on_estimate=heard.append)

    assert heard == [Estimate(cases=2, keys=14, low_seconds=1.5, high_seconds=2.5)]
    assert together([*3 * heard, heard[0].model_copy(update={"high_seconds": 900.0})]).high_seconds == 2.5


def test_a_damaged_estimate_is_none() -> None:
    heard: list[Estimate] = []

    Estimates(1, heard.append).take({"event": "estimate", "cases": "many"})

    assert heard == []


def test_a_process_that_dies_while_it_estimates_costs_no_case(tmp_path: Path) -> None:
    run = drive(tmp_path, "def test_a(): pass\ndef test_dies_in_the_estimate(): pass\n")

    assert outcomes(run) == {"test_a": "passed", "test_dies_in_the_estimate": "passed"}


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_what_is_left_when_the_time_is_over_is_counted_and_no_failure(tmp_path: Path, jobs: int) -> None:
    source = "import time\n" + "".join(f"def test_{name}(): time.sleep(0.8)\n" for name in "abcdef")

    run = drive(tmp_path, source, seconds=1.0, jobs=jobs)

    assert 0 < len(run.cases) < 6
    assert set(outcomes(run).values()) == {"passed"}
    assert run.not_run == 6 - len(run.cases)


def test_a_resumed_run_asks_what_processes_beside_each_other_have_left_between(tmp_path: Path) -> None:
    before = SuiteRun()
    for name in ("test_a", "test_d"):
        before.cases.append(Case(id=name, layer="fake", outcome="passed", file="test_fake_0.py"))

    run = drive(tmp_path, "".join(f"def test_{name}(): pass\n" for name in "abcdef"), run=before)

    assert [case.id for case in run.cases] == ["test_a", "test_d", "test_b", "test_c", "test_e", "test_f"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_cases_of_one_finding_name_it(tmp_path: Path, jobs: int) -> None:
    source = "def test_a(): pass\n" + "".join(f"def test_finding_{one}(): assert 0\n" for one in "xyz")

    run = drive(tmp_path, source, jobs=jobs)

    assert {case.finding for case in run.cases} == {None, "exp:dtype:1234"}
    assert [finding.script for finding in run.findings.values()] == ["import torch\n"]


def test_a_damaged_finding_is_none(tmp_path: Path) -> None:
    from mps_build.verify.suite.outcomes import case_of_event

    event = {"event": "finished", "id": "add:layout:1", "outcome": "failed", "finding": {"id": 3}}

    assert case_of_event(event, "drawn").finding is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--time", "soon"), "is not a time"),
        (("--time", "0"), "is not a time"),
        (("--cases", "-1"), "is not a number from 1 on"),
        (("--keys", "many"), "is not a number from 1 on"),
        (("--seed", "-1"), "--seed takes"),
        (("--seed", "1000000"), "--seed takes"),
    ],
)
def test_a_budget_that_is_none_is_refused(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from mps_build.cli import main

    assert main("verify_mps", ["torch==2.13.0", "--device", "cpu", *words]) == 2
    assert said in capsys.readouterr().err


def test_the_record_says_what_was_chosen() -> None:
    selection = VerifyRequest(target="torch==2.13.0", cases=300, keys=4, seconds=60.0, seed=7).selection()

    assert {name: selection[name] for name in ("cases", "keys", "seconds", "seed")} == {
        "cases": 300,
        "keys": 4,
        "seconds": 60.0,
        "seed": 7,
    }


def test_the_time_left_holds_where_the_slow_core_comes_first() -> None:
    files = {f"issue-{n}": "" for n in range(100)} | {f"add:layout:{n}": "" for n in range(3000)}
    seconds = {case: 0.12 if case.startswith("issue") else 0.03 for case in files}
    whole, elapsed, pace = sum(seconds.values()), 0.0, Pace()

    for number, case in enumerate(files):
        elapsed += seconds[case]
        pace.add(case, files)
        left = pace.seconds_left(elapsed)
        if left is not None:
            assert abs(left - (whole - elapsed)) < 1, number

    assert left == 0


def test_a_resumed_run_counts_only_what_it_does_itself() -> None:
    files = dict.fromkeys("abcd", "")
    pace = Pace(before=["a", "b"])

    pace.add("c", files)

    assert pace.seconds_left(7.0) == 7.0


def test_too_little_says_nothing_and_an_event_of_the_run_is_no_case() -> None:
    files = {f"c{n}": "" for n in range(1000)}
    pace = Pace()

    pace.add("suite::outside", files)
    assert pace.seconds_left(3.0) is None
    pace.add("c0", files)
    assert pace.seconds_left(3.0) is None


def test_a_machine_is_slow_beside_what_was_estimated() -> None:
    files = {f"c{n}": "" for n in range(1000)}
    pace = Pace()
    for number in range(300):
        pace.add(f"c{number}", files, seconds=2.0)
    assert pace.times_slower() is None

    pace.expect(100.0)
    assert pace.times_slower() == pytest.approx(20.0)


SUITE = Path(__file__).resolve().parents[3] / "tests" / "device"


def test_the_drawn_cases_are_part_of_the_default_and_come_last() -> None:
    assert [path.name for path in suite_files(SUITE, ("drawn",))] == ["test_drawn.py"]
    every = suite_files(SUITE, ())
    assert every[-1].name == "test_drawn.py"
    assert every[0].name == "test_smoke.py"
    folders = [path.parent.name for path in every[1:-1]]
    assert folders == sorted(folders, key=["regressions", "scenarios"].index)
    assert set(every) == {*SUITE.rglob("test_*.py")}


def test_a_files_name_tells_it_from_all_others() -> None:
    names = [path.name for path in suite_files(SUITE, ())]
    assert len(names) == len(set(names))  # events and records name a file so


def test_a_layer_is_what_a_file_says_of_its_cases(tmp_path: Path) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "test_first.py").write_text('cases = Cases("smoke")\n')
    (tmp_path / "scenarios" / "test_second.py").write_text("def test_a(): pass\n")
    (tmp_path / "test_own_area.py").write_text("def test_b(): pass\n")

    assert [path.name for path in suite_files(tmp_path, ("smoke",))] == ["test_first.py"]
    assert [path.name for path in suite_files(tmp_path, ("own", "scenarios"))] == ["test_second.py", "test_own_area.py"]
    with pytest.raises(UsageError, match="no layer drawn") as caught:
        suite_files(tmp_path, ("drawn",))
    assert caught.value.hint == "layers: own, scenarios, smoke"


PYTHON = os.environ.get("MPS_BUILD_TEST_TORCH") or os.environ.get("MPS_BUILD_TORCH_PYTHON") or ""
# Takes away what 1.13 has not, then reads each file, as pytest would before it chooses cases.
_READ = """
import importlib, pathlib, sys
import torch
for owner, names in (
    (torch.nn.functional, ("scaled_dot_product_attention", "rms_norm")),
    (torch.nn, ("RMSNorm",)),
    (torch, ("uint16", "uint32", "uint64")),
):
    for name in names:
        delattr(owner, name)
for path in sorted(pathlib.Path(".").rglob("test_*.py")):
    try:
        importlib.import_module(".".join(path.with_suffix("").parts))
    except Exception as error:
        print(f"{path.stem}: {type(error).__name__}: {error}")
"""


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON, reason="no torch here; MPS_BUILD_TEST_TORCH names a Python that has it")
def test_no_file_needs_what_came_after_1_13() -> None:
    environ = {**os.environ, "PYTHONPATH": "."}
    command = Command(argv=(PYTHON, "-B", "-W", "ignore", "-c", _READ), cwd=SUITE, environ=environ)
    answer = capture(command, timeout_seconds=600)

    assert answer.ok, answer.stderr[-2000:]
    assert answer.stdout.strip() == ""
