"""The whole: built once into the cache, then programs with an `mps` device."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mps_build.common.process import Captured, Command, capture
from mps_build.common.reporter import SilentReporter
from mps_build.simulation.builder.build import Built, build
from mps_build.simulation.coverage import measure
from mps_build.simulation.releases import find_release
from mps_build.simulation.session import simulated_environ

pytestmark = pytest.mark.slow

_OPERATORS = """
import torch
torch.manual_seed(0)
x, y = torch.randn(4, 5), torch.randn(5, 4)
for f in (
    lambda a, b: a @ b,                                       # MPSGraph
    lambda a, b: a[1:, ::2] * 2 + b.t()[1:, ::2],             # views
    lambda a, b: torch.fmax(a, b.t()),                        # a kernel of the wheel
    lambda a, b: torch.exp(a),                                # a kernel that is source text
    lambda a, b: torch.nn.functional.conv2d(a.expand(1, 3, 4, 5), b.expand(2, 3, 5, 4)[..., :2, :2]),
    lambda a, b: a.softmax(-1).sort(1).values,
):
    assert torch.allclose(f(x.to("mps"), y.to("mps")).cpu(), f(x, y), atol=1e-5)
"""
_TRAINING = """
import torch
def losses(device):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x = torch.randn(64, 10)
    given, wanted = x.to(device), x.sum(1, keepdim=True).to(device)
    out = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(given), wanted)
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out
cpu, mps = losses("cpu"), losses("mps")
assert cpu[-1] < cpu[0] / 10
assert max(abs(a - b) for a, b in zip(cpu, mps)) < 1e-5
"""
# https://github.com/pytorch/pytorch/issues/165267: before macOS 15 a random fill of a view does not reach it.
_FILL_OF_A_VIEW = """
import torch
view = torch.zeros(4, 6, device="mps").t()[1:5]
view.normal_()
print(int((view.cpu() == 0).sum()))
"""
_NOT_SYNCHRONIZED = """
import ctypes, torch
x = torch.ones(1 << 20, device="mps")
torch.mps.synchronize()
y = x
for _ in range(300):
    y = y + 1
torch.mps.synchronize()
assert y.cpu()[0].item() == 301
"""


@pytest.fixture(scope="module")
def built() -> Built:
    return build(find_release("2.6.0"), jobs=os.cpu_count() or 1, reporter=SilentReporter())


def _run(built: Built, text: str, folder: Path, *, macos: str = "15.2") -> Captured:
    environ = simulated_environ(built, macos=macos, environ=os.environ)
    return capture(Command(argv=("python", "-c", text), cwd=folder, environ=environ), timeout_seconds=600)


@pytest.mark.parametrize("macos", ["14.4", "15.2"])
@pytest.mark.parametrize("text", [_OPERATORS, _TRAINING, _NOT_SYNCHRONIZED], ids=["operators", "training", "queue"])
def test_a_program_gets_what_the_cpu_gives(built: Built, tmp_path: Path, text: str, macos: str) -> None:
    answer = _run(built, text, tmp_path, macos=macos)

    assert answer.ok, answer.stderr


def test_a_fault_of_one_macos_shows_on_that_one_alone(built: Built, tmp_path: Path) -> None:
    assert _run(built, _FILL_OF_A_VIEW, tmp_path, macos="14.4").stdout == "16\n"
    assert _run(built, _FILL_OF_A_VIEW, tmp_path, macos="15.2").stdout == "0\n"


def test_an_unknown_selector_is_an_error_that_names_it(built: Built, tmp_path: Path) -> None:
    made = 'import torch\nd = dict(device="mps")\n'
    call = "torch._lstm_mps(torch.ones(2, 1, 3, **d), [torch.ones(1, 1, 4, **d)] * 2, "
    rest = "[torch.ones(16, 3, **d), torch.ones(16, 4, **d)], False, 1, 0.0, False, False, False)"
    answer = _run(built, made + call + rest, tmp_path)

    assert answer.exit == 1
    assert "RuntimeError: software Metal: there is no -[MPSGraph LSTMWithSourceTensor:" in answer.stderr


def test_a_type_that_mps_lacks_is_refused_in_pytorchs_own_words(built: Built, tmp_path: Path) -> None:
    answer = _run(built, 'import torch\ntorch.ones(1, dtype=torch.float64, device="mps")', tmp_path)

    assert "MPS framework doesn't support float64" in answer.stderr


def test_coverage_counts_what_pytorch_sends(built: Built) -> None:
    covered = measure(built, macos="15.2")

    assert covered.needed > 340
    assert covered.implemented >= 346
    assert all(name.startswith("LSTM") for name in covered.missing)
    assert covered.registrations >= 713  # the official wheel's


def test_a_second_build_compiles_nothing(built: Built) -> None:
    before = built.library.stat().st_mtime_ns

    again = build(find_release("2.6.0"), jobs=1, reporter=SilentReporter())

    assert again.folder == built.folder
    assert built.library.stat().st_mtime_ns == before


_CRASH_IN_A_MESSAGE = """
import ctypes, torch
library = ctypes.CDLL("libmps_simulated.so")
library.objc_msgSend.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
library.objc_msgSend(12345, b"commandBuffer")
"""
# The memory of the tensor may not be read: the host code of a copy does so.
_CRASH_IN_AN_OPERATOR = """
import ctypes, mmap, torch
page = mmap.mmap(-1, 4096)
x = torch.frombuffer(page, dtype=torch.int32)
ctypes.CDLL(None).mprotect(ctypes.c_void_p(x.data_ptr()), ctypes.c_size_t(4096), 0)
x.to("mps", torch.float32)
"""


def test_a_crash_names_the_selector_and_the_native_frames(built: Built, tmp_path: Path) -> None:
    answer = _run(built, _CRASH_IN_A_MESSAGE, tmp_path)

    assert answer.exit == -11
    assert "software Metal: signal 11 (Segmentation fault); native frames:\n  objc_msgSend (/lib" in answer.stderr
    assert "operator (none), selector commandBuffer\n" in answer.stderr


def test_a_crash_in_host_code_names_the_operator_and_its_functions(built: Built, tmp_path: Path) -> None:
    answer = _run(built, _CRASH_IN_AN_OPERATOR, tmp_path)

    assert answer.exit == -11
    assert "\noperator copy_, selector (none)\n" in answer.stderr
    assert "\n  at::native::mps::mps_copy_ (/libmps_simulated.so)\n" in answer.stderr  # not as the linker has it
