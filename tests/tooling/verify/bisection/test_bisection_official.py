"""bisect_mps --simulated: the same search over official wheels, of which a fake says what each one does here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("llvmlite")

from mps_build import cli
from mps_build.common.errors import CompileError, OwnFault, SourceError
from mps_build.common.records.device_record import Case
from mps_build.common.wheels.download import NoSuchWheel
from mps_build.simulation.official import session
from mps_build.verify import VerifyRequest
from mps_build.verify.bisection import answers, official, versions
from mps_build.verify.bisection.runner import Answer, Prepared
from mps_build.verify.bisection.versions import Index
from packaging.version import Version

LISTED = {"3.11": ("2.2.2", "2.3.0", "2.3.1", "2.4.0", "2.4.1", "2.5.0"), "3.9": ("1.13.0", "1.13.1")}
STUB = "RuntimeError: torch calls f of libSystem, which cannot be had in a simulation: nothing gives it"


class Wheels:
    """What happens where a release is prepared (an error), where the script runs, and where the control runs.

    A string is what the script prints before it ends with 1.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failing: dict[str, Exception] = {}
        self.scripts: dict[str, str | Answer] = {}
        self.controls: dict[str, str] = {}
        self.tested: list[tuple[str, str]] = []
        self.served = 0

    def prepare(self, request: session.Request, reporter: object) -> Any:
        version = request.target.removeprefix("torch==")
        if version in self.failing:
            raise self.failing[version]
        wheel = SimpleNamespace(path=self.folder / f"{version}.whl", sha256=f"digest of {version}")
        return SimpleNamespace(wheel=wheel, python=self.folder / version / "bin/python")

    @contextmanager
    def serve(self, ready: object) -> Iterator[dict[str, str]]:
        self.served += 1
        yield {"SERVER": "beside"}
        self.served -= 1

    def predicate(self, *, argv: tuple[str, ...], seconds: float, log: Path, environ: dict[str, str]) -> Any:
        def ask(prepared: Prepared) -> Answer:
            assert self.served == 1 and (environ["SERVER"], environ["MACOS"]) == ("beside", "14.4")
            is_control = argv == official.CONTROL
            self.tested.append((prepared.subject, "control" if is_control else Path(argv[-1]).name))
            said = (self.controls if is_control else self.scripts).get(prepared.subject, Answer(word="good"))
            with log.open("a") as file:
                file.write(f"{'' if isinstance(said, Answer) else said}\n")
            if isinstance(said, Answer):
                return said
            return Answer(word="bad", reason="exit 1")

        return SimpleNamespace(ask=ask)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wheels:
    made = Wheels(tmp_path)
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "check_host", lambda: None)
    monkeypatch.setattr(session, "prepare", made.prepare)
    monkeypatch.setattr(session, "served", made.serve)
    monkeypatch.setattr(session, "program_environ", lambda ready, *, environ, macos: {"MACOS": macos})
    monkeypatch.setattr(official, "Predicate", made.predicate)

    def listed(index: Index, python: str, *, nightlies: bool) -> tuple[Version, ...]:
        assert "macosx_99_0_arm64" in index.arguments
        return tuple(map(Version, LISTED.get(python, ())))

    monkeypatch.setattr(Index, "versions", listed)
    (tmp_path / "check.py").write_text("raise SystemExit(0)\n")
    return made


Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(wheels: Wheels, tmp_path: Path) -> Run:
    def call(*arguments: str, good: str = "2.3.0", bad: str = "2.5.0") -> tuple[int, dict[str, Any]]:
        fixed = ["--simulated", "--macos", "14.4", "--good", good, "--bad", bad, "--runs", "1"]
        status = cli.main(
            "bisect_mps", [*(arguments or ("check.py",)), *fixed, "--json", str(tmp_path / "answer.json")]
        )
        return status, json.loads((tmp_path / "answer.json").read_text())

    return call


