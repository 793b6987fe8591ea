"""The device suite over the simulated device itself, built once: a verdict, a crash, and each script of a finding."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from mps_build.cli import main
from mps_build.common.cores import usable_cores
from mps_build.common.process import Captured, Command, capture
from mps_build.common.records.device_record import Simulated
from mps_build.common.reporter import SilentReporter
from mps_build.simulation.builder.build import Built
from mps_build.simulation.session import provide, simulated_environ
from mps_build.verify.explanations import Explanation, active_explanations, load_explanations

pytestmark = pytest.mark.slow
_SUITE = Path(__file__).parents[2] / "device"
# Run by the simulated interpreter: which scripts raise on a device; the device of each is `d`.
_ASK = """
import json, sys, torch
wrong = []
for name, script in json.load(open(sys.argv[1])).items():
    try:
        exec(script, {"torch": torch, "d": sys.argv[2]})
    except Exception as raised:
        wrong.append(name)
print(json.dumps(wrong))
"""


@pytest.fixture(scope="module")
def built() -> Built:
    return provide("2.6.0", jobs=usable_cores(), reporter=SilentReporter())


def _bugs(macos: str, outcome: str = "fails") -> dict[str, str]:
    rows = active_explanations(
        load_explanations(_SUITE / "simulated_explanations.yaml"), Simulated(release="2.6.0", macos=macos)
    )
    return {row.id: row.script for row in rows if _is_certain(row) and row.script and row.outcome == outcome}


def _is_certain(row: Explanation) -> bool:
    return row.letter == "bug" and not row.flaky


def _asked(built: Built, scripts: dict[str, str], folder: Path, *, macos: str, device: str) -> Captured:
    file = folder / "scripts.json"
    file.write_text(json.dumps(scripts))
    environ = simulated_environ(built, macos=macos, environ=os.environ)
    argv = (str(built.root.python), "-c", _ASK, str(file), device)
    return capture(Command(argv=argv, cwd=folder, environ=environ), timeout_seconds=600)


def _wrong(built: Built, scripts: dict[str, str], folder: Path, *, macos: str, device: str) -> list[str]:
    answer = _asked(built, scripts, folder, macos=macos, device=device)
    assert answer.ok, answer.stderr
    found: list[str] = json.loads(answer.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("macos", ["14.4", "15.2"])
def test_the_script_of_each_bug_is_wrong_on_the_device_and_right_on_the_cpu(
    built: Built, tmp_path: Path, macos: str
) -> None:
    scripts = _bugs(macos)

    assert len(scripts) > 50
    assert _wrong(built, scripts, tmp_path, macos=macos, device="cpu") == []
    assert _wrong(built, scripts, tmp_path, macos=macos, device="mps") == list(scripts)


@pytest.mark.parametrize("macos", ["14.4", "15.2"])
def test_the_script_of_a_bug_that_ends_cases_is_wrong_or_ends_its_process(
    built: Built, tmp_path: Path, macos: str
) -> None:
    scripts = _bugs(macos, "crashes")

    assert scripts
    assert _wrong(built, scripts, tmp_path, macos=macos, device="cpu") == []
    for name, script in scripts.items():
        answer = _asked(built, {name: script}, tmp_path, macos=macos, device="mps")
        assert not answer.ok or json.loads(answer.stdout.splitlines()[-1]) == [name], name


def test_the_lines_of_each_bug_are_there(built: Built) -> None:
    for row in load_explanations(_SUITE / "simulated_explanations.yaml"):
        for line in row.lines:
            file, _, places = line.rpartition(":")
            text = (built.tree / file).read_text(encoding="utf-8").splitlines()
            assert int(places.rpartition("-")[2]) <= len(text), line


def test_the_suite_gives_a_verdict_and_goes_on_after_a_crash(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = tmp_path / "crash.py"
    crash.write_text(
        "import ctypes, torch\n"
        "from torch.utils._python_dispatch import TorchDispatchMode\n"
        "class sends(TorchDispatchMode):\n"
        "    def __torch_dispatch__(self, func, types, args=(), kwargs=None):\n"
        "        if 'bitwise' in str(func):\n"
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
    assert cases["issue-145203"]["explained"]["letter"] == "bug"
    assert cases["issue-115152"]["outcome"] == cases["issue-165267-normal_"]["outcome"] == "passed"

    status = main("verify_mps", [*arguments, "--plant", f"{crash}:sends"])
    document = json.loads(answer.read_text())
    cases = {case["id"]: case for case in document["cases"]}
    assert (status, document["plant"]) == (10, "caught")  # a crash of a case that is known to be wrong is news
    assert cases["issue-145203"]["outcome"] == "crashed"
    assert "signal 11 (Segmentation fault), operator (none), selector commandBuffer" in cases["issue-145203"]["reason"]
