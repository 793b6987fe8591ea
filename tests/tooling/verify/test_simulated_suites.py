"""verify_mps --simulated over a release's host code and over a macOS wheel: with fakes, and with the real ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import simulation
from fake_suites import write_python, write_suite
from mps_build.cli import main
from mps_build.common.cores import usable_cores
from mps_build.common.errors import OwnFault, UsageError
from mps_build.common.known_issues import load_issues, within
from mps_build.common.receipts import digest_of
from mps_build.common.records.device_record import Simulated, load_record
from mps_build.common.reporting import SilentReporter
from mps_build.common.wheels.wheel_file import read_wheel
from mps_build.simulation.builder.build import Built
from mps_build.simulation.builder.root import LIBRARY, Root
from mps_build.simulation.official import session
from mps_build.simulation.official.build import Below
from mps_build.simulation.official.interpreter import Interpreter
from mps_build.simulation.official.metal_build import Metal
from mps_build.simulation.official.wheel import Wheel
from mps_build.simulation.releases import find_release
from mps_build.simulation.session import provide
from mps_build.verify import VerifyRequest, simulated_suites
from mps_build.verify.device_suite import limits_of
from mps_build.verify.simulated_suites import OfficialSuite
from small_wheels import write_wheel

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


@pytest.mark.slow
def test_limits_alone_are_rehearsed_and_a_bug_is_a_known_issue(run: Run) -> None:
    assert run("--only", "test_fresh,test_limit")[0] == 0
    status, document = run("--only", "test_fresh,test_limit,test_bug")
    assert (status, document["verdict"]) == (11, "known_issues_only")
    status, document = run("--only", "test_fresh,test_limit,test_bug", "--accept", "known")
    assert (status, document["verdict"]) == (0, "rehearsed")


@pytest.mark.slow
def test_the_macos_that_is_answered_decides_what_is_known(run: Run) -> None:
    assert run("--only", "test_old", "--macos", "14.4")[0] == 11  # a row of known_issues.yaml, before macOS 15
    assert run("--only", "test_old")[0] == 10
    assert run("--only", "test_bug", "--macos", "14.4")[0] == 10  # from macOS 15 on


def test_a_part_of_the_suite_says_nothing_of_rows_that_it_does_not_meet(run: Run) -> None:
    assert run("--only", "test_fresh,test_good")[1]["unmet"] == []


@pytest.mark.slow
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
    tree, given = tmp_path / "tree", {}
    for name in ("aten/src/ATen/native/mps", "aten/src/ATen/mps", "third_party/pybind11"):
        (tree / name).mkdir(parents=True)
    for name in ("aten/src/ATen/native/native_functions.yaml", "third_party/pybind11/CMakeLists.txt", "CMakeLists.txt"):
        (tree / name).touch()
    (tree / "version.txt").write_text("2.6.0a0")
    plain: Callable[..., Built] = vars(simulated_suites)["provide"]

    def provide(version: str, **more: Any) -> Built:
        given.update(more)
        return plain(version, **more)

    monkeypatch.setattr(simulated_suites, "provide", provide)
    status, document = run("--only", "test_fresh", "--source", str(tree), "--torch", "built")

    assert status == 0 and given["source"] == tree and given["torch"] == "built"
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


@pytest.mark.slow
def test_what_is_known_catches_no_fault(run: Run, tmp_path: Path) -> None:
    (tmp_path / "fault.py").write_text("def reaching(): pass\n")

    status, document = run("--only", "test_bug,test_fresh", "--inject", f"{tmp_path / 'fault.py'}:fires")

    assert (status, document["fault"]) == (0, "missed")
    assert [case["outcome"] for case in document["cases"]] == ["known", "passed"]


def test_the_benchmark_counts_what_ran_and_what_is_known() -> None:
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

    assert found == simulation.Run("15.2", 1, tested=4, failed=3, known=2, limits=1, unmet=("x",), cpu_seconds=12.0)


def test_a_row_is_unmet_where_no_run_of_its_range_met_it() -> None:
    runs = [simulation.Run("14.4", seed, 9, 2, 2, 0, unmet, 1.0) for seed, unmet in ((0, ("a", "b")), (1, ("b", "c")))]

    assert simulation.unmet([*runs, simulation.Run("15.2", 0, 9, 2, 2, 0, ("b", "d"), 1.0)]) == ["b"]


WHEEL_SUITE = """
import os
def test_served():
    assert os.environ["MPS_BUILD_KERNEL_SERVER"] == "/served" and os.path.exists(os.environ["FAKE_SERVED"])
    assert os.environ["MPS_BUILD_MACOS"] in ("15.2", "15.4") and "PYTORCH_ENABLE_MPS_FALLBACK" not in os.environ
