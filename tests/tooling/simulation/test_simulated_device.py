"""The whole: built once into the cache, then programs with an `mps` device."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mps_build.common.cores import usable_cores
from mps_build.common.process import Captured, Command, capture
from mps_build.common.reporting import SilentReporter
from mps_build.simulation.builder.build import Built, build
from mps_build.simulation.releases import find_release
from mps_build.simulation.session import measure, simulated_environ

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
# The host code asks for cumulativeSum before it takes a device, and for the class by its name.
_ABSENT = """
import ctypes, torch
library = ctypes.CDLL("libmps_simulated.so")
library.objc_getClass.restype = library.sel_registerName.restype = ctypes.c_void_p
library.objc_msgSend.argtypes = [ctypes.c_void_p] * 3
graph, ask = library.objc_getClass(b"MPSGraph"), library.sel_registerName(b"instancesRespondToSelector:")
print(torch.backends.mps.is_available(), library.objc_getClass(b"MPSGraphFFTDescriptor") is not None)
for name in (b"cumulativeSumWithTensor:axis:name:", b"topKWithSourceTensor:axis:k:name:"):
    print(library.objc_msgSend(graph, ask, library.sel_registerName(name)) & 255)
"""
# What was wrong or missing once, each against the CPU.
_FIXED = """
import torch
from torch.nn import functional as F
torch.manual_seed(0)
def same(f, *inputs):
    found = [f(*(x.to(device).requires_grad_(x.is_floating_point()) for x in inputs)) for device in ("mps", "cpu")]
    for one, other in zip(*found):
        assert torch.allclose(one.cpu(), other, atol=1e-4), (f, one, other)
def derived(f):
    def of(*inputs):
        out = f(*inputs)
        out = out if isinstance(out, tuple) else (out,)
        torch.stack([(x * x).sum() for x in out]).sum().backward()
        return [x.detach() for x in out] + [x.grad for x in inputs if x.grad is not None]
    return of
for both in (False, True):
    for bias in (False, True):
        cell = torch.nn.LSTM(5, 4, 2, bias=bias, bidirectional=both)
        def run(x, *weights, both=both, bias=bias):
            h = torch.linspace(-1, 1, 2 * (2 if both else 1) * 12, device=x.device).reshape(-1, 3, 4)
            return torch._VF.lstm(x, (h, h * 2), list(weights), bias, 2, 0.0, True, both, False)
        same(derived(run), torch.randn(6, 3, 5), *(w.detach() for w in cell.parameters()))
same(derived(lambda x: F.pad(x, (-1, 2, 1, -1), "replicate")), torch.randn(1, 2, 4, 5))
same(lambda x: [F.interpolate(x, scale_factor=1.7, mode="nearest-exact")], torch.randn(1, 1, 10, 10))
same(derived(lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)), torch.randn(1, 2, 8, 10))
same(derived(lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True)), torch.randn(1, 2, 8, 10))
same(derived(lambda x: F.avg_pool1d(x, 2)), torch.randn(3, 8))
same(lambda x: [x.detach().t().to(torch.bfloat16).float()], torch.randn(3, 4).half())
same(lambda x: torch.unique_consecutive(x, True, True, 0), torch.tensor([[1, 2], [1, 2], [0, 1]]))
same(lambda x: [torch.view_as_real(torch.view_as_complex(x.detach()).sgn())], torch.randn(4, 2))
same(lambda x: [torch.gather(x, 0, torch.tensor([0, 2], device=x.device))], torch.randn(3))
same(lambda q, k, v: [F.scaled_dot_product_attention(q.detach(), k.detach(), v.detach())], *torch.randn(3, 1, 2, 5, 4))
bits = torch.tensor([True, False], device="mps")
assert (bits**bits).tolist() == [True, True]
for more in ((0, 0), (1, 1), (2, 1)):  # sizes of a result that share a graph; the last is behind all windows
    def run(x, w):
        return F.conv_transpose2d(x, w, stride=2, dilation=3, output_padding=more)
    same(derived(run), torch.randn(1, 3, 4, 5), torch.randn(3, 2, 3, 3))
