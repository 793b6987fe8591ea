"""The device suite's files are read by a torch of 2022 too: what came later is imported late."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mps_build.common.process import Command, capture

SUITE = Path(__file__).parents[2] / "device"
PYTHON = os.environ.get("MPS_BUILD_TEST_TORCH") or os.environ.get("MPS_BUILD_TORCH_PYTHON") or ""
# Takes away what 1.13 has not, then reads each file, as pytest would before it chooses cases.
_READ = """
import importlib, pathlib, sys
import torch
for owner, names in (
    (torch.nn.functional, ("scaled_dot_product_attention", "rms_norm")),
    (torch.nn, ("RMSNorm",)),
    (torch, ("uint16", "uint32", "uint64")),
):
    for name in names:
        delattr(owner, name)
for path in sorted(pathlib.Path(".").rglob("test_*.py")):
    try:
        importlib.import_module(".".join(path.with_suffix("").parts))
    except Exception as error:
        print(f"{path.stem}: {type(error).__name__}: {error}")
"""


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON, reason="no torch here; MPS_BUILD_TEST_TORCH names a Python that has it")
def test_no_file_needs_what_came_after_1_13() -> None:
    environ = {**os.environ, "PYTHONPATH": "."}
    command = Command(argv=(PYTHON, "-B", "-W", "ignore", "-c", _READ), cwd=SUITE, environ=environ)
    answer = capture(command, timeout_seconds=600)

    assert answer.ok, answer.stderr[-2000:]
    assert answer.stdout.strip() == ""
