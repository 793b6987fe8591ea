"""The device suite over a macOS wheel on Linux: what the record says, whose fault is whose, what is refused at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_suites import write_python, write_suite
from mps_build.cli import main
from mps_build.common.errors import OwnFault, UsageError
from mps_build.common.receipts import digest_of
from mps_build.common.records.device_record import Simulated, load_record
from mps_build.common.wheels.wheel_file import read_wheel
from mps_build.simulation.official import session
from mps_build.simulation.official.build import Below
from mps_build.simulation.official.interpreter import Interpreter
from mps_build.simulation.official.inventory import Lacking
from mps_build.simulation.official.metal_build import Metal
from mps_build.simulation.official.wheel import Wheel
from mps_build.verify import VerifyRequest, simulated_suites
from mps_build.verify.device_suite import limits_of
from mps_build.verify.simulated_suites import OfficialSuite
from small_wheels import write_wheel

SUITE = """
import os
def test_served():
    assert os.environ["MPS_BUILD_KERNEL_SERVER"] == "/served" and os.path.exists(os.environ["FAKE_SERVED"])
    assert os.environ["MPS_BUILD_MACOS"] in ("15.2", "15.4") and "PYTORCH_ENABLE_MPS_FALLBACK" not in os.environ
def test_bug(): assert 0, "the order of elements"
def test_new(): assert 0, "off by 3"
def test_stub(): raise RuntimeError("torch calls f of libSystem, which cannot be had in a simulation: nothing gives it")
def test_server(): raise RuntimeError("the kernel server does not answer (MPS_BUILD_KERNEL_SERVER)")
"""
KNOWN = """\
schema_version: 1
issues:
  - {id: order, title: order, link: "https://github.com/pytorch/pytorch/issues/9", torch: ">=2.15", where: [official],
     outcome: fails, reason: "the kernel takes its result to be dense", cases: [test_bug]}
  - {id: below, title: below, lines: [Copy.mm], where: [mac, simulated], outcome: fails, reason: r, cases: [test_new]}
"""
STATE = {"version": "2.15.0", "built": True, "available": True, "name": "mps", "sum": 1000, "machine": "aarch64"}
Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def state() -> dict[str, Any]:
    """What the torch of the wheel answers."""
    return dict(STATE)


@pytest.fixture
def run(tmp_path: Path, state: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command on a fake of the wheel's Python; the kernel server is a file."""
    for name in ("WORK", "CACHE"):
        monkeypatch.setenv(f"MPS_BUILD_{name}", str(tmp_path / name))
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    write_suite(tmp_path / "suite", SUITE)
    (tmp_path / "suite" / "known_issues.yaml").write_text(KNOWN)
    path = write_wheel(tmp_path, {}, name="torch-2.15.0-cp311-cp311-macosx_14_0_arm64.whl")
    served = tmp_path / "served"

    def prepare(asked: session.Request, reporter: object) -> session.Official:
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
            metal=Metal(library=tmp_path / "d", machine=tmp_path / "e", lacking=Lacking((), (), (), 0)),
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
    monkeypatch.setattr(session, "packages_beside", lambda *_: tmp_path / "beside")

    def call(*arguments: str, wheel: str = "torch==2.15.0") -> tuple[int, dict[str, Any]]:
        answer = tmp_path / "answer.json"
        fixed = [wheel, "--simulated", "--suite", str(tmp_path / "suite"), "--record", str(tmp_path / "record")]
        status = main("verify_mps", [*fixed, "--json", str(answer), *arguments])
        assert not served.exists()  # the server ends with the command, however that ends
        return status, json.loads(answer.read_text())

    return call


def test_a_right_wheel_is_rehearsed_by_its_own_kernel_server(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, document = run("--only", "test_served", "--macos", "15.4")

    assert (status, document["verdict"], document["device"]) == (0, "rehearsed", "mps")
    expected = Simulated(release="2.15.0", macos="15.4", official=True)
    assert load_record(tmp_path / "record" / "record.json").simulated == expected
    assert "as on macOS 15.4, by the macOS wheel's own code: rehearsed" in " ".join(capsys.readouterr().out.split())
    assert document["target"]["name"] == "torch==2.15.0"
    assert document["torch"]["wheel"]["file"] == "torch-2.15.0-cp311-cp311-macosx_14_0_arm64.whl"
    assert document["statement"].startswith("A chosen part of the suite. The macOS wheel of PyTorch 2.15.0 on Linux")


def test_failures_are_known_of_the_release_or_they_are_new(run: Run) -> None:
    status, document = run("--only", "test_served,test_bug")
    assert (status, document["verdict"]) == (11, "known_issues_only")
    status, document = run("--only", "test_served,test_bug,test_new")
    assert (status, document["verdict"], document["explanations"]["unexplained"]) == (10, "regressed", 1)


def test_an_emulator_has_more_time() -> None:
    request = VerifyRequest(case_seconds=100)
    simulated = Simulated(release="2.15.0", macos="15.2", official=True)

    official, plain = OfficialSuite(request, simulated, wheel="torch==2.15.0").limits(), limits_of(request)

    assert official.case_seconds > plain.case_seconds == 100
    assert official.start_seconds > plain.start_seconds and official.memory_bytes == plain.memory_bytes


@pytest.mark.parametrize("fault", [{"crash": True}, {"available": False}, {"sum": 7}])
def test_a_wheel_that_does_not_come_up_is_our_fault(run: Run, state: dict[str, Any], fault: dict[str, Any]) -> None:
    state |= fault

    status, document = run("--only", "test_served")

    assert (status, document["verdict"], document["cause"]) == (20, "not_verified", "own_fault")
    assert "nothing follows about it" in document["message"]


def test_a_wheel_whose_preparation_fails_is_our_fault(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> session.Official:
        raise OwnFault("torch 2.15.0 could not be imported")

    monkeypatch.setattr(session, "prepare", fails)

    assert run()[1]["cause"] == "own_fault"


def test_a_python_of_ours_that_does_not_answer_is_our_fault(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def says_nothing(*_: object, **__: object) -> Interpreter:
        raise UsageError("does not answer as a Python")

    monkeypatch.setattr(simulated_suites, "describe_interpreter", says_nothing)

    assert run()[1]["cause"] == "own_fault"


@pytest.mark.parametrize("case", ["test_stub", "test_server"])
def test_what_fails_below_the_wheel_is_our_fault(run: Run, case: str) -> None:
    status, document = run("--only", f"test_served,{case}")

    assert (status, document["verdict"], document["counts"]) == (20, "not_verified", {"passed": 1, "own_fault": 1})


def test_a_macos_that_is_too_old_for_the_wheel_is_not_our_fault(run: Run) -> None:
    assert run("--macos", "12.3")[0] == 13


def test_a_file_is_run_only_if_the_user_says_so(run: Run, tmp_path: Path) -> None:
    wheel = str(tmp_path / "torch-2.15.0-cp311-cp311-macosx_14_0_arm64.whl")

    assert run("--only", "test_served", wheel=wheel)[0] == 21
    status, document = run("--only", "test_served", "--trust", wheel=wheel)
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