same(lambda x: [F.mish(x.detach().half()).float()], torch.linspace(-16, 16, 99))  # Half is Float within a graph
assert torch.tensor([-2.5, -0.5, 0.5, 1.5, 2.5], device="mps").round().tolist() == [-3, -1, 1, 2, 3]
# Its kernel writes, and then reads its input again: not so as Metal's compiler translates it.
assert torch.allclose(torch.tensor([1 + 2j], device="mps").exp_().cpu(), torch.tensor([1 + 2j]).exp())
for one, other in ((torch.half, torch.bfloat16), (torch.bfloat16, torch.half)):  # a view: by a kernel that is text
    x = torch.linspace(-9, 9, 24).reshape(2, 3, 4).to(one)
    found = x.to("mps").permute(2, 0, 1)[1:, :, ::2].to(other)
    assert torch.equal(found.cpu(), x.permute(2, 0, 1)[1:, :, ::2].to(other))
same(derived(lambda x: F.avg_pool2d(x, 3, 2, 1)), torch.randn(2, 8, 10))  # without a batch
def grown(x):
    return F.interpolate(x, scale_factor=40, mode="nearest"), F.interpolate(x, scale_factor=40, mode="bilinear") * 0.3
same(derived(grown), torch.randn(1, 2, 3, 2))
drawn = [torch.randn(3, device="mps", generator=torch.Generator("mps").manual_seed(7)).tolist() for _ in range(2)]
assert drawn[0] == drawn[1] and isinstance(torch.Generator("mps"), torch.Generator)
library = torch.mps._compile_shader(
    "kernel void f(device half* x, constant half2& ab, uint i [[thread_position_in_grid]]) { x[i] = ab.x + i * ab.y; }"
)
x = torch.zeros(4, device="mps", dtype=torch.half)
library.f(x, [1.0, 0.5], arg_casts="fp16")
assert dir(library) == ["f"] and x.tolist() == [1, 1.5, 2, 2.5]
# Threads of a row are one after another; no name of a kernel is taken, and ids may stand before its buffers.
library = torch.mps._compile_shader('''
kernel void count(uint2 at [[thread_position_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                  uint row [[thread_position_in_grid]], device float* x, device int* seen) {
  x[row + 1] = x[row] + 1;
  seen[row] = at.x * 100 + lane;
}''')
x, seen = torch.zeros(2001, device="mps"), torch.zeros(2000, dtype=torch.int, device="mps")
library.count(x, seen, threads=2000, group_size=48)
assert x.tolist() == list(range(2001))
assert seen.tolist() == [i % 48 * 100 + i % 48 % 32 for i in range(2000)]
weights = torch.zeros(70_001, device="mps")
weights[65_600] = 1
assert torch.multinomial(weights, 9, replacement=True).cpu().eq(65_600).all()
assert torch.randint(0, 3, (999,), device="mps").cpu().unique().tolist() == [0, 1, 2]
zeros = torch.zeros(1, 1, 4, 4, dtype=torch.uint8, device="mps")  # padding is less than the least byte
_, places = torch.ops.aten.max_pool2d_with_indices(zeros, [2, 2], [2, 2], [1, 1])
assert places.reshape(-1).tolist() == [0, 1, 3, 4, 5, 7, 12, 13, 15]
"""
# What is refused names the operator that does it, and nothing of it is written.
_REFUSED = """
import torch
shared = torch.zeros(1, device="mps").expand(4)
x, mean, var = torch.randn(4, 3, 5, device="mps"), torch.zeros(3, device="mps"), torch.ones(2, 3, device="mps")
def refused(f):
    try:
        f()
    except RuntimeError:
        return True
    return False
