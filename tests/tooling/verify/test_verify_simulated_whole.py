"""The device suite over the simulated device itself, built once: a verdict, a crash, and the lines of each bug."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mps_build.cli import main
from mps_build.common.cores import usable_cores
from mps_build.common.known_issues import load_issues, within
from mps_build.common.reporting import SilentReporter
from mps_build.simulation.builder.build import Built
from mps_build.simulation.session import provide

pytestmark = pytest.mark.slow
_SUITE = Path(__file__).parents[2] / "device"


@pytest.fixture(scope="module")
def built() -> Built:
    return provide("2.6.0", jobs=usable_cores(), reporter=SilentReporter())


def test_the_lines_of_each_bug_are_there(built: Built) -> None:
    rows = [row for row in load_issues(_SUITE / "known_issues.yaml") if within("2.6.0", row.torch)]
    lines = [line for row in rows for line in row.lines]

    assert len(lines) > 50
    for line in lines:
        file, _, places = line.partition(":")
        text = (built.tree / file).read_text(encoding="utf-8").splitlines()
        assert int((places or "1").rpartition("-")[2]) <= len(text), line


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
    assert cases["issue-145203"]["known_issue"] == "145203"
    assert cases["issue-115152"]["outcome"] == cases["issue-165267-normal_"]["outcome"] == "passed"

    status = main("verify_mps", [*arguments, "--inject", f"{crash}:sends"])
    document = json.loads(answer.read_text())
    cases = {case["id"]: case for case in document["cases"]}
    assert (status, document["fault"]) == (10, "caught")  # a crash of a case that is known to be wrong is news
    assert cases["issue-145203"]["outcome"] == "crashed"
    assert "signal 11 (Segmentation fault), operator (none), selector commandBuffer" in cases["issue-145203"]["reason"]
