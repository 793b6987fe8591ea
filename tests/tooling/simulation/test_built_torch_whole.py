"""The whole with a torch that is built from a tree, Debian's source package as the clone: an hour the first time."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from mps_build.common.cores import usable_cores
from mps_build.common.process import Captured, Command, capture
from mps_build.common.reporting import SilentReporter
from mps_build.simulation.builder.build import Built, simulation_folder
from mps_build.simulation.builder.packages import Apt
from mps_build.simulation.releases import find_release
from mps_build.simulation.session import measure, provide, simulated_environ

_WANTED = "MPS_BUILD_WHOLE_TORCH"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_WANTED not in os.environ, reason=f"{_WANTED} is not set: a torch takes an hour the first time"),
    pytest.mark.skipif(
        shutil.which("dpkg-source") is None, reason="dpkg-source unpacks the clone: apt install dpkg-dev"
    ),
]

_TRAINING = """
import torch
from torch import nn

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 1)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])

class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.out = nn.Linear(6, 24), nn.Linear(8, 1)

    def forward(self, x):
        q, k, v = self.inner(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        return self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2).mean(1))

NETS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)), (16, 6)),
    "conv": (lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                   nn.Linear(36, 1)), (16, 2, 8, 8)),
    "lstm": (Reader, (16, 5, 6)),
    "attention": (Attending, (16, 5, 6)),
}

def losses(make, shape, device):
    torch.manual_seed(1)
    net, x = make().to(device), torch.randn(shape)
    given, wanted = x.to(device), x.flatten(1).mean(1, keepdim=True).to(device)
    optimizer, out = torch.optim.SGD(net.parameters(), lr=0.01), []
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(given), wanted)
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out

for name, (make, shape) in NETS.items():
    cpu, mps = losses(make, shape, "cpu"), losses(make, shape, "mps")
    assert cpu[-1] < cpu[0] and all(abs(a - b) < 1e-5 * max(1, a) for a, b in zip(cpu, mps)), (name, cpu, mps)
assert torch.randn(3, device="mps").device.type == "mps"
"""
# What our Python adds to a torch without MPS is upstream's own here.
_UPSTREAMS_OWN = """
import sys, torch, mps_build_simulated
assert torch.backends.mps.is_built() and torch.backends.mps.is_available()
assert mps_build_simulated._Finder not in sys.meta_path
assert type(torch.Generator) is type and torch.Generator("mps").device.type == "mps"
assert torch.UntypedStorage(2, device="mps").device.type == "mps"
assert "_mps_compileShader" in vars(torch._C) and "mps_build" not in torch._C._mps_compileShader.__module__
library = torch.mps._compile_shader("kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = i; }")
x = torch.zeros(3, device="mps")
library.f(x)
assert x.tolist() == [0, 1, 2]
"""


@pytest.fixture(scope="module")
def clone() -> Path:
    """Return Debian's tree with Debian's patches, as a user would have it; kept, as what is built of it is."""
    home, package = simulation_folder(), find_release("2.6.0").package
    tree, downloads = home / f"whole-{package.version}", home / f"source-{package.version}"
    if not (tree / "debian/patches/series").is_file():
        log = home / "logs" / "clone.log"
        apt = Apt(home / f"apt-{package.suite}", suite=package.suite, log=log, reporter=SilentReporter())
        apt.fetch_source(f"pytorch={package.version}", downloads)
        description = next(downloads.glob("*.dsc"))
        subprocess.run(["dpkg-source", "--no-check", "-x", str(description), str(tree)], check=True)
    return tree


@pytest.fixture(scope="module")
def built(clone: Path) -> Built:
    return provide("2.6.0", source=clone, torch="built", jobs=usable_cores(), reporter=SilentReporter())


def _run(built: Built, text: str, folder: Path) -> Captured:
    environ = simulated_environ(built, macos="15.2", environ=os.environ)
    argv = (str(built.root.python), "-c", text)
    return capture(Command(argv=argv, cwd=folder, environ=environ), timeout_seconds=900)


@pytest.mark.parametrize("text", [_TRAINING, _UPSTREAMS_OWN], ids=["training", "upstream's own"])
def test_a_program_gets_what_the_cpu_gives_and_upstreams_own_bindings(built: Built, tmp_path: Path, text: str) -> None:
    answer = _run(built, text, tmp_path)

    assert answer.ok, answer.stderr


def test_the_library_is_of_the_tree_and_covers_what_it_does_over_debians_torch(built: Built, clone: Path) -> None:
    covered = measure(built, macos="15.2")

    assert built.tree == clone.resolve() and built.site is not None and built.objective_files == 69
    assert not covered.missing and covered.registrations > 700
    assert not list((built.root.packages / "torch").glob("*"))  # Debian's is not there to be taken


def test_one_edited_file_of_the_back_end_is_one_compile(built: Built, clone: Path) -> None:
    file = clone / "aten/src/ATen/native/mps/operations/BinaryOps.mm"
    library, torch = built.library, built.site / "torch/lib/libtorch_cpu.so" if built.site else Path()
    before = {path: path.stat().st_mtime_ns for path in (*(built.folder / "objects").glob("*.o"), torch)}
    was = library.stat().st_mtime_ns
    os.utime(file)

    provide("2.6.0", source=clone, torch="built", jobs=1, reporter=SilentReporter())

    assert library.stat().st_mtime_ns > was
    changed = [path.name for path, time in before.items() if path.stat().st_mtime_ns != time]
    assert changed == ["aten.src.ATen.native.mps.operations.BinaryOps.mm.o"]
