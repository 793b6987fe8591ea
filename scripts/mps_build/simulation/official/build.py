"""What is compiled below an official wheel, once: the loader with its system, and the C++ library of macOS.

LLVM's libc++ comes with zig. Built for arm64 macOS it has Apple's layouts of strings and of exceptions' tables, so that
the wheel's C++ meets the one that it was compiled for.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import BuildEnvironmentError, disk_full
from mps_build.common.files import write_whole
from mps_build.common.packed import texts_of
from mps_build.common.process import Command, CommandFailed, capture, run_logged
from mps_build.common.receipts import StepResult
from mps_build.common.reporting import Reporter

from ..builder.ninja_file import NATIVE
from .table import SYSTEM, bindings_source, read_table, thunks_source
from .tools import Tools, ledger, official_folder, official_log, zig_environ

LOADER = Path(__file__).parent / "loader"
_WORDS = "runtime/crash_words.h"  # what a crash says is the same in both simulations
# The oldest glibc that the loader runs on, and the oldest macOS that libc++ is compiled for.
_LINUX, MACOS = "aarch64-linux-gnu.2.31", "aarch64-macos.11.0"
_LOADER_FLAGS = ("-std=gnu11", "-O2", "-g", "-Wall", "-fno-sanitize=all", "-fno-stack-protector", "-fPIC", "-shared")
_UNWINDER = {
    "libunwind.cpp": ("c++", "-std=c++17", "-fno-exceptions", "-fno-rtti", "-nostdinc++"),
    "UnwindLevel1.c": ("c", "-std=c99", "-fexceptions"),
    "UnwindLevel1-gcc-ext.c": ("c", "-std=c99", "-fexceptions"),
    "UnwindRegistersRestore.S": ("assembler-with-cpp",),
    "UnwindRegistersSave.S": ("assembler-with-cpp",),
}
# Uses strings, streams and exceptions, so that zig links both archives.
_PROBE = """\
#include <iostream>
#include <stdexcept>
int main() { try { throw std::runtime_error("x"); } catch (std::exception &e) { std::cout << e.what(); } }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Below:
    """The files that a process loads before the wheel.

    Attributes:
        loader: maps Mach-O images, and gives them their system.
        libcxx: libc++, libc++abi and libunwind, a Mach-O library.
        empty: an ELF library without anything, for a name that torch loads on Linux.
    """

    loader: Path
    libcxx: Path
    empty: Path


def loader_sources() -> tuple[Path, ...]:
    """Return the C and assembly that the loader is made of, headers left out."""
    found = (*LOADER.iterdir(), *SYSTEM.iterdir())
    return tuple(sorted(path for path in found if path.suffix in (".c", ".S")))


def provide_below(tools: Tools, reporter: Reporter) -> Below:
    """Return the files, compiled only if they are not there, or are not what they were.

    Raises:
        BuildEnvironmentError: zig failed.
        DiskFull: no room was left for it.
    """
    home = official_folder() / "below"
    version = capture(Command(argv=(str(tools.zig), "version"))).stdout.strip()
    below = Below(loader=home / "libofficial.so", libcxx=home / "libc++.1.dylib", empty=home / "libempty.so")
    table = read_table()
    generated = {"bindings.c": bindings_source(table), "thunks.S": thunks_source(table)}
    sources = [
        path for folder in (LOADER, SYSTEM) for path in sorted(folder.iterdir()) if path.suffix in (".c", ".h", ".S")
    ]
    words = {Path(_WORDS).name: texts_of(NATIVE)[_WORDS]}
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sources}
    digests |= {name: hashlib.sha256(text.encode()).hexdigest() for name, text in (words | generated).items()}

    def compile_loader() -> StepResult:
        reporter.started("Compile the loader")
        for name, text in (words | generated).items():
            write_whole(home / name, text)
        files = [*map(str, loader_sources()), *(str(home / name) for name in generated)]
        flags = ("-target", _LINUX, *_LOADER_FLAGS, f"-I{SYSTEM}", f"-I{home}")
        _link(tools, below.loader, ("cc", *flags, *files, "-lm", "-ldl", "-lpthread"))
        write_whole(home / "empty.c", "")
        _link(tools, below.empty, ("cc", "-target", _LINUX, "-shared", "-nostdlib", str(home / "empty.c")))
        reporter.done()
        return StepResult(files=(below.loader, below.empty))

    ledger().run("loader", version=1, inputs={"sources": digests, "zig": version}, action=compile_loader)

    def compile_libcxx() -> StepResult:
        reporter.started("Compile LLVM's libc++ for arm64 macOS: two minutes of CPU, once")
        _build_libcxx(tools, home / "libcxx", below.libcxx)
        shutil.rmtree(home / "libcxx")
        reporter.done()
        return StepResult(files=(below.libcxx,))

    ledger().run("libcxx", version=1, inputs={"zig": version, "target": MACOS}, action=compile_libcxx)
    return below


def _build_libcxx(tools: Tools, folder: Path, target: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "probe.cpp", _PROBE)
    # zig compiles its archives when they are first linked, and says where they are.
    words = ("c++", "-target", MACOS, "-o", str(folder / "probe"), str(folder / "probe.cpp"), "-v")
    archives = archives_of(_zig(tools, words))
    include = tools.zig.parent / "lib/libunwind"
    objects = []
    for name, (language, *flags) in _UNWINDER.items():
        made = folder / f"{name}.o"
        common = (
            "-O2",
            "-fPIC",
            "-w",
            "-fno-sanitize=all",
            "-DNDEBUG",
            "-D_LIBUNWIND_IS_NATIVE_ONLY",
            f"-I{include}/include",
        )
        source = str(include / "src" / name)
        _zig(tools, ("c++", "-target", MACOS, "-x", language, *flags, *common, "-c", source, "-o", str(made)))
        objects.append(str(made))
    whole = [word for name in ("libc++.a", "libc++abi.a") for word in ("-Wl,-force_load", f"-Wl,{archives[name]}")]
    link = (
        "cc",
        "-target",
        MACOS,
        "-shared",
        "-Wl,-undefined,dynamic_lookup",
        "-Wl,-install_name,/usr/lib/libc++.1.dylib",
    )
    _link(tools, target, (*link, *whole, *objects))


def _link(tools: Tools, target: Path, words: Sequence[str]) -> None:
    """Make a library as a new file: programs that run have the old one mapped."""
    beside = target.with_name(f".{target.name}")
    _zig(tools, (*words, "-o", str(beside)))
    beside.replace(target)


def archives_of(lines: Sequence[str]) -> dict[str, Path]:
    """Return the archives that a link's command names, by their file names.

    Raises:
        BuildEnvironmentError: libc++ is not among them.
    """
    found = {Path(word).name: Path(word) for line in lines for word in re.findall(r"\S+\.a\b", line)}
    if missing := {"libc++.a", "libc++abi.a"} - found.keys():
        raise BuildEnvironmentError(f"zig did not say where its {' and '.join(sorted(missing))} is")
    return found


def _zig(tools: Tools, words: Sequence[str]) -> list[str]:
    lines: list[str] = []
    command = Command(argv=(str(tools.zig), *words), environ=zig_environ())
    try:
        run_logged(command, log=official_log(), on_line=lines.append)
    except CommandFailed as failure:
        said = "\n".join(failure.tail[-6:])
        if full := disk_full(said, during="while zig compiles"):
            raise full from failure
        raise BuildEnvironmentError(
            f"zig failed:\n{said}", hint=f"the whole output is in {official_log()}"
        ) from failure
    return lines