def test_bug(): assert 0, "the order of elements"
def test_new(): assert 0, "off by 3"
def test_stub(): raise RuntimeError("torch calls f of libSystem, which cannot be had in a simulation: nothing gives it")
def test_server(): raise RuntimeError("the kernel server does not answer (MPS_BUILD_KERNEL_SERVER)")
"""
WHEEL_KNOWN = """\
schema_version: 1
issues:
  - {id: order, title: order, link: "https://github.com/pytorch/pytorch/issues/9", torch: ">=2.15", where: [official],
     outcome: fails, reason: "the kernel takes its result to be dense", cases: [test_bug]}
  - {id: below, title: below, lines: [Copy.mm], where: [mac, simulated], outcome: fails, reason: r, cases: [test_new]}
"""
WHEEL_STATE = {"version": "2.15.0", "built": True, "available": True, "name": "mps", "sum": 1000, "machine": "aarch64"}
RunWheel = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def state() -> dict[str, Any]:
    """What the torch of the wheel answers."""
    return dict(WHEEL_STATE)


@pytest.fixture
def run_wheel(tmp_path: Path, state: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> RunWheel:
    """Return a function that runs the command on a fake of the wheel's Python; the kernel server is a file."""
    for name in ("WORK", "CACHE"):
        monkeypatch.setenv(f"MPS_BUILD_{name}", str(tmp_path / name))
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    write_suite(tmp_path / "suite", WHEEL_SUITE)
    (tmp_path / "suite" / "known_issues.yaml").write_text(WHEEL_KNOWN)
    path = write_wheel(tmp_path, {}, name="torch-2.15.0-cp311-cp311-macosx_14_0_arm64.whl")
    served = tmp_path / "served"

    def prepare(request: session.Request, reporter: object) -> session.Official:
        environment = tmp_path / f"environment-{digest_of(state)[:8]}"
        (environment / "bin").mkdir(parents=True, exist_ok=True)
        if not (environment / "bin/python").exists():
            (environment / "bin/python").symlink_to(write_python(environment / "made", json.dumps(state)))
        wheel = read_wheel(path)
        return session.Official(
            wheel=Wheel(path=path, version=wheel.version, python="3.11", sha256=wheel.sha256, requirements=()),
            interpreter=Interpreter(version="3.11", program=tmp_path / "p", home="/usr/bin", root=tmp_path),
            below=Below(loader=tmp_path / "a", libcxx=tmp_path / "b", empty=tmp_path / "c"),
            environment=environment,
            site=tmp_path / "site",
            zig=tmp_path / "zig",
            metal=Metal(library=tmp_path / "d", machine=tmp_path / "e"),
        )

    @contextmanager
    def serve(official: session.Official) -> Iterator[dict[str, str]]:
        served.touch()
        try:
            yield {"MPS_BUILD_KERNEL_SERVER": "/served", "FAKE_SERVED": str(served)}
        finally:
            served.unlink()

    monkeypatch.setattr(session, "prepare", prepare)
    monkeypatch.setattr(session, "served", serve)
    monkeypatch.setattr(session, "packages_beside", lambda *_, **__: tmp_path / "beside")

    def call(*arguments: str, wheel: str = "torch==2.15.0") -> tuple[int, dict[str, Any]]:
        answer = tmp_path / "answer.json"
        fixed = [wheel, "--simulated", "--suite", str(tmp_path / "suite"), "--record", str(tmp_path / "record")]
        status = main("verify_mps", [*fixed, "--json", str(answer), *arguments])
        assert not served.exists()  # the server ends with the command, however that ends
        return status, json.loads(answer.read_text())

    return call