assert refused(lambda: torch.ops.aten.threshold_(shared, 1.0, 2.0))
def normed():
    torch.ops.aten.native_batch_norm(x, None, None, mean, var, True, 0.5, 1e-5)
    torch.mps.synchronize()
assert refused(normed) and mean.tolist() == [0, 0, 0]
"""
_STORED = """
import io, torch
for place, device in (("mps", None), ("cpu", "mps"), ("mps", "cpu")):
    file = io.BytesIO()
    torch.save(torch.arange(3, device=place), file)
    file.seek(0)
    read = torch.load(file, map_location=device)
    assert read.device.type == (device or place) and read.tolist() == [0, 1, 2]
assert torch.UntypedStorage([7, 8], device="mps").tolist() == [7, 8]
assert torch.UntypedStorage(2).device.type == "cpu"
"""
# One operand of a graph is Float, one is Half: MPSGraph ends the process on a Mac.
_UNEQUAL_TYPES = """
import torch
x = torch.rand(4, dtype=torch.half, device="mps").requires_grad_()
torch.logit(x).sum().backward()
torch.mps.synchronize()
"""
# Ends while work is queued that uses a library of the CPU's, whose own destructors come first.
_QUEUED_AT_THE_END = """
import torch
conv = torch.nn.Conv1d(8, 8, 3, padding=1).to("mps")
for _ in range(3):
    x = torch.randn(2, 16, 8, device="mps", requires_grad=True)
    (conv(x.transpose(1, 2)).transpose(1, 2).contiguous() ** 2).sum().backward()
print("done", flush=True)
"""
# Two matrices where the buffer has room for one.
_TOO_SMALL = """
import ctypes, torch
library = ctypes.CDLL("libmps_simulated.so")
for name in ("objc_getClass", "sel_registerName", "objc_msgSend", "MTLCreateSystemDefaultDevice"):
    getattr(library, name).restype = ctypes.c_void_p
def send(target, name, *numbers):
    words = [ctypes.c_void_p(each) for each in (target, library.sel_registerName(name), *numbers)]
    return library.objc_msgSend(*words)
buffer = send(library.MTLCreateSystemDefaultDevice(), b"newBufferWithLength:options:", 8, 0)
make = b"matrixDescriptorWithRows:columns:matrices:rowBytes:matrixBytes:dataType:"
about = send(library.objc_getClass(b"MPSMatrixDescriptor"), make, 2, 2, 2, 8, 16, 0x10000020)
send(send(library.objc_getClass(b"MPSMatrix"), b"alloc"), b"initWithBuffer:offset:descriptor:", buffer, 0, about)
"""
# Two matrices of 100 bytes in a buffer of 256: the second has the descriptor of both.
_BATCH_OF_MATRICES = """
import torch
a, b = torch.rand(2, 5, 5).triu() + torch.eye(5), torch.rand(2, 5, 5)
solved = torch.linalg.solve_triangular(a.to("mps"), b.to("mps"), upper=True)
print("equal" if torch.allclose(solved.cpu(), torch.linalg.solve_triangular(a, b, upper=True)) else solved)
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
    return build(find_release("2.6.0"), jobs=usable_cores(), reporter=SilentReporter())


def _run(built: Built, text: str, folder: Path, *, macos: str = "15.2") -> Captured:
    environ = simulated_environ(built, macos=macos, environ=os.environ)
    return capture(Command(argv=("python", "-c", text), cwd=folder, environ=environ), timeout_seconds=600)


@pytest.mark.parametrize("macos", ["14.4", "15.2"])
@pytest.mark.parametrize(
    "text",
    [_OPERATORS, _TRAINING, _FIXED, _STORED, _NOT_SYNCHRONIZED],
    ids=["operators", "training", "fixed", "stored", "queue"],
)
def test_a_program_gets_what_the_cpu_gives(built: Built, tmp_path: Path, text: str, macos: str) -> None:
    answer = _run(built, text, tmp_path, macos=macos)

    assert answer.ok, answer.stderr


