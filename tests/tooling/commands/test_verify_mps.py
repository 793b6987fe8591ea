"""The command from its arguments to its exit status and its files, on a torch and a suite that play their parts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_suites import FAILS_BY_THE_FAULT, write_python, write_suite
from mps_build.cli import main
from mps_build.common.records.device_record import load_record
from mps_build.verify import preparation
from mps_build.verify.target import resolve as target
from mps_build.verify.target.diagnosis import HostFacts
from processes import LONGEST_SECONDS, environ, wait_until

STATE: dict[str, Any] = {"version": "2.13.0", "built": True, "available": True, "name": "Apple M3", "sum": 1000}
MAC = HostFacts(
    system="Darwin", macos="15.3", chip="Apple M3", virtual=False, rosetta=False, apple_silicon=True, document={}
)
SUITE = "def test_good(): pass\ndef test_bad(): assert 0, 'off by 3'\ndef test_old(): assert 0\n"
ISSUES = """\
schema_version: 1
issues:
  - id: "7"
    link: https://github.com/pytorch/pytorch/issues/7
    title: "old"
    since: "2.0"
    cases: [test_old]
    outcome: fails
    reason: "wrong"
"""

Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command with arguments and returns its status and its JSON document."""
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setattr(target, "make_overlay", lambda interpreter, store, **_: tmp_path)
    write_suite(tmp_path / "suite", SUITE)
    (tmp_path / "suite" / "known_issues.yaml").write_text(ISSUES)

    def call(*arguments: str, host: HostFacts | None = MAC, **state: Any) -> tuple[int, dict[str, Any]]:
        if host is not None:
            monkeypatch.setattr(preparation, "observe_host", lambda recording: host)
        python = write_python(tmp_path / f"python-{len(list(tmp_path.iterdir()))}", json.dumps(STATE | state))
        answer = tmp_path / "answer.json"
        fixed = ["--python", str(python), "--suite", str(tmp_path / "suite"), "--record", str(tmp_path / "record")]
        status = main("verify_mps", [*fixed, "--json", str(answer), *arguments])
        return status, json.loads(answer.read_text())

    return call


def test_a_right_device_is_verified_and_the_record_lies_where_it_is_said(run: Run, tmp_path: Path) -> None:
    status, document = run("--only", "test_good")

    assert (status, document["verdict"], document["exit_code"], document["cause"]) == (0, "verified", 0, None)
    assert document["statement"] == "A chosen part of the suite. MPS on Apple M3."
    assert document["torch"] == {"version": "2.13.0", "commit": "c" * 40, "wheel": None}
    assert document["python"]["unchanged"] is True
    assert [(case["id"], case["outcome"]) for case in document["cases"]] == [("test_good", "passed")]
    assert load_record(tmp_path / "record" / "record.json").verdict == "verified"


def test_a_new_failure_is_a_regression_and_every_report_is_written(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(tmp_path / "out" / name) for name in ("j.xml", "p.html", "s.md")]

    status, document = run("--junit", files[0], "--html", files[1], "--markdown", files[2])

    assert (status, document["cause"]) == (10, "regressed")
    assert document["counts"] == {"passed": 1, "failed": 1, "known": 1}
    assert [case["known_issue"] for case in document["cases"]] == [None, None, "7"]
    assert all("off by 3" in Path(name).read_text() for name in files)
    assert capsys.readouterr().out.splitlines()[-1].endswith(": regressed")


def test_known_issues_alone_have_a_status_of_their_own_unless_accepted(run: Run) -> None:
    chosen = ("--only", "test_good,test_old")

    assert run(*chosen)[0] == 11
    status, document = run(*chosen, "--accept", "known")
    assert (status, document["verdict"]) == (0, "known_issues_only")


def test_a_rehearsal_says_what_it_is_and_knows_no_issues(run: Run) -> None:
    status, document = run("--device", "cpu", "--only", "test_good", host=HostFacts(system="Linux", document={}))

    assert (status, document["verdict"]) == (0, "rehearsed")
    assert document["statement"].endswith("A rehearsal on the CPU: it says nothing about MPS.")
    assert run("--device", "cpu", "--only", "test_old", host=HostFacts(system="Linux", document={}))[0] == 10