def test_a_script_finds_the_first_bad_release(run: Run, wheels: Wheels, capsys: pytest.CaptureFixture[str]) -> None:
    wheels.scripts = dict.fromkeys(("2.4.1", "2.5.0"), "off by 3")

    status, document = run("check.py", "--markdown", "report.md")

    assert status == 0
    assert document["stages"][0]["statement"] == "the first bad version is 2.4.1 (2.4.0 is the one before)"
    assert document["probes"]["2.4.1"]["wheel"] == "digest of 2.4.1"
    assert document["question"]["simulated"] == "macOS 14.4"
    printed = " ".join(capsys.readouterr().out.split())
    for text in (printed, Path("report.md").read_text()):
        assert "The official macOS wheels on Linux, answering as on macOS 14.4. A rehearsal:" in text


def test_an_end_for_an_older_python_is_found(run: Run, wheels: Wheels) -> None:
    wheels.scripts = dict.fromkeys(("2.3.1", "2.4.0"), "off by 3")

    document = run(good="1.13.0", bad="2.4.0")[1]

    assert document["stages"][0]["first_new"] == "2.3.1"
    assert document["stages"][0]["candidates"] == 4


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (
            OwnFault("torch 2.4.0 could not be imported:\nno symbol"),
            "own_fault: torch 2.4.0 could not be imported: no symbol",
        ),
        (CompileError("the software Metal does not compile"), "compile: the software Metal"),
        (NoSuchWheel("no macOS wheel"), "usage: no macOS wheel"),
    ],
)
def test_a_release_that_does_not_come_up_is_skipped_with_its_cause(
    run: Run, wheels: Wheels, error: Exception, cause: str
) -> None:
    wheels.failing = {"2.4.0": error}
    wheels.scripts = dict.fromkeys(("2.4.1", "2.5.0"), "off by 3")

    status, document = run()

    assert (status, document["stages"][0]["exact"]) == (0, False)
    assert [one["subject"] for one in document["stages"][0]["suspects"]] == ["2.4.0", "2.4.1"]
    assert document["probes"]["2.4.0"]["verdict"] == "skip"
    assert document["probes"]["2.4.0"]["reason"].startswith(cause)


def test_a_release_that_cannot_be_fetched_now_stops_the_search(run: Run, wheels: Wheels) -> None:
    wheels.failing = {"2.4.0": SourceError("the package index cannot be reached")}
    wheels.scripts = dict.fromkeys(("2.4.1", "2.5.0"), "off by 3")

    assert run()[0] == 4
    del wheels.failing["2.4.0"]
    status, document = run()

    assert (status, document["stages"][0]["first_new"]) == (0, "2.4.1")
    scripts = [version for version, what in wheels.tested if what == "check.py"]
    assert len(scripts) == len(set(scripts)), "an answer was tested again"


@pytest.mark.parametrize(
    ("said", "control", "verdict", "reason"),
    [
        ("off by 3", None, "bad", "exit 1"),
        (STUB, None, "skip", STUB),
        ("AssertionError", f"Traceback\n{STUB}", "skip", f"the wheel does not come up here: {STUB}"),
        (Answer(word="timeout", reason="no answer within 1800 s"), None, "skip", "no answer within 1800 s"),
        (Answer(word="skip", reason="125"), None, "skip", "125"),
    ],
)
def test_a_fault_of_ours_makes_no_release_bad(
    run: Run, wheels: Wheels, said: str | Answer, control: str | None, verdict: str, reason: str
) -> None:
    wheels.scripts = {"2.3.1": said, "2.4.0": "off by 3"}
    wheels.controls = {"2.3.1": control} if control else {}

    probe = run(bad="2.4.0")[1]["probes"]["2.3.1"]

    assert (probe["verdict"], probe["reason"]) == (verdict, reason)


def test_another_script_is_another_question(run: Run, wheels: Wheels, tmp_path: Path) -> None:
    wheels.scripts = {"2.5.0": "off by 3"}
    run()
    (tmp_path / "check.py").write_text("raise SystemExit(1)\n")
    wheels.tested.clear()

    run()

    assert ("2.3.0", "check.py") in wheels.tested


