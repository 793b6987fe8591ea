"""A macOS wheel that this project has built, run by its own code: the sample, cross-built here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from mps_build.common.process import Command, capture
from mps_build.common.reporter import SilentReporter
from mps_build.simulation.official.build import provide_below
from mps_build.simulation.official.interpreter import SUITES, debian_interpreter, emulated
from mps_build.simulation.official.session import HOOK
from mps_build.simulation.official.tools import provide_tools
from processes import entry
from processes import environ as entry_environ

_PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
# Builds the sample (1.1 GB), fetches an emulator and Debian's Python for arm64, and compiles libc++.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.zig,
    pytest.mark.skipif(_PYTHON not in SUITES, reason=f"Debian has no Python {_PYTHON} for arm64 that is fetched here"),
]
_PROGRAM = """
import sys
sys.path[:0] = sys.argv[1:]
import mps_build_official, mps_build_sample as sample
print({name: sample.apply(name, 3.0) for name in sample.operators()}, sample.mps_built())
try:
    sample.apply("cube", 3.0)
except KeyError as error:
    print(error)
print(sample._C.__spec__.origin.endswith("darwin.so"))
"""


def test_the_sample_computes_by_the_code_that_was_built_for_macos(tmp_path: Path) -> None:
    argv = (*entry("build_wheel", "sample", "--python", _PYTHON), "--wheelhouse", str(tmp_path / "wheelhouse"))
    made = capture(
        Command(argv=argv, environ=entry_environ(MPS_BUILD_WORK=str(tmp_path / "work"))), timeout_seconds=900
    )
    assert made.ok, made.stdout + made.stderr
    (wheel,) = (tmp_path / "wheelhouse").glob("*macosx*arm64.whl")
    site, hook = tmp_path / "site", tmp_path / "hook"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    tools = provide_tools(SilentReporter())
    interpreter, below = debian_interpreter(_PYTHON, SilentReporter()), provide_below(tools, SilentReporter())
    hook.mkdir()
    shutil.copy(HOOK, hook)
    settings = {"loader": str(below.loader), "before": [], "providers": [str(below.libcxx)], "folders": [str(site)]}
    (hook / HOOK.with_suffix(".json").name).write_text(json.dumps(settings), encoding="utf-8")

    words = (str(interpreter.program), "-c", _PROGRAM, str(hook), str(site))
    answer = subprocess.run((*emulated(tools, interpreter.root), *words), check=False, capture_output=True, text=True)

    values = {"double": 6.0, "negate": -3.0, "square": 9.0, "half": 1.5}
    assert answer.stdout.splitlines() == [f"{values} True", "'no operator cube'", "True"], answer.stderr
