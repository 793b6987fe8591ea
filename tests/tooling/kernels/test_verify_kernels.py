"""verify_kernels by its command, on small wheels: right and faulty kernels, and what no kernel may do to the run."""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import sys
import venv
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.commands.shared.kernels import reference_python
from mps_build.common.console import Console
from mps_build.common.cores import usable_cores
from mps_build.common.errors import UsageError
from mps_build.kernels.execution import selection, verify_all, worker
from mps_build.kernels.execution.examine import examine
from mps_build.kernels.read.library import Function, Library
from small_kernels import GRID, air, bitcode, buffer, builtin, wheel

pytest.importorskip("llvmlite")


pytestmark = pytest.mark.sandbox


# An interpreter without torch: says a version, and answers every question about a reference with an error.
_FAKE_PYTHON = """\
#!{python}
import json, os, socket, struct, sys
if sys.argv[1] == "-c":
    print("0.0")
    sys.exit()
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[2])
server.listen(4)
while True:
    connection, _ = server.accept()
    if os.fork() == 0:
        def read(size):
            data = b""
            while len(data) < size:
                piece = connection.recv(size - len(data))
                if not piece:
                    os._exit(0)
                data += piece
            return data
        while True:
            text, size = struct.unpack("<IQ", read(12))
            read(text + size)
            answer = json.dumps({{"error": "no torch here"}}).encode()
            connection.sendall(struct.pack("<IQ", len(answer), 0) + answer)
    connection.close()
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "python"
    fake.write_text(_FAKE_PYTHON.format(python=sys.executable))
    fake.chmod(0o755)
    monkeypatch.setenv("MPS_BUILD_TORCH_PYTHON", str(fake))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(cache))


def test_the_python_of_the_references_may_be_named_from_where_the_user_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPS_BUILD_TORCH_PYTHON", "python")

    assert reference_python(Console()) == tmp_path / "python"


def unary(name: str, body: str, *, around: str = "", numel: bool = False) -> bytes:
    """Return an elementwise kernel; `body` makes %y of %x, and may use %i and %out."""
    arguments = [buffer(0, "output"), buffer(1, "input", access="read")]
    parameters = "ptr addrspace(1) %out, ptr addrspace(1) %in, "
    if numel:
        arguments.append(buffer(2, "numel", "uint", access="read", space=2))
        parameters += "ptr addrspace(2) %n, "
    text = f"""
  %j = zext i32 %i to i64
  %p = getelementptr float, ptr addrspace(1) %in, i64 %j
  %x = load float, ptr addrspace(1) %p, align 4
{body}
  %q = getelementptr float, ptr addrspace(1) %out, i64 %j
  store float %y, ptr addrspace(1) %q, align 4
  ret void"""
    grid = builtin(len(arguments), GRID)
    return bitcode(air(name, f"{parameters}i32 %i", text, [*arguments, grid], around=around))


def pair(op: str, body: str, *, around: str = "") -> dict[str, bytes]:
    """Return a form of one element a thread, and the dense form that it is held against (which is right)."""
    dense = unary(f"{op}_dense_float_float", "  %y = fmul float %x, 2.0", numel=True)
    scalar = f"{op}_dense_scalar_float_float"
    return {f"{op}_dense_float_float": dense, scalar: unary(scalar, body, around=around)}


GOOD = pair("good", "  %y = fadd float %x, %x")


def verified(path: Path, tmp_path: Path, *more: str) -> tuple[int, dict[str, Any]]:
    file = tmp_path / "out.json"
    code = main("verify_kernels", [str(path), "--json", str(file), "--kernel", "*_scalar_*", *more])
    return code, json.loads(file.read_text())


def outcomes(document: Mapping[str, Any]) -> dict[str, str]:
    return {row["name"].partition("_")[0]: row["outcome"] for row in document["kernels"]}


def test_a_right_kernel_is_verified_and_one_that_differs_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = wheel(tmp_path, {**GOOD, **pair("off", "  %y = fmul float %x, 2.5")})

    code, found = verified(path, tmp_path)
    alone, _ = verified(path, tmp_path, "--op", "good")

    assert (code, found["verdict"], outcomes(found)) == (10, "findings", {"good": "passed", "off": "wrong"})
    assert found["coverage"] == {"kernels": 2, "compiled": 2, "bound": 2, "run": 2}
    assert alone == 0
    assert found["concurrency"] == {"cores": usable_cores(), "processes": usable_cores(), "threads": 1}
    printed = capsys.readouterr().out
    assert "wrong: off_dense_scalar_float_float (metal_basic)" in printed
    assert max(map(len, printed.split("torch-9.9.0")[0].splitlines())) <= 80


_HOSTILE = {
    "unknown": ("  %y = call float @air.frobnicate.f32(float %x)", "declare float @air.frobnicate.f32(float)"),
    "foreign": ("  %y = call float @system(float %x)", "declare float @system(float)"),
    "madeup": ("  %a = inttoptr i64 %j to ptr\n  %y = load float, ptr %a", ""),
    "before": (
        "  %m = sub i64 0, %j\n  %w = getelementptr float, ptr addrspace(1) %out, i64 %m\n"
        "  store float 1.0, ptr addrspace(1) %w\n  %y = fadd float %x, %x",
        "",
    ),
    "tensor": (
        "  call void @__tensorops_impl_matmul2d_op_run_dv_f16(ptr null)\n  %y = fadd float %x, %x",
        "declare void @__tensorops_impl_matmul2d_op_run_dv_f16(ptr)",
    ),
}


def test_hostile_kernels_are_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    kernels = {**GOOD}
    for op, (body, around) in _HOSTILE.items():
        kernels |= pair(op, body, around=around)
    kernels["short_dense_scalar_float_float"] = GOOD["good_dense_scalar_float_float"][:200]
    kernels["noise_dense_scalar_float_float"] = b"\xde\xc0\x17\x0b" + bytes(range(256))

    code, found = verified(wheel(tmp_path, kernels), tmp_path)

    assert code == 10
    assert outcomes(found) == {
        "good": "passed",
        "unknown": "refused",
        "foreign": "refused",
        "madeup": "refused",
        "before": "out_of_bounds",
        "tensor": "not_bound",
        "short": "not_compiled",
        "noise": "not_compiled",
    }
    assert found["coverage"]["compiled"] == len(["good", "before"])
    reasons = {row["name"].partition("_")[0]: row["reason"] for row in found["kernels"]}
    assert "air.frobnicate.f32" in reasons["unknown"]
    assert "system" in reasons["foreign"]
    assert "inttoptr" in reasons["madeup"]


@pytest.mark.slow  # five seconds until the endless one is ended; test_kernels_device.py ends one after 0.2
def test_a_kernel_that_writes_everywhere_and_one_that_never_ends_are_ended(tmp_path: Path) -> None:
    text = """
  br label %again
