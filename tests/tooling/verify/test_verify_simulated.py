"""The device suite over a simulated device: what the record says, what is explained, and what is refused at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import simulation
from fake_suites import write_python, write_suite
from mps_build.cli import main
from mps_build.common.records.device_record import Simulated, load_record
from mps_build.simulation.builder.build import Built
from mps_build.simulation.builder.root import LIBRARY, Root
from mps_build.simulation.releases import find_release
from mps_build.verify import simulated_suites

SUITE = """
import os
def test_good(): assert os.environ["MPS_BUILD_MACOS"] in ("15.2", "14.4")
def test_bug(): assert 0, "the order of elements"
def test_limit(): assert 0, "no such selector"
def test_new(): assert 0, "off by 3"
def test_crash(): os.environ["FAKE_DEVICE"] == "cpu" or os.abort()
def test_old(): assert 0
def test_fresh(): assert "PYTORCH_ENABLE_MPS_FALLBACK" not in os.environ
"""
KNOWN = """\
schema_version: 1
issues:
  - {id: "7", link: "https://github.com/pytorch/pytorch/issues/7", title: old, since: "2.0", torch: "<2.7",
     macos: "<15", cases: [test_old], outcome: fails, reason: wrong}
  - {id: order, title: order, link: "https://github.com/pytorch/pytorch/issues/9", macos: ">=15", outcome: fails,
     reason: "the kernel takes its result to be dense", cases: [test_bug]}
  - {id: selector, kind: limit, title: selector, reason: "the simulation has no LSTM", cases: [test_limit],
     outcome: fails}
  - {id: gpu, kind: apple, title: gpu, link: "https://github.com/pytorch/pytorch/issues/8", cases: [test_new],
     outcome: fails, reason: "a GPU's own"}
  - {id: better, title: better, lines: [operations/BitwiseOps.mm], cases: [test_good], outcome: fails, reason: wrong}
"""
STATE = {"version": "2.6.0+debian", "built": True, "available": True, "name": "mps", "sum": 1000, "machine": "x86_64"}
Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command on a fake of the simulated interpreter."""
    for name in ("WORK", "CACHE"):
        monkeypatch.setenv(f"MPS_BUILD_{name}", str(tmp_path / name))
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    write_suite(tmp_path / "suite", SUITE)
    (tmp_path / "suite" / "known_issues.yaml").write_text(KNOWN)
    root = Root(path=tmp_path / "root", python_version="3.13")
    root.python.parent.mkdir(parents=True)
    root.python.symlink_to(write_python(tmp_path / "python", json.dumps(STATE)))
    folder = tmp_path / "build"
    folder.mkdir()
    (folder / LIBRARY).write_bytes(b"1")
    built = Built(
        release=find_release("2.6.0"),
        root=root,
        tree=tmp_path,
        folder=folder,
        kernels=tmp_path,
        objective_files=69,
        cpu_seconds=1.0,
    )
    monkeypatch.setattr(simulated_suites, "provide", lambda version, **_: built)

    def call(*arguments: str) -> tuple[int, dict[str, Any]]:
        answer = tmp_path / "answer.json"
        fixed = ["v2.6.0", "--simulated", "--suite", str(tmp_path / "suite"), "--record", str(tmp_path / "record")]
        status = main("verify_mps", [*fixed, "--json", str(answer), *arguments])
        return status, json.loads(answer.read_text())

    return call


def test_a_right_device_is_rehearsed_and_never_verified(run: Run, tmp_path: Path) -> None:
    status, document = run("--only", "test_fresh")

    assert (status, document["verdict"], document["cause"]) == (0, "rehearsed", None)
    plain = {"source": None, "torch": "debian", "official": False}
    assert document["simulated"] == {"release": "2.6.0", "macos": "15.2", **plain}
    assert document["device"] == "mps"
    assert document["target"]["kind"] == "simulation"
    assert document["environment"]["removed"] == {"PYTORCH_ENABLE_MPS_FALLBACK": "1"}
    assert "on Linux, answering as on macOS 15.2. A rehearsal" in document["statement"]
    assert load_record(tmp_path / "record" / "record.json").simulated == Simulated(release="2.6.0", macos="15.2")


