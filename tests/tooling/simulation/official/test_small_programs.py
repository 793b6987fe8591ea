"""What differs between macOS and Linux, called by small programs for arm64 macOS that zig compiles."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from mps_build.common.files import copy_whole
from mps_build.common.process import Command, run_logged
from mps_build.common.reporting import SilentReporter
from mps_build.simulation.availability import read_availability, table_source
from mps_build.simulation.builder.ninja_file import NATIVE
from mps_build.simulation.official.build import Below, provide_below
from mps_build.simulation.official.interpreter import Interpreter, debian_interpreter, emulated
from mps_build.simulation.official.kernel_server import ASK_SOURCE, Kernels
from mps_build.simulation.official.tools import Tools, provide_tools, zig_environ
from mps_build.wheel_build.objc import write_frameworks

# Fetches an emulator and Debian's Python for arm64 (70 MB), and compiles libc++: minutes the first time.
pytestmark = [pytest.mark.slow, pytest.mark.zig]
_PROGRAMS = Path(__file__).parent / "programs"
_FLAGS = ("-target", "aarch64-macos.14.0", "-O1", "-fno-sanitize=all")
_LINK = ("-shared", "-Wl,-undefined,dynamic_lookup", "-Wl,-rpath,@loader_path")
_CHECKS = {
    "system": "characters dispatch dyld errno files jumps limits long_double packed_arguments processes shared_memory "
    "signals sockets threads variadics versions",
    "names": "names",
    "cplusplus": "exceptions static_objects streams stubs thread_variables threads_of_cplusplus types",
}


@pytest.fixture(scope="module")
def tools() -> Tools:
    return provide_tools(SilentReporter())


@pytest.fixture(scope="module")
def below(tools: Tools) -> Below:
    return provide_below(tools, SilentReporter())


@pytest.fixture(scope="module")
def interpreter() -> Interpreter:
    return debian_interpreter("3.11", SilentReporter())


def _compiled(tools: Tools, folder: Path, name: str, *words: str) -> Path:
    """Return the object of one source: of this folder's programs, or one that the test has written."""
    source = next(path for place in (_PROGRAMS, folder) for path in place.glob(f"{name}.[cm]*"))
    made = folder / f"{name}.o"
    standard = ("cc",) if source.suffix == ".c" else ("c++", "-std=c++20", *words)
    _zig(tools, folder, *standard, *_FLAGS, "-c", str(source), "-o", str(made))
    return made


def _library(tools: Tools, folder: Path, name: str, *needs: Path, words: Sequence[str] = ()) -> Path:
    """Return a library of one source; C++ is compiled and linked apart, so that zig links no libc++ into it."""
    compiled, made = _compiled(tools, folder, name, *words), folder / f"lib{name}.dylib"
    link = (*_LINK, f"-Wl,-install_name,@rpath/{made.name}", "-o", str(made), str(compiled), *map(str, needs))
    _zig(tools, folder, "cc", *_FLAGS, *link)
    return made


def _zig(tools: Tools, folder: Path, *words: str) -> None:
    run_logged(Command(argv=(str(tools.zig), *words), environ=zig_environ()), log=folder / "log")


@pytest.mark.parametrize("name", list(_CHECKS))
def test_the_system_answers_as_macos_does(
    name: str, tools: Tools, below: Below, interpreter: Interpreter, tmp_path: Path
) -> None:
    needs = (_library(tools, tmp_path, "other"),) if name == "cplusplus" else ()
    image = _library(tools, tmp_path, name, *needs)

    answer = _run(tools, below, interpreter, image)

    expected = [f"_check_{each} 0" for each in _CHECKS[name].split()]
    assert answer.stdout.splitlines() == expected, answer.stderr
    assert answer.returncode == 0


def test_an_object_that_nothing_gives_is_refused_when_the_library_is_opened(
    tools: Tools, below: Below, interpreter: Interpreter, tmp_path: Path
) -> None:
    answer = _run(tools, below, interpreter, _library(tools, tmp_path, "refused"))
    assert "librefused.dylib takes _no_such_object from any library: nothing here gives it" in answer.stderr
    assert answer.returncode == 1


def test_a_class_that_the_software_metal_lacks_is_named_when_it_is_sent_something(
    tools: Tools, below: Below, interpreter: Interpreter, tmp_path: Path
) -> None:
    """Of the software Metal the Objective-C alone, as one file: no header of torch is needed."""
    frameworks = write_frameworks(tmp_path / "frameworks").include
    copy_whole(NATIVE / "include/dispatch/dispatch.h", tmp_path / "include/dispatch/dispatch.h")
    (tmp_path / "availability.cpp").write_text(table_source(read_availability()), encoding="utf-8")
    macho = NATIVE / "macho"
    parts = {
        "runtime.cpp": [
            NATIVE / "runtime/classes.cpp",
            *sorted(NATIVE.glob("runtime/*.cpp")),
            tmp_path / "availability.cpp",
        ],
        "foundation.mm": [*sorted(NATIVE.glob("foundation/*.mm")), NATIVE / "runtime/dispatch.mm", macho / "images.mm"],
    }
    parts["runtime.cpp"] += [macho / "loader.cpp"]
    for name, paths in parts.items():
        text = "".join(f'#include "{path}"\n' for path in dict.fromkeys(paths))
        (tmp_path / name).write_text(text, encoding="utf-8")
    include = ("-include", str(NATIVE / "include/linux_prefix.h"), f"-I{tmp_path / 'include'}", f"-I{NATIVE}")
    words = ("-fblocks", "-fno-objc-arc", "-w", *include, "-idirafter", str(frameworks))
    metal = _library(tools, tmp_path, "runtime", _compiled(tools, tmp_path, "foundation", *words), words=words)

    answer = _run(tools, below, interpreter, _library(tools, tmp_path, "absent", words=words), metal)

    assert answer.stdout.splitlines() == ["_check_absent_class 0"], answer.stderr


