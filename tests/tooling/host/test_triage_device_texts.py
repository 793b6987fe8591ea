"""What a process on MPS wrote: variants of our own, the order of judgement, and the facts of the host."""

from __future__ import annotations

from typing import Any

import pytest
from mps_build.common.known_issues import macos_floor
from mps_build.common.recipe.catalogue import all_recipes
from mps_build.host.triage import classify_device_text
from mps_build.host.triage.device_texts import real_floor
from rows import for_each

OOM = "RuntimeError: MPS backend out of memory (MPS allocated: {}, other allocations: {}, max allowed: {}). "
BLOCK = """Error: command buffer exited with error status.
\tThe Metal Performance Shaders operations encoded on it may not have completed.
\tError:
\t(null)
\tInternal Error (0000000e:Internal Error)
\t<AGXG15XFamilyCommandBuffer: 0x1>
    device = <AGXG15SDevice: 0x2>
        name = Apple M3
    retainedReferences = 1
"""
ASSERTION = "/x/MPSNDArray.mm:761: failed assertion `[MPSNDArray initWithDevice:] Error: bad'\n"
COULD_NOT = (
    "Could not run 'aten::x' with arguments from the '{}' backend. 'aten::x' is only available for these backends: "
)
TWO_DEVICES = "Expected all tensors to be on the same device, but found at least two devices, {} and cpu!"
NO_WHEEL = "You're on macOS (`macosx_15_0_arm64`), but `torch` only has wheels for the following platforms: `win_amd64`"
FALLBACK = "The operator 'aten::x' is not currently supported on the MPS backend and will fall back to run on the CPU."
GRAPH = 'loc("mps_x"("(mpsFileLoc): /x/MPSGraphUtilities.mm":39:0)): error: types differ\n'

# category, text, what is known beside it
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("assertion", ASSERTION, {"exit": -6}),
    ("assertion", "-[MTLDebugComputeCommandEncoder dispatch]:1100: failed assertion `too big'", {"exit": 134}),
    ("unknown", ASSERTION, {"exit": 0}),
    ("crash", "", {"exit": -11}),
    ("crash", "", {"exit": 138}),
    ("crash", "whatever", {"signal": "SIGILL"}),
    ("crash", "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1", {"exit": 1}),
    ("crash", ASSERTION, {"exit": 139}),
    ("unknown", "clang: error: unable to execute command: Segmentation fault: 11", {"exit": 1}),
    ("unknown", "", {"exit": -6}),
    ("unknown", "", {"exit": -9}),
    ("unknown", "KeyboardInterrupt", {"exit": 130}),
    ("gpu_fault", BLOCK + ASSERTION, {"exit": 134}),
    ("gpu_fault", "UserWarning: will fall back to run on the CPU\n" + BLOCK, {"exit": 0}),
    ("gpu_fault", "Caused GPU Hang Error (00000003:kIOGPUCommandBufferCallbackErrorHang)", {}),
    (
        "gpu_timeout",
        BLOCK.replace("Internal Error (0000000e:Internal Error)", "Caused GPU Timeout Error (IOAF code 2)"),
        {},
    ),
    ("compile_failure", GRAPH + "LLVM ERROR: Failed to infer result type(s).", {"exit": 134}),
    ("compile_failure", GRAPH + ASSERTION, {"exit": 134}),
    (
        "compile_failure",
        "MPSGraphExecutable.mm:1650: failed assertion `Error: MLIR pass manager failed'",
        {"exit": 134},
    ),
    ("compiler_unreachable", "Compiler encountered XPC_ERROR_CONNECTION_INTERRUPTED\n" + ASSERTION, {"exit": 134}),
    (
        "out_of_memory",
        OOM.format("17.2 GB", "1.0 GB", "18.1 GB") + "Tried to allocate 1.2 GB on shared pool.",
        {"exit": 1},
    ),
    (
        "out_of_memory",
        OOM.format("0 bytes", "0 bytes", "1.0 GB") + "Tried to allocate 4.0 GB on private pool.",
        {"exit": 1},
    ),
    (
        "virtual_gpu_unusable",
        OOM.format("0 bytes", "0 bytes", "1.0 GB") + "Tried to allocate 4.0 KB on private pool.",
        {},
    ),
    ("virtual_gpu_unusable", OOM.format("1.0 GB", "0 bytes", "2.0 GB") + "x", {"host": {"virtual": True}}),
    ("virtual_gpu_unusable", "name = Apple Paravirtual device\n" + ASSERTION, {"exit": 134}),
    ("unknown", "using Apple Paravirtual device\nall well", {"exit": 0}),
    ("mps_unavailable", "The MPS backend is supported on macOS 14.0+.", {"host": {"macos": "15.1", "torch": "2.11.0"}}),
    ("os_too_old", "The MPS backend is supported on MacOS 13.0+.", {"host": {"macos": "12.6"}}),
    ("os_too_old", "torch.backends.mps.is_available(): False", {"host": {"macos": "12.7", "torch": "2.6.0"}}),
    ("mps_unavailable", ">>> torch.backends.mps.is_available()\nFalse", {"exit": 0}),
    ("mps_unavailable", "MPS available?: False", {"exit": 0}),
    ("unknown", "torch.cuda.is_available(): False", {"exit": 0}),
    ("noise", "torch.backends.mps.is_available(): True", {"exit": 0}),
    ("unknown", "torch.backends.mps.is_available(): True\nboom", {"exit": 1}),
    ("not_built", "mps.is_built(): False\nmps.is_available(): False", {"exit": 0}),
    ("not_built", COULD_NOT.format("MPS") + "[CPU, MPS]", {}),
    ("unsupported_op", COULD_NOT.format("SparseMPS") + "[CPU, MPS, SparseCPU].", {}),
    ("unknown", COULD_NOT.format("MPS") + "[CPU, Meta", {}),
    ("unsupported_op", "The operator 'aten::lu' is not currently implemented for the MPS device.", {"exit": 1}),
    ("unsupported_feature", "\"bincount_mps\" not implemented for 'Half'", {"exit": 1}),
    ("unsupported_feature", "RuntimeError: Conv3D is only supported on MPS for MacOS_13_2 or newer", {"exit": 1}),
    ("device_mismatch", TWO_DEVICES.format("mps:0"), {}),
    ("unknown", TWO_DEVICES.format("cuda:0"), {}),
    ("wrong_result", "AssertionError: Scalars are not close!", {"exit": 1}),
    ("cpu_fallback", FALLBACK, {"exit": 0}),
    (
        "wrong_architecture",
        "(fat file, but missing compatible architecture (have 'i386,x86_64', need 'arm64'))",
        {"exit": 1},
    ),
    ("openmp_duplicate", "OMP: Error #15: Initializing a.dylib, but found b.dylib already initialized.", {"exit": 134}),
    ("unknown", NO_WHEEL, {"exit": 1}),
]


