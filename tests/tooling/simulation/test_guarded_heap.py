"""Nothing of the simulation writes to memory of the process that is not its own: programs under a guarded heap."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import pytest
from mps_build.cli import main
from mps_build.common.cores import usable_cores
from mps_build.common.process import Captured, Command, capture
from mps_build.common.reporting import SilentReporter
from mps_build.simulation.builder.build import Built, build
from mps_build.simulation.libraries import libraries_of
from mps_build.simulation.releases import find_release
from mps_build.simulation.session import simulated_environ, upstream_tests
from mps_build.verify import simulated_suites
from mps_build.verify.suite.request import Limits
from mps_build.verify.upstream.outcomes import read_outcomes
from mps_build.verify.upstream.run import FILES, PACKAGES, UpstreamRequest, run_upstream

pytestmark = pytest.mark.slow

_HEAP = Path(__file__).with_name("guarded_heap.c")
# More of both: MPS_BUILD_GUARDED_SUITE=--quick MPS_BUILD_GUARDED_UPSTREAM=4/10 nox -s tests -- --tier slow
_SUITE = shlex.split(os.environ.get("MPS_BUILD_GUARDED_SUITE", "--layer drawn --cases 150"))
_UPSTREAM = os.environ.get("MPS_BUILD_GUARDED_UPSTREAM", "3/500")
_FILES = FILES if "MPS_BUILD_GUARDED_UPSTREAM" in os.environ else FILES[:1]
_FAULT = """
import ctypes
c = ctypes.CDLL(None)
c.malloc.restype = ctypes.c_void_p
c.free.argtypes = [ctypes.c_void_p]
freed, small = c.malloc(64), c.malloc(3)
c.free(freed)
ctypes.memset(freed + 8, 1, 1)
ctypes.memset(small + 3, 1, 1)
c.free(small)
"""
# As Transformers generates: copies to the CPU that an event should wait for, and in 2.6 now and then does not
# (https://github.com/pytorch/pytorch/pull/196395); their tensors are gone when they run.
_COPIES_THAT_NOBODY_WAITS_FOR = """
import torch
x = torch.randn(300, 300, device="mps")
event = torch.Event(device=torch.device("mps"))
for _ in range(60):
    y = (x @ x).max() > -1
    on_the_cpu = torch.zeros((), dtype=torch.bool)
    on_the_cpu.copy_(y, non_blocking=True)
    torch.arange(40.0).to("mps", non_blocking=True)
    event.record()
    event.synchronize()
"""
_TRAINING = """
import torch
from torch.nn import functional as F
net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.MaxPool2d(2)).to("mps")
rnn, optimizer = torch.nn.LSTM(9, 5, batch_first=True).to("mps"), torch.optim.Adam(net.parameters())
for step in range(3):
    out = net(torch.randn(2, 3, 8, 8, device="mps")).flatten(2)
    rnn(out)[0].softmax(-1).sort(-1).values.square().mean().backward()
    optimizer.step()
q = torch.randn(1, 2, 5, 4, device="mps")
F.scaled_dot_product_attention(q, q, q).cumsum(-1).topk(2).values.cpu()
torch.linalg.inv(torch.eye(3, device="mps")).sum().item()
F.interpolate(q, scale_factor=2, mode="bilinear")[..., 1:].bernoulli(0.5).unique().cpu()
torch.nonzero(q > 0).cpu(); q[q > 0] = 1; torch.histc(q.flatten()).cpu(); torch.fft.fft(q).abs().cpu()
"""


@pytest.fixture(scope="module")
def built() -> Built:
    return build(find_release("2.6.0"), jobs=usable_cores(), reporter=SilentReporter())


@pytest.fixture(scope="module")
def heap(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("heap") / "guarded_heap.so"
    argv = (
        str(built.root.clang),
        f"--sysroot={built.root.path}",
        "-O2",
        "-shared",
        "-fPIC",
        "-o",
        str(out),
        str(_HEAP),
    )
    done = capture(Command(argv=argv, environ={"PATH": os.defpath}))
    assert done.ok, done.stderr
    return out


def _run(built: Built, heap: Path, text: str) -> Captured:
    environ = {**simulated_environ(built, macos="15.2", environ=os.environ), "LD_PRELOAD": str(heap)}
    return capture(Command(argv=(str(built.root.python), "-c", text), environ=environ), timeout_seconds=600)


def test_the_guarded_heap_notices_what_is_written_late_and_too_far(built: Built, heap: Path) -> None:
    said = _run(built, heap, _FAULT).stderr

    assert "guarded heap: written after it was freed, at byte 8 of 64" in said
    assert "guarded heap: written behind its end, at byte 3 of 3" in said


@pytest.mark.parametrize("text", [_COPIES_THAT_NOBODY_WAITS_FOR, _TRAINING])
def test_a_program_writes_to_no_memory_that_is_not_its_own(built: Built, heap: Path, text: str) -> None:
    answer = _run(built, heap, text)

    assert answer.ok, answer.stderr
    assert _said([answer.stderr]) == {"guarded heap: end"}


def test_the_suite_writes_to_no_memory_that_is_not_its_own(
    built: Built, heap: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        simulated_suites,
        "simulated_environ",
        lambda *given, **more: {**simulated_environ(*given, **more), "LD_PRELOAD": str(heap)},
    )

    status = main("verify_mps", ["v2.6.0", "--simulated", "--jobs", "1", "--record", str(tmp_path), *_SUITE])

    assert status in (0, 11)
    assert _said(_logs(tmp_path)) == {"guarded heap: end"}


def test_pytorchs_own_tests_write_to_no_memory_that_is_not_their_own(built: Built, heap: Path, tmp_path: Path) -> None:
    libraries = libraries_of(built, packages=PACKAGES, folder=None, reporter=SilentReporter())
    assert libraries is not None
    environ = simulated_environ(built, macos="15.2", environ=os.environ, libraries=libraries)
    part, _, parts = _UPSTREAM.partition("/")

    run_upstream(
        UpstreamRequest(
            interpreter=libraries / "bin/python",
            environ={**environ, "LD_PRELOAD": str(heap)},
            tests=upstream_tests("2.6.0", reporter=SilentReporter()),
            files=_FILES,
            folder=tmp_path,
            limits=Limits(memory_bytes=8 << 30, case_seconds=600),
            part=(int(part), int(parts)),
        )
    )

    assert read_outcomes(tmp_path)
    assert _said(_logs(tmp_path)) == {"guarded heap: end"}


def _said(texts: Iterable[str]) -> set[str]:
    return {line for text in texts for line in re.findall(r"guarded heap: .*", text)}


def _logs(folder: Path) -> list[str]:
    return [path.read_text(encoding="utf-8", errors="replace") for path in folder.glob("*.log")]
