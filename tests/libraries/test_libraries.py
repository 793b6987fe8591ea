"""Twelve libraries from PyPI, as they are, on the simulated device: the CPU's numbers, or a failure with its reason.

`MPS_BUILD_LIBRARIES=torch==2.15.0` takes the official macOS wheel; without it the compiled host code of 2.6.0, which is
faster.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from mps_build.common.process import Captured, Command, capture
from mps_build.common.workspace import CHECKOUT

pytestmark = pytest.mark.libraries

_PROGRAMS = Path(__file__).with_name("programs.py")
_TARGET = os.environ.get("MPS_BUILD_LIBRARIES", "v2.6.0")
# What is installed for each; the newest of each, as its users have it.
_PACKAGES = {
    **{name: name.replace("_", "-") for name in ("einops", "torchmetrics", "x_transformers", "pytorch_lightning")},
    **{
        name: name
        for name in ("transformers", "accelerate", "safetensors", "diffusers", "peft", "kornia", "torchdiffeq")
    },
    "torch_geometric": "torch-geometric",
}
# Failures with their reason: what the output then says, by target and library.
_EXPLAINED: Mapping[tuple[str, str], str] = {}


def _ran(name: str) -> Captured:
    own = (sys.executable, "-m", "mps_build", "simulate", _TARGET, "--as-mac")
    python = ("python", str(_PROGRAMS), name)
    if _TARGET.startswith("torch"):  # its environment has a pip of its own
        words = ("bash", "-c", 'pip install -q "$1" && shift && exec "$@"', "-", _PACKAGES[name], *python)
    else:
        own = (
            *own,
            *(word for each in sorted(_PACKAGES.values()) for word in ("--with", each)),
            "--with",
            "setuptools",
        )
        words = python
    environ = {**os.environ, "PYTHONPATH": str(CHECKOUT / "scripts"), "HF_HUB_OFFLINE": "1"}
    return capture(Command(argv=(*own, "--", *words), environ=environ), timeout_seconds=3600)


@pytest.mark.parametrize("name", sorted(_PACKAGES))
def test_a_library_gives_on_mps_what_it_gives_on_the_cpu(name: str) -> None:
    answer = _ran(name)

    if reason := _EXPLAINED.get((_TARGET, name)):
        assert not answer.ok, f"{name} passes: its reason is no longer true ({reason})"
        assert reason in answer.stdout + answer.stderr
    else:
        assert answer.ok and answer.stdout.endswith("same\n"), f"{answer.stdout[-500:]}\n{answer.stderr[-3000:]}"