def test_a_case_is_run_by_the_wheels_own_suite(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[VerifyRequest] = []

    def record(request: VerifyRequest, console: object) -> Any:
        requests.append(request)
        bad = request.simulated is not None and Version(request.simulated.release) >= Version("2.4")
        case = Case(id="a", layer="smoke", outcome="failed" if bad else "passed")
        return SimpleNamespace(cases=(case,), known_issues=())

    monkeypatch.setattr(answers, "_record_of", record)

    assert run("issue-131750")[1]["stages"][0]["first_new"] == "2.4.0"
    for request in requests:
        assert request.simulated is not None and request.simulated.official and request.simulated.macos == "14.4"
        assert (request.only, request.full, request.python) == (("issue-131750",), False, None)


def test_the_kernels_of_an_operator_are_read_without_making_the_release_ready(
    run: Run, wheels: Wheels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(kernels: versions.KernelsOf, *sides: str) -> tuple[str, ...]:
        return ("k",) if len({Version(kernels.fetch(each).name) < Version("2.4") for each in sides}) > 1 else ()

    monkeypatch.setattr(
        official, "find_official", lambda name, **_: SimpleNamespace(path=Path(name.partition("==")[2]))
    )
    monkeypatch.setattr(versions.KernelsOf, "_compared", changed)
    wheels.scripts = dict.fromkeys(("2.4.0", "2.4.1", "2.5.0"), "off by 3")

    document = run("check.py", "--op", "exp")[1]

    assert document["stages"][0]["first_new"] == "2.4.0"
    assert "kernels of exp that differ between 2.3.1 and 2.4.0: k" in document["stages"][0]["note"]


def _case(outcome: str, known: str | None = None) -> Case:
    return Case(id="a", layer="smoke", outcome=outcome, known_issue=known, reason="why")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cases", "word"),
    [
        ([_case("own_fault")], "skip"),
        ([_case("passed"), _case("own_fault")], "skip"),
        ([_case("failed"), _case("own_fault")], "bad"),
        ([_case("known", "limit")], "skip"),
        ([_case("known", "bug")], "bad"),
    ],
)
def test_a_case_that_fails_by_us_says_nothing(cases: list[Case], word: str) -> None:
    assert answers.answer_of(cases, limits=["limit"]).word == word


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--simulated", "--repo", "."], "--repo and --simulated exclude each other"),
        (["--simulated", "--builder", "make", "--python", "3.11"], "--builder, --python and --simulated exclude"),
        (["--simulated", "--index", "wheels", "--device", "cpu"], "--index, --device cpu and --simulated exclude"),
        (["--simulated", "--allow-virtual"], "--allow-virtual and --simulated exclude"),
        (["--simulated", "--bad", "main"], "'main' is not a version of torch: --simulated tests official"),
        (["--simulated", "--bad", "dist/torch-2.4.0.whl"], "'dist/torch-2.4.0.whl' is not a version"),
        (["--simulated", "--macos", "9.9"], "--macos 9.9: is not a version"),
        (["--simulated", "--bad", "2.9.9"], "2.9.9: pip has no such torch for macOS"),
        (["--macos", "14.4"], "--macos goes with --simulated"),
    ],
)
def test_what_it_cannot_do_is_refused(wheels: Wheels, tmp_path: Path, arguments: list[str], words: str) -> None:
    ends = ["--good", "2.3.0", *([] if "--bad" in arguments else ["--bad", "2.5.0"])]
    call = ["check.py", *ends, *arguments, "--json", str(tmp_path / "answer.json")]

    assert cli.main("bisect_mps", call) == 2
    assert words in json.loads((tmp_path / "answer.json").read_text())["error"]
    assert not wheels.tested


def test_a_script_that_is_not_there_is_said(wheels: Wheels, tmp_path: Path) -> None:
    call = ["none.py", "--simulated", "--good", "2.3.0", "--bad", "2.5.0", "--json", str(tmp_path / "answer.json")]

    assert cli.main("bisect_mps", call) == 2
    assert "none.py: " in json.loads((tmp_path / "answer.json").read_text())["error"]