def test_what_an_image_frees_goes_to_the_provider_that_may_keep_it(
    tools: Tools, below: Below, interpreter: Interpreter, tmp_path: Path
) -> None:
    keeps, frees = (_library(tools, tmp_path, name) for name in ("keeps", "frees"))

    answer = _run(tools, below, interpreter, frees, keeps)

    assert answer.stdout.splitlines() == ["_check_frees 0"], answer.stderr


def test_functions_of_one_and_of_two_numbers_take_each_type(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2.6.0's digamma takes pow of a float and an int, and sinpi, which C libraries lack; 2.3.1 fmax of halves."""
    for name, value in zig_environ().items():
        monkeypatch.setenv(name, value)
    pairs = ("x, 2", "h, x", "x, i", "x, x", "h, h", "b, b", "b, x")
    calls = [
        f"{name}({pair})" for name in ("pow", "fmod", "atan2", "copysign", "fmin", "fmax", "fdim") for pair in pairs
    ]
    calls += [
        f"{name}({each})" for name in ["sinpi", "cospi", "tanpi", "asinh", "exp10", "fract"] for each in ("x", "h", "b")
    ]
    text = (
        "#include <metal_stdlib>\nusing namespace metal;\nstatic_assert(char(-1) < 0);\n"
        "kernel void mixed(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n"
        f"  float x = out[i]; half h = 2; bfloat b = bfloat(x); out[i] = {' + '.join(calls)};\n}}\n"
    )
    # What a build without Metal's compiler leaves as text in 2.6.0: nextafter, cross, bicubic gradients, i0.
    parameters = (
        "constant ulong4 &sizes [[buffer(1)]], device atomic<float> *sum [[buffer(2)]], "
        "uint i [[thread_position_in_grid]]"
    )
    text += (
        f"template <class T> void kernel stepped(device T *out, {parameters}) {{\n"
        "  ulong2 two = sizes.xy + ulong2(sizes.zw);\n"
        "  out[i] = nextafter(out[i], out[two.y]) + metal::nextafter(1.0f, 2.0f) + cross(half3(1), half3(2)).x;\n"
        "  atomic_fetch_add_explicit(sum + i, cross(float3(1), float3(2)).y, memory_order_relaxed);\n}\n"
    )
    for name in ("float", "half", "bfloat"):
        given = f"device {name} *, constant ulong4 &, device atomic<float> *, uint"
        text += f'template [[host_name("stepped_{name}")]] void kernel stepped<{name}>({given});\n'
    kernels = Kernels(reader=tmp_path / "none", home=tmp_path, zig=tools.zig)

    reason, library = kernels.answer(ASK_SOURCE, 0, text.encode())

    assert reason == b"" and Path(library.decode()).is_file()
    assert b"stepped_bfloat" in Path(library.decode()).read_bytes()


_END = """
import ctypes, faulthandler, sys
loader, libcxx, image, name = (each.encode() for each in sys.argv[1:])
faulthandler.enable()
library = ctypes.PyDLL(loader, ctypes.RTLD_GLOBAL)
library.official_symbol.restype = ctypes.c_void_p
assert library.official_provide(libcxx) == 0 and library.official_open(image) == 0
ctypes.CFUNCTYPE(ctypes.c_int)(library.official_symbol(b"_" + name))()
"""


@pytest.mark.parametrize(
    ("name", "number", "operator", "selector", "frames"),
    [
        (
            "end_by_a_store",
            -11,
            "add_Tensor",
            "-[SimEncoder fill:]",
            "-[SimEncoder fill:] < at::_ops::add_Tensor::call < end_by_a_store",
        ),
        ("end_by_abort", -6, "aten::relu", "(none)", "end_by_abort"),
        ("end_by_an_error", -6, "aten::relu", "(none)", "end_by_an_error"),
    ],
)
def test_a_crash_names_the_operator_the_selector_and_the_frames(
    name: str,
    number: int,
    operator: str,
    selector: str,
    frames: str,
    tools: Tools,
    below: Below,
    interpreter: Interpreter,
    tmp_path: Path,
) -> None:
    image = _library(tools, tmp_path, "crash")
    words = (str(interpreter.program), "-c", _END, str(below.loader), str(below.libcxx), str(image), name)

    answer = subprocess.run((*emulated(tools, interpreter.root), *words), check=False, capture_output=True, text=True)

    assert answer.returncode == number
    said = re.search(r"software Metal: signal (\d+) .*\n.*\n", answer.stderr)
    assert said, answer.stderr
    assert f", operator {operator}, selector {selector}, the GPU ran kernel doubled\nnative frames: " in said[0]
    assert f"[libcrash.dylib] {frames}\n" in said[0]
    assert "Current thread" in answer.stderr  # Python's faulthandler, which was there before
    if name == "end_by_an_error":
        assert (
            "terminating due to uncaught exception of type std::runtime_error: software Metal: there is no"
            in answer.stderr
        )


def _run(
    tools: Tools, below: Below, interpreter: Interpreter, image: Path, *providers: Path
) -> subprocess.CompletedProcess[str]:
    images = map(str, (below.loader, below.libcxx, *providers, image))
    program = (str(interpreter.program), str(_PROGRAMS / "run.py"), *images)
    argv = (*emulated(tools, interpreter.root), *program)
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=600)
