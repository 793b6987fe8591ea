"""What the MPS notes, Apple's page and the release notes say of the device itself, held against this one."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

from engine import Cases
from engine.states import Refused

cases = Cases("smoke")
ON_MPS = ("mps",)
# The words a release uses for "this macOS is too old", by the first release that has them; 2.15 has another text.
# Read in the official wheels: 1.12.1 to 2.5.1 say 12.3, 2.6.0 to 2.8.0 13.0, 2.9.0 to 2.14.1 14.0, 2.15.0 15.0.
SAID = (((2, 15), "15.0+"), ((2, 9), "14.0+"), ((2, 6), "13.0+"), ((1, 12), "12.3+"))


def _release() -> tuple[int, int]:
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def _device_module(bench: Any) -> Any:
    """Return torch.mps, torch.cuda or torch.cpu: the module with synchronize and, but for the CPU, memory and state."""
    return getattr(torch, bench.device.type, None)


@cases.check("smoke-apple-verify-script")
def _ones_on_the_device_print_as_ones(bench: Any) -> None:
    with bench.device_run() as run:
        x = torch.ones(1, device=run.device)
        assert x.device.type == bench.device.type, f"ones lie on {x.device}"
        assert "1." in repr(x), f"a one is printed as {x!r}"
        assert x.item() == 1.0, f"a one is {x.item()}"


@cases.check("smoke-is-built-and-available", devices=ON_MPS)
def _built_and_available(bench: Any) -> None:
    assert torch.backends.mps.is_built() is True, "torch.backends.mps.is_built() is not True"
    assert torch.backends.mps.is_available() is True, "torch.backends.mps.is_available() is not True"


@cases.check("smoke-message-names-this-releases-macos", devices=ON_MPS)
def _the_library_holds_this_releases_message(bench: Any) -> None:
    said = next(words for first, words in SAID if _release() >= first)
    library = Path(torch.__file__).parent / "lib" / "libtorch_cpu.dylib"
    if not library.is_file():
        raise Refused("this torch has no libtorch_cpu.dylib: it was not built for macOS")
    text = library.read_bytes()
    is_there = b"supported on macOS " + said.encode() in text or b"supported on MacOS " + said.encode() in text
    assert is_there, f"the library does not hold the message that names macOS {said}"


@cases.check("smoke-float64-is-refused-in-words", devices=ON_MPS)
def _float64_is_refused(bench: Any) -> None:
    for ask in (
        lambda d: torch.ones(2, dtype=torch.float64, device=d),
        lambda d: torch.ones(2, dtype=torch.float64).to(d),
    ):
        with bench.device_run() as run:
            try:
                ask(run.device)
            except (TypeError, RuntimeError) as error:
                assert "float64" in str(error), f"the refusal does not name float64: {error}"
            else:
                raise AssertionError("a float64 tensor was made on a device that has no float64")


@cases.check("smoke-synchronise")
def _synchronise_waits_for_the_work(bench: Any) -> None:
    with bench.device_run() as run:
        x = torch.full((64, 64), 0.5, device=run.device)
        for _ in range(8):
            x = torch.matmul(x, x) / 32.0
        bench.synchronise()
        assert torch.equal(x.cpu(), torch.full((64, 64), 0.5)), "x = (x @ x) / 16 / 2 keeps every 0.5"


@cases.check("smoke-memory-grows-and-is-given-back", since="2.0", devices=("mps", "cuda"))
def _memory_is_accounted_for(bench: Any) -> None:
    module = _device_module(bench)
    allocated = getattr(module, "current_allocated_memory", None) or module.memory_allocated
    with bench.device_run() as run:
        before = allocated()
        x = torch.ones(1 << 20, device=run.device)
        bench.synchronise()
        assert allocated() - before >= 4 << 20, f"4 MiB are counted as {allocated() - before} bytes"
        del x
        bench.synchronise()
        module.empty_cache()
        assert allocated() <= before, f"{allocated() - before} bytes stay after what held them is gone"


@cases.check("smoke-random-numbers-repeat-and-advance")
def _seeded_random_numbers_repeat(bench: Any) -> None:
    with bench.device_run() as run:
        torch.manual_seed(7)
        first = torch.rand(1000, device=run.device)
        second = torch.rand(1000, device=run.device)
        torch.manual_seed(7)
        again = torch.rand(1000, device=run.device)
        first, second, again = first.cpu(), second.cpu(), again.cpu()
    assert torch.equal(first, again), "the same seed gave other numbers"
    assert not torch.equal(first, second), "two draws gave the same numbers"
    assert float(first.min()) >= 0.0, f"rand gave {float(first.min())}"
    assert float(first.max()) < 1.0, f"rand gave {float(first.max())}"
    assert abs(float(first.mean()) - 0.5) < 0.05, f"a mean of {float(first.mean())}, not 0.5"


@cases.check("smoke-generator-state", since="2.0", devices=("mps", "cuda"))
def _the_generators_state_can_be_kept(bench: Any) -> None:
    module = _device_module(bench)
    with bench.device_run() as run:
        state = module.get_rng_state()
        assert state.dtype == torch.uint8, f"the state is of {state.dtype}"
        first = torch.randn(64, device=run.device).cpu()
        module.set_rng_state(state)
        again = torch.randn(64, device=run.device).cpu()
    assert torch.equal(first, again), "the restored state gave other numbers"


@cases.check("smoke-save-and-load-both-ways")
def _a_tensor_survives_the_way_through_a_file(bench: Any) -> None:
    import io

    base = bench.draw("smoke-save").normal(5, 7)
    copies = bench.device_run().copy((base,))
    with bench.device_run() as run:
        (x,) = run.bring(copies)
        for origin, place in ((x.t(), "cpu"), (base.t(), run.device)):
            file = io.BytesIO()
            torch.save({"x": origin}, file)
            file.seek(0)
            back = torch.load(file, map_location=place)["x"]
            assert back.device.type == torch.device(place).type, f"loaded to {back.device}, not to {place}"
            assert torch.equal(back.cpu(), base.t()), f"what was loaded to {place} has other numbers"


@cases.check("smoke-operands-on-two-devices-are-refused", devices=("mps", "cuda"))
def _two_devices_are_refused(bench: Any) -> None:
    with bench.device_run() as run:
        x, y = torch.ones(3, 3, device=run.device), torch.ones(3, 3)
        for act in (lambda: x + y, lambda: torch.mm(x, y)):
            try:
                act()
            except RuntimeError:
                continue
            raise AssertionError("an operator took one operand from the host and one from the device")


def _in_a_child(source: str, **environ: str) -> tuple[int, str]:
    """Run Python in a process of its own: fallback and such are chosen when the library loads."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTORCH_ENABLE_MPS_FALLBACK"}
    whole = {**inherited, **environ}
    argv = [sys.executable, "-c", source]
    answer = subprocess.run(argv, env=whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return answer.returncode, answer.stdout.decode("utf-8", "replace")


# An operator that no release up to 2.15 has on MPS: the eigenvalues of a general matrix.
_MISSING = "import torch; torch.linalg.eig(torch.eye(2, device='mps'))"


@cases.check("smoke-missing-operator-without-fallback", devices=ON_MPS, limit_seconds=180.0)
def _without_the_variable_a_missing_operator_is_refused(bench: Any) -> None:
    status, text = _in_a_child(_MISSING)
    assert status != 0, "an operator that MPS lacks ran without PYTORCH_ENABLE_MPS_FALLBACK"
    assert "PYTORCH_ENABLE_MPS_FALLBACK" in text or "not currently implemented for the MPS device" in text, text[-600:]


@cases.check("smoke-missing-operator-with-fallback", devices=ON_MPS, limit_seconds=180.0)
def _with_the_variable_it_runs_on_the_cpu_and_says_so(bench: Any) -> None:
    status, text = _in_a_child(_MISSING, PYTORCH_ENABLE_MPS_FALLBACK="1")
    assert status == 0, text[-600:]
    assert "will fall back to run on the CPU" in text, text[-600:]


@cases.check("smoke-fallback-is-off-in-this-run")
def _this_run_has_no_fallback(bench: Any) -> None:
    assert not os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK"), "a CPU result would be compared with the CPU"


_GROUP = """
import os, torch, torch.distributed as dist
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29{port}", RANK="0", WORLD_SIZE="1")
dist.init_process_group("{backend}")
dist.all_reduce(torch.ones(2, device="mps"))
print("reduced on mps")
"""


@cases.check("smoke-collectives-on-mps-are-refused", devices=ON_MPS, limit_seconds=180.0)
def _neither_gloo_nor_nccl_takes_mps_tensors(bench: Any) -> None:
    if not torch.distributed.is_available():
        return
    for port, backend in enumerate(("gloo", "nccl"), 611):
        status, text = _in_a_child(_GROUP.format(port=port, backend=backend))
        assert status != 0 and "reduced on mps" not in text, f"{backend} reduced an MPS tensor"


@cases.check("smoke-one-gpu", devices=ON_MPS, since="2.4")
def _there_is_one_device(bench: Any) -> None:
    assert torch.mps.device_count() == 1, f"{torch.mps.device_count()} devices"


@cases.check("smoke-a-model-moves-and-steps")
def _the_notes_last_lines(bench: Any) -> None:
    base = bench.draw("smoke-model").normal(8, 4)
    copies = bench.device_run().copy((base,))
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.GELU(), torch.nn.Linear(16, 2))
    host = {name: value.clone() for name, value in model.state_dict().items()}
    with bench.device_run() as run, warnings.catch_warnings():
        warnings.simplefilter("error")
        (x,) = run.bring(copies)
        model.to(run.device)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        before = model(x).pow(2).mean()
        before.backward()
        optimiser.step()
        after = model(x).pow(2).mean()
        moved_to = {parameter.device.type for parameter in model.parameters()}
        assert moved_to == {bench.device.type}, f"parameters lie on {moved_to}"
        moved = {name: value.cpu() for name, value in model.state_dict().items()}
        before, after = before.item(), after.item()
    assert after < before, "a step along the gradient did not lower the loss"
    assert all(not torch.equal(moved[name], host[name]) for name in host), "a parameter kept its value"
