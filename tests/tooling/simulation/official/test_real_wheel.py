"""The official wheel of 2.15.0 itself, by the command that a user types."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mps_build.common.workspace import PACKAGE

# Fetches the wheel, an emulator and Debian's Python for arm64 (0.3 GB), compiles libc++: minutes the first time.
pytestmark = [pytest.mark.slow, pytest.mark.zig]
_PROGRAM = Path(__file__).parent / "programs/wheel.py"
_METAL = _PROGRAM.with_name("metal.py")
_CHECKS = (
    *("training", "convolution", "errors", "linear_algebra", "threads", "save_and_load", "script", "arrays", "workers"),
    *("processes", "fourier_and_sort", "compiled"),
)


def test_the_newest_release_imports_and_trains_by_its_own_code(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "mps_build", "simulate", "torch==2.15.0", "--", "python", str(_PROGRAM)]
    environ = {**os.environ, "PIP_CONSTRAINT": os.devnull, "PYTHONPATH": str(PACKAGE.parent)}

    answer = subprocess.run(argv, check=False, capture_output=True, text=True, cwd=tmp_path, env=environ)

    said = [line for line in answer.stdout.splitlines() if line.endswith(" ok")]
    assert said == [f"{name} ok" for name in _CHECKS], answer.stdout + answer.stderr
    assert answer.returncode == 3  # the program's own
    assert "the macOS wheel's own code" in answer.stderr


def test_official_operators_equal_the_cpu(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "mps_build", "simulate", "torch==2.15.0", "--", "python", str(_METAL)]
    environ = {**os.environ, "PIP_CONSTRAINT": os.devnull}

    answer = subprocess.run(argv, check=False, capture_output=True, text=True, cwd=tmp_path, env=environ)

    said = [line for line in answer.stdout.splitlines() if line.endswith(" ok")]
    assert said == ["operators ok", "training ok", "faults ok", "end ok"], answer.stdout + answer.stderr
    assert answer.returncode == 3  # the program's own