@for_each(CASES)
def test_a_text_of_our_own_is_classified(category: str, text: str, known: dict[str, Any]) -> None:
    assert classify_device_text(text, **known).category == category


def test_verdicts_say_whom_the_text_speaks_of() -> None:
    fault = classify_device_text(BLOCK, exit=0)
    repeated = classify_device_text(BLOCK + BLOCK, exit=0)
    guest = classify_device_text("Metal Not Supported!", exit=0)

    assert (fault.verdict, fault.stop, fault.detail["count"], fault.detail["device"]) == ("case", False, 1, "Apple M3")
    assert (repeated.stop, repeated.detail["count"]) == (True, 2)
    assert (guest.verdict, guest.stop) == ("device", True)


def test_another_programs_failure_is_no_case_of_ours() -> None:
    for text, origin in (
        ("mlx.core: " + ASSERTION, "mlx"),
        ("ggml_metal_init: error\n" + ASSERTION, "ggml"),
        ("2026-01-02 10:00:00.123 viewer[77:1a2b] x\n" + ASSERTION, "other"),
        ("2026-01-02 10:00:00.123 python3.13[77:1a2b] x\n" + ASSERTION, None),
    ):
        found = classify_device_text(text, exit=134)
        assert found.origin == origin
        assert (found.verdict == "case") is (origin is None)


def test_an_old_system_that_lacks_one_op_fails_the_case_only() -> None:
    text = "MPS does not support cumsum op with int64 input. Support has been added in macOS 13.3"

    found = classify_device_text(text, exit=1)

    assert (found.category, found.verdict) == ("os_too_old", "case")
    assert found.detail == {"op": "cumsum", "dtype": "int64", "real_floor": "13.3"}


def test_the_host_may_hold_more_than_is_requested() -> None:
    host = {"macos": "13.6", "torch": "2.10.0+cpu", "chip": "Apple M1", "memory_gb": 8, "virtual": None}

    assert classify_device_text("MPS backend is supported on MacOS 13.0+", exit=1, host=host).category == "os_too_old"


@pytest.mark.parametrize(
    ("torch", "floor"),
    [
        *[("1.12.1", "12.3"), ("2.4.1", "12.3"), ("2.5.0", "13.0"), ("2.8.0", "13.0"), ("2.9.0", "14.0")],
        *[("2.14.1", "14.0"), ("2.15.0", "15.0"), ("2.16.0.dev20261101", "15.0"), ("1.11.0", None)],
        *[(None, None), ("local", None)],
    ],
)
def test_the_floor_is_the_one_that_holds_and_not_the_one_that_is_said(torch: str | None, floor: str | None) -> None:
    assert real_floor(torch) == floor


def test_the_floors_are_those_of_the_recipes_and_of_the_suites_driver() -> None:
    for recipe in all_recipes():
        if recipe.release is not None:
            assert real_floor(recipe.version) == recipe.mps_floor == macos_floor(recipe.version)
