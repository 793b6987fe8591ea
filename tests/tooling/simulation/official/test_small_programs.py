"""What differs between macOS and Linux, asked by small programs for arm64 macOS that zig compiles."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from mps_build.common.process import Command, run_logged
from mps_build.common.reporter import SilentReporter
from mps_build.simulation.official.build import Below, provide_below
from mps_build.simulation.official.interpreter import Interpreter, debian_interpreter, emulated
from mps_build.simulation.official.tools import Tools, provide_tools, zig_environ

# Fetches an emulator and Debian's Python for arm64 (70 MB), and compiles libc++: minutes the first time.
pytestmark = [pytest.mark.slow, pytest.mark.zig]
_PROGRAMS = Path(__file__).parent / "programs"
_FLAGS = ("-target", "aarch64-macos.14.0", "-O1", "-fno-sanitize=all")
_LINK = ("-shared", "-Wl,-undefined,dynamic_lookup", "-Wl,-rpath,@loader_path")
_CHECKS = {
    "system": "characters dispatch dyld errno files jumps limits long_double packed_arguments processes shared_memory "
    "signals sockets threads variadics versions",
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


def _library(tools: Tools, folder: Path, name: str, *needs: Path) -> Path:
    """Return a library of one source; C++ is compiled and linked apart, so that zig links no libc++ into it."""
    source = next(_PROGRAMS.glob(f"{name}.c*"))
    compiled, made = folder / f"{name}.o", folder / f"lib{name}.dylib"
    standard = ("c++", "-std=c++20") if source.suffix == ".cpp" else ("cc",)
    link = (
        "cc",
        *_FLAGS,
        *_LINK,
        f"-Wl,-install_name,@rpath/{made.name}",
        "-o",
        str(made),
        str(compiled),
        *map(str, needs),
    )
    for words in ((*standard, *_FLAGS, "-c", str(source), "-o", str(compiled)), link):
        run_logged(Command(argv=(str(tools.zig), *words), environ=zig_environ()), log=folder / "log")
    return made


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


def _run(tools: Tools, below: Below, interpreter: Interpreter, image: Path) -> subprocess.CompletedProcess[str]:
    program = (str(interpreter.program), str(_PROGRAMS / "run.py"), str(below.loader), str(below.libcxx), str(image))
    argv = (*emulated(tools, interpreter.root), *program)
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=600)