again:
  %k = phi i64 [ 0, %0 ], [ %l, %again ]
  %l = add i64 %k, 1
  %w = getelementptr float, ptr addrspace(1) %out, i64 %k
  store float 1.0, ptr addrspace(1) %w
  %e = icmp eq i64 %l, 999999999999
  br i1 %e, label %end, label %again
end:
  ret void"""
    arguments = [buffer(0, "output"), buffer(1, "input", access="read"), builtin(2, GRID)]
    parameters = "ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %i"
    endless = text.replace("i64 %k\n", "i64 0\n").replace("999999999999", "-1")
    kernels = {**GOOD}
    for op, body in (("wild", text), ("endless", endless)):
        name = f"{op}_dense_scalar_float_float"
        kernels |= {**pair(op, "  %y = fadd float %x, %x"), name: bitcode(air(name, parameters, body, arguments))}

    code, found = verified(wheel(tmp_path, kernels), tmp_path)

    assert (code, outcomes(found)) == (10, {"good": "passed", "wild": "out_of_bounds", "endless": "timeout"})


def test_nothing_that_ran_is_not_verified(tmp_path: Path) -> None:
    other = bitcode(air("strange", "ptr addrspace(1) %a", "  ret void", [buffer(0, "a")]))
    code = main("verify_kernels", [str(wheel(tmp_path, {"strange": other})), "--json", str(tmp_path / "out.json")])
    found = json.loads((tmp_path / "out.json").read_text())

    assert (code, found["verdict"], found["cause"]) == (2, "not_verified", "not_verified")
    assert found["kernels"][0]["outcome"] == "not_bound"
    assert found["coverage"] == {"kernels": 1, "compiled": 1, "bound": 0, "run": 0}


def test_a_wheel_without_a_metal_library_says_what_it_has(tmp_path: Path) -> None:
    code, found = verified(wheel(tmp_path), tmp_path)

    assert (code, found["verdict"], found["kernels"]) == (2, "not_verified", [])
    assert "has no Metal library" in found["reason"]


@pytest.mark.parametrize(
    ("function", "fault", "status"),
    [("caught", 'text.replace("fadd", "fsub")', 10), ("not_exercised", "text", 2), ("error", 'text + "@"', 2)],
)
def test_an_injected_fault(tmp_path: Path, function: str, fault: str, status: int) -> None:
    (tmp_path / "fault.py").write_text(f"def injected(text):\n    return {fault}\n")

    code, found = verified(wheel(tmp_path, GOOD), tmp_path, "--inject", f"{tmp_path / 'fault.py'}:injected")

    assert (found["fault"], code) == (function, status)


@pytest.mark.slow
def test_a_second_run_takes_what_is_unchanged_from_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = wheel(tmp_path, {**GOOD, **pair("off", "  %y = fmul float %x, 2.5")})
    first = verified(path, tmp_path)
    monkeypatch.setattr(worker, "examine", None)  # workers are forked from here: running anything would fail

    assert verified(path, tmp_path) == first
    changed = wheel(tmp_path / "b", {**GOOD, **pair("off", "  %y = fmul float %x, 2.25")})
    assert outcomes(verified(changed, tmp_path)[1]) == {"good": "passed", "off": "misfit"}


def _crashed() -> None:
    faulthandler.disable()  # it crashes on purpose, and says nothing of it
    ctypes.string_at(0)


def _raised(error: Exception) -> None:
    raise error


_FAULTS = {
    "bad1": (_crashed, "its worker is lost, it ended by signal 11"),
    "bad2": (lambda: os._exit(0), "its worker is lost, it ended"),
    "bad3": (lambda: _raised(KeyError("x")), "KeyError: 'x'"),
    "bad4": (lambda: _raised(MemoryError()), "MemoryError"),
}


def _among_good(names: Iterable[str]) -> dict[str, bytes]:
    """Return kernels of these names between two others; all are right."""
    kernels = {**pair("a", "  %y = fadd float %x, %x"), **GOOD}
    for name in names:
        kernels |= pair(name, "  %y = fadd float %x, %x")
    return kernels


def test_our_own_fault_is_a_kernels_misfit_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def examined(kernel: Any, *arguments: Any, **options: Any) -> Any:
        if (name := kernel.name.partition("_")[0]) in _FAULTS:
            _FAULTS[name][0]()
        return examine(kernel, *arguments, **options)

    monkeypatch.setattr(worker, "examine", examined)

    code, found = verified(wheel(tmp_path, _among_good(_FAULTS)), tmp_path)

    assert (code, outcomes(found)) == (20, {"a": "passed", "good": "passed", **dict.fromkeys(_FAULTS, "misfit")})
    reasons = {row["name"].partition("_")[0]: row["reason"] for row in found["kernels"]}
    assert not [(name, reasons[name]) for name, (_, said) in _FAULTS.items() if said not in reasons[name]]


_ODD_LINES = {
    "odd1": b"nothing of JSON",
    "odd2": b'{"event": "pid", "pid": 1}',
    "odd3": b'{"event": "done", "function": 1e9}',
    "odd4": b'{"event": "done", "function": 0, "verdict": {"outcome": "passed"}, "more": 1}',
}


def test_a_worker_that_says_what_no_worker_says_is_ended_and_costs_one_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def says(answers: int, message: Mapping[str, Any]) -> None:
        said = json.dumps(message).encode()
        odd = _ODD_LINES.get(message.get("operator", "")) if message.get("event") == "done" else None
        os.write(answers, (odd or said) + b"\n")

    monkeypatch.setattr(worker, "say", says)

    code, found = verified(wheel(tmp_path, _among_good(_ODD_LINES)), tmp_path)

    assert (code, outcomes(found)) == (20, {"a": "passed", "good": "passed", **dict.fromkeys(_ODD_LINES, "misfit")})


def test_without_a_sandbox_nothing_of_a_wheel_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each layer that the kernel or the system can lack is taken away in the server's process."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import ctypes\n"
        "original = ctypes.CDLL\n"
        "def without(name, *more, **options):\n"
        "    if name and 'libseccomp' in str(name):\n"
        "        raise OSError('no such library')\n"
        "    return original(name, *more, **options)\n"
        "ctypes.CDLL = without\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    code = main("verify_kernels", [str(wheel(tmp_path, GOOD)), "--json", str(tmp_path / "out.json")])

    assert code == 21
    assert "libseccomp" in capsys.readouterr().err


def test_an_interpreters_torch_is_read_from_its_files(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel(tmp_path, GOOD)) as archive:
        archive.extractall(site)
    file = tmp_path / "out.json"

    python = str(tmp_path / "venv/bin/python")
    code = main("verify_kernels", ["--python", python, "--kernel", "*_scalar_*", "--json", str(file)])
    found = json.loads(file.read_text())

    assert (code, found["torch"], outcomes(found)) == (0, "9.9.0", {"good": "passed"})


@pytest.mark.slow
def test_another_seed_asks_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = wheel(tmp_path, GOOD)
    assert outcomes(verified(path, tmp_path, "--seed", "5")[1]) == {"good": "passed"}
    monkeypatch.setattr(worker, "examine", None)

    _, again = verified(path, tmp_path, "--seed", "5")
    assert (again["seed"], outcomes(again)) == (5, {"good": "passed"})
    assert outcomes(verified(path, tmp_path, "--seed", "6")[1]) == {"good": "misfit"}


@pytest.mark.slow
def test_a_changed_kernel_is_run_in_both_wheels_and_its_answers_compared(tmp_path: Path) -> None:
    def scalar(op: str, body: str) -> dict[str, bytes]:
        return pair(op, body)

    older = {**scalar("same", "  %y = fmul float %x, 2.0"), **scalar("other", "  %y = fmul float %x, 2.0")}
    newer = {**scalar("same", "  %y = fadd float %x, %x"), **scalar("other", "  %y = fmul float %x, 2.5")}
    file = tmp_path / "out.json"
    sides = [str(wheel(tmp_path / "a", older)), str(wheel(tmp_path / "b", newer))]

    assert main("compare", [*sides, "--kernels", "--answers", "--json", str(file)]) == 0
    kernels = json.loads(file.read_text())["kernels"]

    assert kernels["changed"] == ["other_dense_scalar_float_float", "same_dense_scalar_float_float"]
    assert kernels["changed_answers"] == ["other_dense_scalar_float_float"]
    assert kernels["same_answers"] == ["same_dense_scalar_float_float"]


def _library(*names: str) -> Library:
    functions = tuple(Function(name=name, kind=2, offset=0, size=0) for name in names)
    return Library(name="metal_basic", os_version=(14, 0), functions=functions, data=b"")


def test_selection_by_name_by_operator_and_one_of_each_form() -> None:
    library = _library(
        "exp_dense_float_float", "exp_dense_half_half", "exp_strided_half_half", "exp_strided_float_float"
    )
    library = _library(
        *[each.name for each in library.functions], "add_alpha_dense_float_float_float", "exp2_dense_half_half"
    )

    assert selection.choose(library, selection.Choice(pattern="exp_s*")) == [2, 3]
    assert selection.choose(library, selection.Choice(operator="aten.exp")) == [0, 1, 2, 3]
    assert selection.choose(library, selection.Choice(operator="add")) == [4]
    assert selection.choose(library, selection.Choice(operator="exp", is_quick=True)) == [0, 1, 3]


def test_quick_takes_one_type_and_the_smallest_and_largest_threadgroup() -> None:
    kinds = [f"attention_{kind}_bq32_mask{kind}" for kind in ("bfloat16", "float16", "float32")]
    sizes = [f"sort_{kind}_tptg{size}_stable" for kind in ("int", "float") for size in (128, 32, 64, 1024)]
    library = _library(*kinds, *sizes)

    chosen = [library.functions[place].name for place in selection.choose(library, selection.Choice(is_quick=True))]

    assert len(chosen) == 3
    assert chosen[1:] == ["sort_float_tptg32_stable", "sort_float_tptg1024_stable"]


@pytest.mark.parametrize("text", ["fault.py", "missing.py:f", "fault.py:g", "fault.py:1"])
def test_a_fault_that_cannot_be_loaded_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fault.py").write_text("def f(text):\n    return text\n")

    assert verify_all.load_fault("fault.py:f")("x") == "x"
    with pytest.raises(UsageError):
        verify_all.load_fault(text)