def test_each_failure_says_which_known_issue_it_is_and_reports_hold_them(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / name for name in ("j.xml", "p.html", "s.md")]

    status, document = run("--junit", str(files[0]), "--html", str(files[1]), "--markdown", str(files[2]))

    cases = {case["id"]: case for case in document["cases"]}
    assert (status, document["verdict"], document["cause"]) == (10, "regressed", "regressed")
    assert {name: (case["outcome"], case["known_issue"]) for name, case in cases.items()} == {
        "test_good": ("unexpected_pass", "better"),
        "test_bug": ("known", "order"),
        "test_limit": ("known", "selector"),
        "test_new": ("failed", None),  # no bug of Apple's shows here
        "test_crash": ("crashed", None),
        "test_old": ("failed", None),
        "test_fresh": ("passed", None),
    }
    assert {row["id"]: row["kind"] for row in document["known_issues"]} == {
        **dict.fromkeys(("order", "better"), "bug"),
        "selector": "limit",
    }
    assert document["explanations"] == {"bug": 1, "limit": 1, "unexplained": 3}
    assert document["unmet"] == ["better"]
    assert "known issues that no case met here: better" in document["notes"]
    for path in files:
        assert "the kernel takes its result to be dense" in path.read_text()
        assert "15.2" in path.read_text()
    skipped = [
        case.get("name") for case in ElementTree.parse(files[0]).iter("testcase") if case.find("skipped") is not None
    ]
    assert skipped == ["test_bug", "test_limit"]
    printed = capsys.readouterr().out
    assert "1 bug of the release, 1 limit of the simulation, 3 unexplained" in printed
    assert printed.splitlines()[-1] == "torch 2.6.0+debian on mps, simulated on Linux, as on macOS 15.2: regressed"


def test_limits_alone_are_rehearsed_and_a_bug_is_a_known_issue(run: Run) -> None:
    assert run("--only", "test_fresh,test_limit")[0] == 0
    status, document = run("--only", "test_fresh,test_limit,test_bug")
    assert (status, document["verdict"]) == (11, "known_issues_only")
    status, document = run("--only", "test_fresh,test_limit,test_bug", "--accept", "known")
    assert (status, document["verdict"]) == (0, "rehearsed")


def test_the_macos_that_is_answered_decides_what_is_known(run: Run) -> None:
    assert run("--only", "test_old", "--macos", "14.4")[0] == 11  # a row of known_issues.yaml, before macOS 15
    assert run("--only", "test_old")[0] == 10
    assert run("--only", "test_bug", "--macos", "14.4")[0] == 10  # from macOS 15 on


def test_a_part_of_the_suite_says_nothing_of_rows_that_it_does_not_meet(run: Run) -> None:
    assert run("--only", "test_fresh,test_good")[1]["unmet"] == []


def test_parts_beside_each_other_are_summed_up(run: Run) -> None:
    status, document = run("--only", "test_fresh,test_limit,test_bug", "--jobs", "2")

    assert (status, document["explanations"]["unexplained"]) == (11, 0)


def test_a_run_that_answers_as_another_macos_is_not_gone_on_with(run: Run, tmp_path: Path) -> None:
    run("--only", "test_fresh")
    record = tmp_path / "record" / "record.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "partial": True}))

    status, document = run("--only", "test_fresh", "--macos", "14.4", "--resume", str(tmp_path / "record"))

    assert (status, "what the device answers as" in document["message"]) == (2, True)


