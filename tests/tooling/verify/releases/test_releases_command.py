"""verify_mps --releases: one release after another, by a fake of the suite; what stops it costs one release at most."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llvmlite")

from mps_build.cli import main
from mps_build.commands.shared import releases
from mps_build.common import strict_yaml
from mps_build.common.errors import OwnFault, SourceError
from mps_build.common.records.device_record import KnownIssue, Record, Torch, WheelFile, write_record
from mps_build.inspection.coverage.rules import KERNEL, ON_DEMAND, Change
from mps_build.kernels.report.difference import Difference, Family
from mps_build.simulation.official.inventory import Lacking
from mps_build.verify import VerifyRequest
from mps_build.verify.releases import sweep
from mps_build.verify.releases.news import News, html, news_of
from mps_build.verify.releases.table import SLOW, Run
from small_records import case, record

ISSUES = """\
schema_version: 1
issues:
  - {id: "7", link: "https://github.com/pytorch/pytorch/issues/7", title: old, torch: "<2.5", cases: [issue-7],
     outcome: fails, reason: wrong, operators: [add], shown_by: ["add:out:1"]}
"""
Answer = tuple[int, dict[str, Any]]


class Suite:
    """In the place of the suite over a wheel: what each release says, or is raised; what was run."""

    cases: tuple[str, ...] = ("issue-7",)

    def __init__(self) -> None:
        self.raised: dict[str, BaseException] = {}
        self.wrong = {"2.3.1", "2.4.1"}
        self.skipped: set[str] = set()
        self.stopped: set[str] = set()
        self.refused: set[str] = set()
        self.ran: list[VerifyRequest] = []

    def __call__(self, request: VerifyRequest, *_: object, **__: object) -> Suite:
        self.ran.append(request)
        return self

    def __enter__(self) -> Suite:
        return self

    def __exit__(self, *_: object) -> None: ...

    def run(self) -> Record:
        request = self.ran[-1]
        assert request.simulated is not None and request.folder is not None
        release = request.simulated.release
        word = "skipped" if release in self.skipped else "known" if release in self.wrong else "passed"
        made = record(*(case(name, word) for name in self.cases)).model_copy(
            update={
                "simulated": request.simulated,
                "selection": request.selection(),
                "torch": Torch(version=release, wheel=WheelFile(file="t.whl", sha256=f"hash of {release}")),
                "partial": release in {*self.raised, *self.stopped},
                "message": "the device is gone" if release in self.stopped else None,
            }
        )
        if not isinstance(self.raised.get(release), OwnFault):
            write_record(made, request.folder / "record.json")
        if release in self.raised:
            raise self.raised[release]
        if release in self.refused:
            refused = {
                "cases": (),
                "cause": "usage",
                "exit_code": 2,
                "message": "no case has this id",
                "hint": "--list",
            }
            return made.model_copy(update=refused)
        return made

    @property
    def names(self) -> list[str]:
        return [request.simulated.release for request in self.ran if request.simulated]


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Suite:
    made = Suite()
    monkeypatch.setattr(sweep, "OfficialSuite", made)
    monkeypatch.setattr(sweep, "Verification", lambda *_: made)
    monkeypatch.setattr(sweep.Sweep, "check", lambda self: None)
    return made


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    (tmp_path / "known.yaml").write_text(ISSUES)

    def command(releases: str, *words: str) -> Answer:
        answer = tmp_path / "answer.json"
        named = [releases] if "==" in releases else ["--releases", releases]
        fixed = ["--simulated", "--known-issues", str(tmp_path / "known.yaml"), "--json", str(answer)]
        status = main("verify_mps", [*named, *fixed, *words])
        return status, json.loads(answer.read_text())

    return command


def marks(document: dict[str, Any]) -> dict[str, str]:
    return {release: cell["word"] for release, cell in document["rows"][0]["cells"].items()}


def test_each_release_is_run_once_and_the_table_says_which_wheel(
    call: Callable[..., Answer], suite: Suite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [tmp_path / "r.html", tmp_path / "r.md"]

    status, document = call("2.5.1,2.3.1,2.4.1", "--html", str(pages[0]), "--markdown", str(pages[1]))

    assert (status, suite.names) == (0, ["2.3.1", "2.4.1", "2.5.1"])
    assert {request.only for request in suite.ran} == {("issue-7", "add:out:1")}, (
        "the known issues' cases, if none is named"
    )
    assert {request.skip for request in suite.ran} == {SLOW}
    assert all(request.any_release for request in suite.ran)
    assert marks(document) == {"2.3.1": "wrong", "2.4.1": "wrong", "2.5.1": "right"}
    assert document["releases"][0]["sha256"] == "hash of 2.3.1"
    assert "3 releases, 0 of them are there" in capsys.readouterr().out
    assert "`nox -s verify_mps -- --releases 2.5.1,2.3.1,2.4.1 --simulated --known-issues" in pages[1].read_text()
    assert all("hash of 2.4.1" in each.read_text() and str(tmp_path / "r") not in each.read_text() for each in pages)

    again, _ = call("2.3.1,2.4.1,2.5.1,2.6.0")
    assert (again, suite.names[3:]) == (0, ["2.6.0"])
    call("2.3.1", "--only", "issue-7")
    assert (suite.names[4:], suite.ran[-1].skip) == (["2.3.1"], ()), "other cases are another question"


WORKFLOW = Path(__file__).parents[4] / ".github" / "workflows" / "releases.yml"


def test_the_workflow_runs_each_release_on_a_machine_and_makes_one_table_of_all(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scripts are run by bash, with a nox that says what it was given; that is then run over the fake."""
    workflow = strict_yaml.unchecked(WORKFLOW.read_text(encoding="utf-8"))
    default = json.loads(workflow[True]["workflow_dispatch"]["inputs"]["releases"]["default"])
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    (tmp_path / "known.yaml").write_text(ISSUES)
    shim = tmp_path / "bin" / "nox"
    shim.parent.mkdir()
    shim.write_text('#!/bin/bash\nprintf "%s\\n" "$@" > "$RUNNER_TEMP/words"\n')
    shim.chmod(0o755)

    def job(name: str, machine: str, **environ: str) -> int:
        (tmp_path / machine).mkdir(exist_ok=True)
        script = next(step["run"] for step in workflow["jobs"][name]["steps"] if "run" in step)
        path = f"{shim.parent}:{os.environ['PATH']}"
        environ |= {"PATH": path, "RUNNER_TEMP": str(tmp_path / machine)}
        subprocess.run(["bash", "-e", "-c", script], env=environ, check=True)
        session, command, separator, *words = (tmp_path / machine / "words").read_text().splitlines()
        assert (session, command, separator) == ("-s", "verify_mps", "--")
        return main(command, [*words, "--known-issues", str(tmp_path / "known.yaml")])

    for release in default:
        assert job("release", release, RELEASE=release) == 0
        shutil.copytree(tmp_path / release / "records", tmp_path / "last" / "records", dirs_exist_ok=True)

    assert job("table", "last", RELEASES=",".join(default)) == 0
    assert suite.names == default, "the last machine runs nothing again"
    document = json.loads((tmp_path / "last" / "table" / "releases.json").read_text())
    assert [each["release"] for each in document["releases"]] == default
    assert "torch==2.4.1 --simulated" in (tmp_path / "last" / "table" / "releases.html").read_text()