def test_what_a_graph_refuses_is_reported_at_once_and_nothing_of_it_is_written(built: Built, tmp_path: Path) -> None:
    answer = _run(built, _REFUSED, tmp_path)  # before macOS 15 the host code gathers such a result, and never writes it

    assert answer.ok, answer.stderr


def test_a_first_operator_loads_nothing_more_and_the_modules_of_a_start_have_bytecode(
    built: Built, tmp_path: Path
) -> None:
    text = "import sys, torch; x = torch.ones(3, device='mps'); (x + x).sum().item(); assert 'sympy' not in sys.modules"

    assert _run(built, text, tmp_path).ok
    assert any(built.root.packages.glob("torch/__pycache__/*.pyc"))


def test_a_fault_of_one_macos_shows_on_that_one_alone(built: Built, tmp_path: Path) -> None:
    assert _run(built, _FILL_OF_A_VIEW, tmp_path, macos="14.4").stdout == "16\n"
    assert _run(built, _FILL_OF_A_VIEW, tmp_path, macos="15.2").stdout == "0\n"


def test_what_a_macos_lacks_is_absent(built: Built, tmp_path: Path) -> None:
    said = {macos: _run(built, _ABSENT, tmp_path, macos=macos).stdout.split() for macos in ("12.3", "13.3", "14.0")}

    assert said == {
        "12.3": ["False", "False", "0", "0"],
        "13.3": ["True", "False", "1", "0"],
        "14.0": ["True", "True", "1", "1"],
    }


def test_what_a_graph_refuses_is_an_error_with_operator_and_method(built: Built, tmp_path: Path) -> None:
    answer = _run(built, _UNEQUAL_TYPES, tmp_path)

    assert answer.exit == 1
    words = "RuntimeError: software Metal: aten::logit_backward: MPSGraph division: the types of its operands differ"
    assert words in answer.stderr


def test_a_program_that_ends_while_work_is_queued_ends_as_it_should(built: Built, tmp_path: Path) -> None:
    answer = _run(built, _QUEUED_AT_THE_END, tmp_path, macos="15.0")

    assert (answer.exit, answer.stdout) == (0, "done\n"), answer.stderr


def test_arrays_say_what_was_too_small(built: Built, tmp_path: Path) -> None:
    answer = _run(built, _TOO_SMALL, tmp_path)

    assert "an MPSMatrix of [2, 2] Float spans 16 bytes where its buffer has 8" in answer.stderr


def test_a_batch_of_matrices_may_have_its_descriptor_reach_beyond_the_last(built: Built, tmp_path: Path) -> None:
    answer = _run(built, _BATCH_OF_MATRICES, tmp_path)

    assert (answer.exit, answer.stdout) == (0, "equal\n"), answer.stderr


def test_a_type_that_mps_lacks_is_refused_in_pytorchs_own_words(built: Built, tmp_path: Path) -> None:
    answer = _run(built, 'import torch\ntorch.ones(1, dtype=torch.float64, device="mps")', tmp_path)

    assert "MPS framework doesn't support float64" in answer.stderr


def test_coverage_counts_what_pytorch_sends(built: Built) -> None:
    covered = measure(built, macos="15.2")

    assert covered.needed > 340
    assert covered.missing == ()
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
    said = "software Metal: signal 11 (Segmentation fault), operator (none), selector commandBuffer\n"
    assert f"{said}native frames: objc_msgSend" in answer.stderr


def test_a_crash_in_host_code_names_the_operator_and_its_functions(built: Built, tmp_path: Path) -> None:
    answer = _run(built, _CRASH_IN_AN_OPERATOR, tmp_path)

    assert answer.exit == -11
    assert "(Segmentation fault), operator copy_, selector (none)\nnative frames: " in answer.stderr
    assert " < at::native::mps::mps_copy_ < at::native::copy_impl < " in answer.stderr  # not as the linker has it