@pytest.mark.parametrize(
    ("state", "code", "cause"),
    [
        ({"built": False, "available": False}, 12, "mps_not_built"),
        ({"available": False, "version": "2.15.0"}, 14, "no_gpu_session"),
        ({"name": "Apple Paravirtual device"}, 16, "virtual_gpu"),
        ({"sum": 0}, 17, "device_unusable"),
        ({"crash": True}, 6, "environment"),
    ],
)
def test_no_verdict_has_its_cause_and_is_never_a_success(
    run: Run, tmp_path: Path, state: dict[str, Any], code: int, cause: str
) -> None:
    status, document = run("--junit", str(tmp_path / "j.xml"), **state)

    assert (status, document["exit_code"], document["cause"]) == (code, code, cause)
    assert (document["verdict"], document["cases"]) == ("not_verified", [])
    assert document["hint"]
    assert f'type="{cause}"' in (tmp_path / "j.xml").read_text()


def test_a_virtual_mac_may_run_the_cases_and_still_gets_no_verdict(run: Run) -> None:
    status, document = run("--allow-virtual", "--only", "test_good", name="Apple Paravirtual device")

    assert (status, document["verdict"], document["counts"]) == (16, "not_verified", {"passed": 1})


@pytest.mark.parametrize("more", [(), ("--allow-virtual", "--only", "test_good")])
def test_a_virtual_mac_names_the_command_that_verifies_the_same_torchs_kernels(run: Run, more: tuple[str, ...]) -> None:
    status, document = run(*more, name="Apple Paravirtual device", version="2.14.1+local")

    assert status == 16
    assert "on Linux, `nox -s verify_kernels -- torch==2.14.1` gives a verdict" in document["hint"]
    assert "on them alone" in document["hint"]


def test_nothing_chosen_is_never_a_success(run: Run) -> None:
    status, document = run("--only", "no_such_case")

    assert (status, document["verdict"]) == (2, "not_verified")
    assert "no_such_case" in document["message"]


def test_everything_skipped_is_never_a_success(run: Run, tmp_path: Path) -> None:
    write_suite(tmp_path / "suite", "import pytest\ndef test_here(): pytest.skip('not here')\n")

    status, document = run()

    assert (status, document["verdict"], document["counts"]) == (2, "not_verified", {"skipped": 1})
    assert "nothing was verified: all 1 cases were skipped" in document["message"]


def test_a_corrupt_table_of_known_issues_is_refused_with_its_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "suite" / "known_issues.yaml").write_text(ISSUES.replace("outcome: fails", "outcome: maybe"))

    status, document = run()

    assert (status, document["verdict"]) == (2, "not_verified")
    assert "known_issues.yaml:8: " in document["message"]


@pytest.mark.parametrize(
    ("only", "fault", "result", "code"),
    [
        ("test_hurt", "fault", "caught", 10),
        ("test_bad", "fault", "missed", 0),
        ("test_bad", "unhit", "not_exercised", 2),
        ("test_good", "unhit", "not_exercised", 2),
        ("test_good", "no-such-fault", "error", 2),
    ],
)
def test_what_became_of_an_injected_fault_is_said(
    run: Run, tmp_path: Path, only: str, fault: str, result: str, code: int
) -> None:
    (tmp_path / "fault.py").write_text("")
    write_suite(tmp_path / "suite", SUITE + f"def test_hurt():\n    {FAILS_BY_THE_FAULT}\n")

    status, document = run("--device", "cpu", "--only", only, "--inject", f"{tmp_path / 'fault.py'}:{fault}")

    assert (status, document["fault"]) == (code, result)
    if only == "test_bad":
        assert document["message"].endswith("fails without it too, or is no case: test_bad")
    if result == "not_exercised":
        assert document["verdict"] == "not_verified"
        assert document["message"].startswith("nothing was verified: no case met the injected fault ")