def test_an_option_that_the_suite_refuses_is_the_users_and_ends_the_run(
    call: Callable[..., Answer], suite: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    suite.refused = {"2.3.1", "2.4.1"}

    status, _ = call("2.3.1,2.4.1", "--only", "no-such-case")

    assert (status, suite.names) == (2, ["2.3.1"])
    assert "error: no case has this id\nhint: --list" in capsys.readouterr().err


def test_an_interrupted_run_goes_on_where_it_stopped(call: Callable[..., Answer], suite: Suite) -> None:
    suite.raised = {"2.4.1": KeyboardInterrupt()}

    status, document = call("2.3.1,2.4.1,2.5.1")

    assert (status, document["cause"]) == (130, "interrupted")
    assert "to go on: " in document["hint"] and "--releases 2.3.1,2.4.1,2.5.1" in document["hint"]
    assert marks(document) == {"2.3.1": "wrong", "2.4.1": "not_run", "2.5.1": "not_run"}
    suite.raised = {}

    status, document = call("2.3.1,2.4.1,2.5.1")

    assert (status, [(at.folder.name, at.resume) for at in suite.ran[2:] if at.folder]) == (
        0,
        [("2.4.1", True), ("2.5.1", False)],
    )


def test_a_release_that_does_not_come_up_here_is_ours_and_the_others_are_run(
    call: Callable[..., Answer], suite: Suite
) -> None:
    suite.raised = {"2.4.1": OwnFault("torch 2.4.1 could not be imported:\nno symbol")}

    status, document = call("2.3.1,2.4.1,2.5.1")

    assert (status, suite.names) == (20, ["2.3.1", "2.4.1", "2.5.1"])
    assert marks(document) == {"2.3.1": "wrong", "2.4.1": "not_run", "2.5.1": "right"}
    assert "could not be imported: no symbol" in document["releases"][1]["cause"]
    assert "nothing follows" in document["hint"]


def test_other_cases_write_over_no_record_and_their_order_is_no_other_question(
    call: Callable[..., Answer], suite: Suite, tmp_path: Path
) -> None:
    folder = str(tmp_path / "records")
    for only in ("issue-7,add:out:1", "issue-7", "add:out:1,issue-7"):
        call("2.3.1", "--record", folder, "--only", only)

    assert [request.only for request in suite.ran] == [("issue-7", "add:out:1"), ("issue-7",)]
    assert len(list(tmp_path.glob("records/*/2.3.1/record.json"))) == 2


def test_a_release_of_which_no_case_was_run_is_run_anew(
    call: Callable[..., Answer], suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as no_case:
        no_case.setattr(Suite, "cases", ())
        status, document = call("2.3.1")
    assert (status, marks(document)) == (20, {"2.3.1": "not_run"})

    status, document = call("2.3.1")

    assert (status, marks(document)) == (0, {"2.3.1": "wrong"})


def test_a_run_that_stopped_by_itself_is_ours_and_its_cases_are_kept(call: Callable[..., Answer], suite: Suite) -> None:
    suite.stopped = {"2.4.1"}

    status, document = call("2.3.1,2.4.1")

    assert (status, marks(document)) == (20, {"2.3.1": "wrong", "2.4.1": "wrong"})
    assert "2.4.1" in document["hint"] and "the device is gone" in document["hint"]


def test_where_every_case_is_skipped_nothing_was_verified(call: Callable[..., Answer], suite: Suite) -> None:
    suite.skipped = {"2.3.1", "2.4.1"}

    status, document = call("2.3.1,2.4.1")

    assert (status, document["cause"]) == (2, "usage")
    assert "nothing was verified" in document["hint"]


@pytest.mark.usefixtures("wheels")
@pytest.mark.parametrize("skipped", [{"2.4.1"}, {"2.5.1"}])
def test_where_no_case_ran_in_both_nothing_is_said_to_be_new(
    call: Callable[..., Answer], suite: Suite, skipped: set[str]
) -> None:
    suite.skipped = skipped

    status, document = call("torch==2.5.1", "--against", "2.4.1")

    assert (status, document["cause"]) == (2, "usage")
    assert "nothing was verified" in document["hint"]


def test_what_stops_every_release_stops_the_run(call: Callable[..., Answer], suite: Suite) -> None:
    suite.raised = {"2.4.1": SourceError("the index does not answer")}

    status, _ = call("2.3.1,2.4.1,2.5.1")

    assert (status, suite.names) == (4, ["2.3.1", "2.4.1"])


def test_a_damaged_record_and_one_of_another_schema_are_run_anew(
    call: Callable[..., Answer], suite: Suite, tmp_path: Path
) -> None:
    call("2.3.1,2.4.1,2.5.1")
    found = sorted(tmp_path.glob("work/releases/*/*/record.json"))
    found[0].write_text("{")
    found[1].write_text(found[1].read_text().replace("mps-build/record/1", "mps-build/record/9"))
    found[2].write_text(found[2].read_text().replace('"release": "2.5.1"', '"release": "2.5.0"'))

    call("2.3.1,2.4.1,2.5.1")

    assert suite.names[3:] == ["2.3.1", "2.4.1", "2.5.1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--releases", "2.4.1"), "--releases runs official macOS wheels on Linux"),
        (("torch==2.4.1", "--releases", "2.4.1", "--simulated"), "--releases, which names the torch"),
        (("--releases", "2.4.1", "--simulated", "--inject", "f.py:x", "--resume", "d"), "--inject, --resume and --rel"),
        (("--releases", "2.4.1", "--simulated", "--macos", "9"), "--macos 9"),
        (("--releases", "2.4.1", "--simulated", "--quick", "--full"), "--full and --releases exclude each other"),
        (("--releases", "2.4.1", "--simulated", "--nightly"), "--nightly and --releases exclude each other"),
        (("--releases", "2.4.1", "--simulated", "--against", "2.3.1"), "--releases and --against exclude each other"),
        (("--simulated", "--against", "2.3.1"), "--against takes the newer release as well"),
        (("torch-2.4.1-cp311-none-macosx_11_0_arm64.whl", "--against", "2.3.1"), "run releases of the package index"),
        (("torch==2.4.1", "--against", "2.3.1"), "--against runs official macOS wheels on Linux"),
        (("torch==2.4.1", "--simulated", "--against", "2.4.1"), "takes one release, another than 2.4.1"),
        (("torch==2.4.1", "--simulated", "--against", "2.2.2,2.3.1"), "takes one release"),
        (("torch>=2.4", "--simulated", "--against", "2.3.1"), "takes one release"),
    ],
)
def test_what_makes_no_sense_beside_it_is_refused(
    words: tuple[str, ...], said: str, suite: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("verify_mps", list(words)) == 2
    assert said in capsys.readouterr().err
    assert not suite.ran


CHANGES = (Change(name="_int_mm", before=ON_DEMAND, after=KERNEL, reason="named for MPS"),)
KERNELS = Difference(new=("a",), changed=("b",), gone=("c",), families=(Family(name="add", changed=1, new=1, gone=1),))
LACKING = Lacking(classes=(), symbols=(), selectors=("setNew:",), sent_selectors=9)


@pytest.fixture
def wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of what is read from both wheels."""

    def read(runs: tuple[Run, ...], *_: object) -> News:
        older, newer = (run.record for run in runs)
        assert older is not None and newer is not None
        return news_of(older, newer, registrations=CHANGES, kernels=KERNELS, lacking=LACKING)

    monkeypatch.setattr(releases, "_news", read)
    monkeypatch.setattr("mps_build.kernels.code.compiler.require_llvm", lambda: None)


@pytest.mark.usefixtures("wheels")
def test_what_is_new_in_a_release_is_one_page(call: Callable[..., Answer], suite: Suite, tmp_path: Path) -> None:
    suite.wrong = {"2.5.1"}
    pages = [tmp_path / "n.md", tmp_path / "n.html"]

    status, document = call("torch==2.5.1", "--against", "2.4.1", "--markdown", str(pages[0]), "--html", str(pages[1]))

    assert (status, suite.names, {request.quick for request in suite.ran}) == (10, ["2.4.1", "2.5.1"], {True})
    assert [change["id"] for change in document["cases"]["newly_failing"]] == ["issue-7"]
    assert document["kernels"] == {"new": ["a"], "changed": ["b"], "gone": ["c"], "unreadable": []}
    assert (document["lacking"]["selectors"], document["newer"]["sha256"]) == (["setNew:"], "hash of 2.5.1")
    for each in pages:
        for text in (
            "issue-7",
            "falls back on demand",
            "_int_mm",
            "named for MPS",
            "setNew:",
            "1 kernels new, 1 changed",
        ):
            assert text in each.read_text(), each


@pytest.mark.usefixtures("wheels")
def test_an_older_release_is_taken_from_an_earlier_run_and_nothing_new_is_0(
    call: Callable[..., Answer], suite: Suite
) -> None:
    call("2.6.0", "--quick")

    status, _ = call("torch==2.7.1", "--against", "2.6.0")

    assert (status, suite.names) == (0, ["2.6.0", "2.7.1"])


def test_a_case_that_fails_by_a_fault_of_ours_is_not_newly_wrong() -> None:
    texts = ("RuntimeError: software Metal: no selector setNew:", None, "as a limit says", "off by 3")
    outcomes = ("failed", "timeout", "known", "failed")
    before = record(*(case(f"{number}", "passed") for number in range(4)))
    cases = [
        case(f"{number}", word).model_copy(update={"reason": text, "known_issue": "l" if word == "known" else None})
        for number, (word, text) in enumerate(zip(outcomes, texts, strict=True))
    ]
    limit = KnownIssue(id="l", kind="limit", title="t", outcome="fails", reason="r")
    after = record(*cases).model_copy(update={"known_issues": (limit,)})

    news = news_of(before, after, registrations=(), kernels=Difference(), lacking=LACKING)

    assert [change.id for change in news.newly_wrong] == ["3"]
    titles = {title: [row[0] for row in rows] for title, _, rows in news.parts()}
    assert titles["Newly failing by a fault of ours: nothing follows"] == ["0", "1", "2"]


def test_what_is_right_again_says_what_was_wrong_and_no_folder_of_this_machine_and_a_hash_may_break() -> None:
    broken = case("a", "failed").model_copy(
        update={"reason": "RuntimeError: /home/me/cache/kernel.so cannot be loaded"}
    )
    before = record(broken)
    after = record(case("a", "passed"))
    after = after.model_copy(update={"torch": after.torch.model_copy(update={"commit": "c0ffee" * 7})})

    news = news_of(before, after, registrations=(), kernels=Difference(), lacking=LACKING)

    rows = {title: rows for title, _, rows in news.parts()}
    assert rows["Newly passing"] == [("a", "failed", "passed", "RuntimeError: kernel.so cannot be loaded")]
    assert f"<td><code>{'c0ffee' * 7}</code></td>" in html(news, command="c")


@pytest.mark.usefixtures("wheels")
def test_nothing_is_new_in_a_release_that_does_not_come_up_here(call: Callable[..., Answer], suite: Suite) -> None:
    suite.raised = {"2.7.1": OwnFault("could not be imported")}

    status, document = call("torch==2.7.1", "--against", "2.6.0")

    assert (status, "kernels" in document) == (20, False)
