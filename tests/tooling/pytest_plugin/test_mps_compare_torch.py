"""`mps` as the CPU in a real torch: whatever torch the session has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mps_build import pytest_plugin
from mps_build.common.process import Command, capture

TORCH_PYTHON = os.environ.get("MPS_BUILD_TEST_TORCH", "")
pytestmark = pytest.mark.skipif(not TORCH_PYTHON, reason="needs a torch: nox -s tests -- --tier torch")

_PACKAGE = Path(pytest_plugin.__file__).resolve().parents[2]
# What real tests do with a device: names, objects, factories, modules, contexts, generators, autocast, files.
_MAPPED = """
import io, sys, torch
from mps_build.pytest_plugin.on_the_cpu import map_to_cpu
before = torch.device("mps")
map_to_cpu()
def on_the_cpu(x): assert x.device.type == "cpu", x.device
for device in ("mps", "mps:0", torch.device("mps"), torch.device("mps", 0), before):
    on_the_cpu(torch.zeros(2, device=device)); on_the_cpu(torch.ones(2).to(device))
    on_the_cpu(torch.ones(2).to(device=device))
    on_the_cpu(torch.nn.Linear(2, 2).to(device).weight); on_the_cpu(torch.nn.Linear(2, 2, device=device).weight)
    on_the_cpu(torch.tensor([1.0], device=device)); on_the_cpu(torch.zeros(1).new_zeros(3, device=device))
    on_the_cpu(torch.randn(2, generator=torch.Generator(device).manual_seed(1), device=device))
with torch.device("mps"): on_the_cpu(torch.zeros(1))
torch.set_default_device("mps"); on_the_cpu(torch.zeros(1)); torch.set_default_device("cpu")
with torch.autocast("mps", dtype=torch.bfloat16): assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
file = io.BytesIO(); torch.save({"a": torch.ones(2)}, file); file.seek(0)
on_the_cpu(torch.load(file, map_location="mps")["a"])
assert isinstance(torch.Generator(), torch.Generator)
"""
# There is no mps here: what asks for it fails on "mps" alone.
_TESTS = """
import pytest, torch
@pytest.fixture
def device(): return torch.device("mps")
def test_passes_on_the_cpu(device):
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()).to(device)
    model(torch.ones(1, 3, device=device)).sum().backward()
    assert model[0].weight.grad.shape == (2, 3)
def test_fails_there_too(device): assert torch.zeros(2).to(torch.float64).dtype is torch.float32
"""


def _run(*argv: str, folder: Path) -> str:
    environ = {"PATH": os.defpath, "PYTHONPATH": str(_PACKAGE), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = capture(Command(argv=(TORCH_PYTHON, *argv), environ=environ, cwd=folder), timeout_seconds=300)
    return done.stdout + done.stderr


def test_what_a_test_does_with_mps_is_done_on_the_cpu(tmp_path: Path) -> None:
    assert _run("-c", _MAPPED, folder=tmp_path) == ""


def test_a_test_that_mps_alone_fails_is_not_one_that_the_cpu_fails_too(tmp_path: Path) -> None:
    (tmp_path / "test_device.py").write_text(_TESTS, encoding="utf-8")

    options = ("-q", "-p", "no:cacheprovider", "-p", "mps_build.pytest_plugin", "--mps-compare")
    said = _run("-m", "pytest", *options, folder=tmp_path)

    assert "2 tests that fail on mps: " in said, said
    assert ", 1 on the CPU too" in said
    assert "test_device.py::test_passes_on_the_cpu" in said.partition("fails on the CPU too:")[0]