def test_the_old_name_of_inject_works_and_says_the_new_one(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fault.py").write_text("")

    status, document = run("--device", "cpu", "--only", "test_good", "--plant", f"{tmp_path / 'fault.py'}:unhit")

    assert "note: --plant is now --inject; the old name goes with the next release" in capsys.readouterr().err
    assert (status, document["fault"], document["plant"], document["plant_hits"]) == (
        *(2, "not_exercised", "not_exercised"),
        document["fault_hits"],
    )
    assert document["selection"]["inject"] == document["selection"]["plant"] == f"{tmp_path / 'fault.py'}:unhit"


def test_an_injected_faults_file_that_is_not_there_is_an_error(run: Run) -> None:
    status, document = run("--device", "cpu", "--inject", "nowhere.py:fault")

    assert (status, document["fault"]) == (2, "error")


def test_a_recorded_mac_is_diagnosed_and_never_verified(run: Run, tmp_path: Path) -> None:
    recording = tmp_path / "host.json"
    probes = [
        {"argv": ["sw_vers"], "stdout": "ProductName:\t\tmacOS\nProductVersion:\t\t13.6\nBuildVersion:\t\t22G120\n"},
        {"argv": ["uname", "-a"], "stdout": "Darwin m 22.6.0 Darwin Kernel Version 22.6.0 RELEASE_ARM64_T8103 arm64\n"},
    ]
    recording.write_text(json.dumps({"probes": probes}))

    status = main("verify_mps", ["torch==2.13.0", "--host", str(recording), "--json", str(tmp_path / "a.json")])

    assert status == 13
    assert (
        "this is macOS 13.6; MPS of torch 2.13.0 needs 14.0" in json.loads((tmp_path / "a.json").read_text())["message"]
    )
    assert main("verify_mps", ["torch==2.8.0", "--host", str(recording)]) == 3


def test_nothing_to_verify_is_a_usage_error() -> None:
    assert main("verify_mps", []) == 2
    assert main("verify_mps", ["torch==2.13.0", "--case-timeout", "0"]) == 2


def test_an_interrupted_run_keeps_its_partial_record_and_leaves_no_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_suite(tmp_path / "suite", "import time\ndef test_a(): pass\ndef test_b(): time.sleep(600)\n")
    (tmp_path / "suite" / "known_issues.yaml").write_text("schema_version: 1\nissues: []\n")
    python = write_python(tmp_path / "python", json.dumps(STATE))
    overlay = tmp_path / "cache" / "verify"
    program = (
        "import sys; from pathlib import Path\n"
        "from mps_build.cli import main; from mps_build.verify.target import resolve as target\n"
        "target.make_overlay = lambda interpreter, store, **_: Path('/')\n"
        "raise SystemExit(main('verify_mps', sys.argv[1:]))\n"
    )
    options = ["--python", str(python), "--device", "cpu", "--suite", str(tmp_path / "suite")]
    options += ["--record", str(tmp_path / "record"), "--json", str(tmp_path / "a.json"), "--jobs", "1"]
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(overlay))
    argv = [sys.executable, "-c", program, *options]
    reported = (tmp_path / "given").open("w")
    with reported, subprocess.Popen(argv, env=environ(), stdout=reported, stderr=subprocess.STDOUT) as process:
        outcomes = tmp_path / "record" / "test_fake_0.1.outcomes.jsonl"
        wait_until(lambda: outcomes.exists() and '"test_b"' in outcomes.read_text()[200:])
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        status = process.wait(LONGEST_SECONDS)

    document = json.loads((tmp_path / "a.json").read_text())
    assert (status, document["partial"], document["cause"]) == (143, True, "interrupted")
    assert [(case["id"], case["outcome"]) for case in document["cases"]] == [("test_a", "passed")]
    assert load_record(tmp_path / "record" / "record.json").partial
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path) in _read(path)]
    assert document["hint"].startswith("to go on: nox -s verify_mps -- --python")
    lines = (tmp_path / "given").read_text().splitlines()
    assert [
        sum(line.rstrip().endswith("interrupted") for line in lines),
        sum("to go on" in line for line in lines),
    ] == [1, 1]
    resume = document["hint"].partition(" --resume ")[2]
    assert resume == str(tmp_path / "record")

    (tmp_path / "suite" / "test_fake_0.py").write_text("def test_a(): assert False\ndef test_b(): pass\n")
    monkeypatch.setattr(target, "make_overlay", lambda interpreter, store, **_: Path("/"))
    again = main("verify_mps", [*options, "--resume", resume])

    document = json.loads((tmp_path / "a.json").read_text())
    assert (again, document["partial"]) == (0, False), capsys.readouterr().err
    assert [(case["id"], case["outcome"]) for case in document["cases"]] == [("test_a", "passed"), ("test_b", "passed")]

    once_more = main("verify_mps", [*options, "--resume", resume])

    assert (once_more, "that run is complete" in capsys.readouterr().err) == (2, True)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""