def test_a_users_tree_and_what_stands_below_reach_the_builder_the_record_and_the_reports(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tree, asked = tmp_path / "tree", {}
    for name in ("aten/src/ATen/native/mps", "aten/src/ATen/mps", "third_party/pybind11"):
        (tree / name).mkdir(parents=True)
    for name in ("aten/src/ATen/native/native_functions.yaml", "third_party/pybind11/CMakeLists.txt", "CMakeLists.txt"):
        (tree / name).touch()
    (tree / "version.txt").write_text("2.6.0a0")
    plain: Callable[..., Built] = vars(simulated_suites)["provide"]

    def provide(version: str, **more: Any) -> Built:
        asked.update(more)
        return plain(version, **more)

    monkeypatch.setattr(simulated_suites, "provide", provide)
    status, document = run("--only", "test_fresh", "--source", str(tree), "--torch", "built")

    assert status == 0 and asked["source"] == tree and asked["torch"] == "built"
    whose = {"source": str(tree), "torch": "built", "official": False}
    assert document["simulated"] == {"release": "2.6.0", "macos": "15.2", **whose}
    assert "as on macOS 15.2, over a torch built from its tree" in " ".join(capsys.readouterr().out.split())


def test_a_macos_on_which_the_release_does_not_work_is_refused_as_on_a_mac(run: Run) -> None:
    status, document = run("--macos", "12.3")

    assert (status, document["cause"]) == (13, "macos_too_old")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (
            ("v2.15.0", "--simulated"),
            4,
            "2.15.0 cannot be simulated over Debian's torch, which is known here for 2.6.0 and 1.13.1",
        ),
        (("--simulated",), 2, "takes a release"),
        (("v2.6.0", "--simulated", "--device", "cuda"), 2, "--device cuda and --simulated exclude each other"),
        (("v2.6.0", "--simulated", "--python", "3.12"), 2, "--python and --simulated exclude each other"),
        (("v2.6.0", "--simulated", "--host", "mac.json"), 2, "--host and --simulated exclude each other"),
        (("v2.6.0", "--simulated", "--nightly"), 2, "--nightly and --simulated exclude each other"),
        (("v2.6.0", "--simulated", "--macos", "9.3"), 2, "--macos 9.3: is not a version"),
        (("torch==2.6.0", "--macos", "14.4"), 2, "--macos goes with --simulated"),
        (("v2.6.0", "--simulated", "--torch", "built"), 2, "--torch built needs the tree"),
        (("v2.6.0", "--simulated", "--source", "/nowhere", "--torch", "built"), 4, "/nowhere is not a PyTorch tree"),
        (("torch==2.6.0", "--source", "tree"), 2, "--source and --torch go with --simulated"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_built(
    arguments: tuple[str, ...],
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(simulated_suites, "provide", lambda *_, **__: pytest.fail("something was built"))

    assert main("verify_mps", list(arguments)) == status
    assert said in " ".join(capsys.readouterr().err.split())


def test_what_is_known_catches_no_fault(run: Run, tmp_path: Path) -> None:
    (tmp_path / "fault.py").write_text("def reaching(): pass\n")

    status, document = run("--only", "test_bug,test_fresh", "--inject", f"{tmp_path / 'fault.py'}:fires")

    assert (status, document["fault"]) == (0, "missed")
    assert [case["outcome"] for case in document["cases"]] == ["known", "passed"]


def test_the_benchmark_counts_what_was_asked_and_what_is_known() -> None:
    cases = [
        {"id": "a", "layer": "drawn", "outcome": "passed"},
        {"id": "b", "layer": "drawn", "outcome": "skipped"},
        {"id": "c", "layer": "drawn", "outcome": "known", "known_issue": "row"},
        {"id": "d", "layer": "drawn", "outcome": "known", "known_issue": "edge"},
        {"id": "e", "layer": "drawn", "outcome": "crashed"},
    ]
    rows = [{"id": "row", "kind": "bug"}, {"id": "edge", "kind": "limit"}]
    document = {"known_issues": rows, "unmet": ["x"], "cases": cases}

    found = simulation.counted(document, "15.2", seed=1, cpu_seconds=12.0)

    assert found == simulation.Run("15.2", 1, asked=4, failed=3, known=2, limits=1, unmet=("x",), cpu_seconds=12.0)


def test_a_row_is_unmet_where_no_run_of_its_range_met_it() -> None:
    runs = [simulation.Run("14.4", seed, 9, 2, 2, 0, unmet, 1.0) for seed, unmet in ((0, ("a", "b")), (1, ("b", "c")))]

    assert simulation.unmet([*runs, simulation.Run("15.2", 0, 9, 2, 2, 0, ("b", "d"), 1.0)]) == ["b"]