def test_a_right_wheel_is_rehearsed_by_its_own_kernel_server(
    run_wheel: RunWheel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, document = run_wheel("--only", "test_served", "--macos", "15.4")

    assert (status, document["verdict"], document["device"]) == (0, "rehearsed", "mps")
    expected = Simulated(release="2.15.0", macos="15.4", official=True)
    assert load_record(tmp_path / "record" / "record.json").simulated == expected
    assert "as on macOS 15.4, by the macOS wheel's own code: rehearsed" in " ".join(capsys.readouterr().out.split())
    assert document["target"]["name"] == "torch==2.15.0"
    assert document["torch"]["wheel"]["file"] == "torch-2.15.0-cp311-cp311-macosx_14_0_arm64.whl"
    assert document["statement"].startswith("A chosen part of the suite. The macOS wheel of PyTorch 2.15.0 on Linux")


def test_failures_are_known_of_the_release_or_they_are_new(run_wheel: RunWheel) -> None:
    status, document = run_wheel("--only", "test_served,test_bug")
    assert (status, document["verdict"]) == (11, "known_issues_only")
    status, document = run_wheel("--only", "test_served,test_bug,test_new")
    assert (status, document["verdict"], document["explanations"]["unexplained"]) == (10, "regressed", 1)


def test_an_emulator_has_more_time() -> None:
    request = VerifyRequest(case_seconds=100)
    simulated = Simulated(release="2.15.0", macos="15.2", official=True)

    official, plain = OfficialSuite(request, simulated, wheel="torch==2.15.0").limits(), limits_of(request)

    assert official.case_seconds > plain.case_seconds == 100
    assert official.start_seconds > plain.start_seconds and official.memory_bytes == plain.memory_bytes


@pytest.mark.parametrize("fault", [{"crash": True}, {"available": False}, {"sum": 7}])
def test_a_wheel_that_does_not_come_up_is_our_fault(
    run_wheel: RunWheel, state: dict[str, Any], fault: dict[str, Any]
) -> None:
    state |= fault

    status, document = run_wheel("--only", "test_served")

    assert (status, document["verdict"], document["cause"]) == (20, "not_verified", "own_fault")
    assert "nothing follows about it" in document["message"]


def test_a_wheel_whose_preparation_fails_is_our_fault(run_wheel: RunWheel, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> session.Official:
        raise OwnFault("torch 2.15.0 could not be imported")

    monkeypatch.setattr(session, "prepare", fails)

    assert run_wheel()[1]["cause"] == "own_fault"


def test_a_python_of_ours_that_does_not_answer_is_our_fault(
    run_wheel: RunWheel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def says_nothing(*_: object, **__: object) -> Interpreter:
        raise UsageError("does not answer as a Python")

    monkeypatch.setattr(simulated_suites, "describe_interpreter", says_nothing)

    assert run_wheel()[1]["cause"] == "own_fault"


@pytest.mark.parametrize("case", ["test_stub", "test_server"])
def test_what_fails_below_the_wheel_is_our_fault(run_wheel: RunWheel, case: str) -> None:
    status, document = run_wheel("--only", f"test_served,{case}")

    assert (status, document["verdict"], document["counts"]) == (20, "not_verified", {"passed": 1, "own_fault": 1})


def test_a_macos_that_is_too_old_for_the_wheel_is_not_our_fault(run_wheel: RunWheel) -> None:
    assert run_wheel("--macos", "12.3")[0] == 13


def test_a_file_is_run_only_if_the_user_says_so(run_wheel: RunWheel, tmp_path: Path) -> None:
    wheel = str(tmp_path / "torch-2.15.0-cp311-cp311-macosx_14_0_arm64.whl")

    assert run_wheel("--only", "test_served", wheel=wheel)[0] == 21
    status, document = run_wheel("--only", "test_served", "--trust", wheel=wheel)
    assert (status, document["simulated"]["release"]) == (0, "2.15.0")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("torch", "--simulated"), "--simulated takes one release"),
        (("torch[opt-einsum]", "--simulated"), "--simulated takes one release"),
        (("torch >= 2.14", "--simulated"), "--simulated takes one release"),
        (("nowhere/torch-2.6.0-cp312-none-macosx_11_0_arm64.whl", "--simulated", "--trust"), "No such file"),
        (("torch==2.15.0", "--simulated", "--full", "--offline"), "--full, --offline: not for a macOS wheel on Linux"),
        (("torch==2.15.0", "--simulated", "--inject", "f.py:x"), "--inject: not for a macOS wheel on Linux"),
        (("torch==2.15.0", "--simulated", "--source", "tree"), "--source: not for a macOS wheel on Linux"),
        (("torch==2.15.0", "--simulated", "--python", "3.12"), "--python and --simulated exclude each other"),
        (("torch==2.15.0", "--simulated", "--macos", "9.3"), "--macos 9.3: is not a version"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_fetched(
    arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "prepare", lambda *_: pytest.fail("something was fetched"))

    assert main("verify_mps", list(arguments)) == 2
    assert said.lower() in " ".join(capsys.readouterr().err.split()).lower()


_SUITE = Path(__file__).parents[2] / "device"


@pytest.fixture(scope="module")
def built() -> Built:
    return provide("2.6.0", jobs=usable_cores(), reporter=SilentReporter())


@pytest.mark.slow
def test_the_lines_of_each_bug_are_there(built: Built) -> None:
    rows = [row for row in load_issues(_SUITE / "known_issues.yaml") if within("2.6.0", row.torch)]
    lines = [line for row in rows for line in row.lines]

    assert len(lines) > 50
    for line in lines:
        file, _, places = line.partition(":")
        text = (built.tree / file).read_text(encoding="utf-8").splitlines()
        assert int((places or "1").rpartition("-")[2]) <= len(text), line


@pytest.mark.slow
def test_the_suite_gives_a_verdict_and_goes_on_after_a_crash(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = tmp_path / "crash.py"
    crash.write_text(
        "import ctypes, torch\n"
        "from torch.utils._python_dispatch import TorchDispatchMode\n"
        "class sends(TorchDispatchMode):\n"
        "    def __torch_dispatch__(self, func, types, args=(), kwargs=None):\n"
        "        if 'normal' in str(func):\n"
        "            library = ctypes.CDLL('libmps_simulated.so')\n"
        "            library.objc_msgSend.argtypes = [ctypes.c_void_p, ctypes.c_char_p]\n"
        "            library.objc_msgSend(12345, b'commandBuffer')\n"
        "        return func(*args, **(kwargs or {}))\n"
    )
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    answer = tmp_path / "answer.json"
    chosen = "issue-115152,issue-145203,issue-165267-normal_"
    arguments = ["v2.6.0", "--simulated", "--only", chosen, "--record", str(tmp_path / "record"), "--json", str(answer)]

    status = main("verify_mps", arguments)
    document = json.loads(answer.read_text())
    cases = {case["id"]: case for case in document["cases"]}
    assert (status, document["verdict"], document["simulated"]["macos"]) == (11, "known_issues_only", "15.2")
    assert cases["issue-145203"]["known_issue"] == "bitwise-into-view"
    assert cases["issue-115152"]["outcome"] == cases["issue-165267-normal_"]["outcome"] == "passed"

    status = main("verify_mps", [*arguments, "--inject", f"{crash}:sends"])
    document = json.loads(answer.read_text())
    cases = {case["id"]: case for case in document["cases"]}
    crashed = cases["issue-165267-normal_"]
    assert (status, document["fault"], crashed["outcome"]) == (10, "caught", "crashed")
    assert "signal 11 (Segmentation fault), operator aten::normal_, selector commandBuffer" in crashed["reason"]
    assert (cases["issue-115152"]["outcome"], cases["issue-145203"]["outcome"]) == ("passed", "known")
