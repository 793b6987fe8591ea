"""The build as a ninja file: what is compiled how, from where, to what. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .root import LIBRARY, Root

NATIVE = Path(__file__).resolve().parents[1] / "native"
_GRAPH = "graph/graph.h"
_SHARED = "objects/graph.pch"
# Apple's Objective-C ABI in ELF; names mangled as the gcc of Debian's libtorch mangles them.
OBJECTIVE_C = (
    *("-fobjc-runtime=macosx-13.0", "-fblocks", "-fno-objc-arc", "-fPIC", "-fclang-abi-compat=17"),
    *("-w", "-g0", "-fvisibility-inlines-hidden"),
)
_DEFINITIONS = (
    # Official wheels are Release builds: an assert of the host code does nothing.
    "NDEBUG",
    *("USE_MPS", "AT_PER_OPERATOR_HEADERS", "FMT_HEADER_ONLY=1", "HAVE_MMAP=1", "_FILE_OFFSET_BITS=64"),
    # What Debian's libtorch was compiled with: DispatchStub's signatures depend on it.
    *("HAVE_AVX2_CPU_DEFINITION", "HAVE_AVX512_CPU_DEFINITION"),
)
# The kernels' runtime, as machine/build.py compiles it.
C_FLAGS = ("-O2", "-fPIC", "-std=gnu11", "-ffp-contract=off", "-fno-strict-aliasing", "-w")
_LIBRARIES = ("-ltorch_cpu", "-lc10", "-lcpuinfo", "-ldl", "-lpthread")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """All that a build is made of; `sources` are (file, object's name, optimisation), `native` is where ours lie."""

    root: Root
    standard: str
    include: tuple[Path, ...]
    after: tuple[Path, ...]
    sources: tuple[tuple[Path, str, str], ...]
    native: Path = NATIVE
    flags: tuple[str, ...] = ()


def ninja_text(inputs: Inputs) -> str:
    """Return the ninja file; the library is the default target."""
    root, graph = inputs.root, inputs.native / _GRAPH
    compiler = (str(root.clang), "--driver-mode=g++", f"--sysroot={root.path}")
    c_compiler = (str(root.clang), f"--sysroot={root.path}")
    flags = (
        *(*OBJECTIVE_C, f"-std=gnu++{inputs.standard}", *(f"-D{each}" for each in _DEFINITIONS), *inputs.flags),
        *("-include", str(inputs.native / "include/linux_prefix.h"), *(f"-I{path}" for path in inputs.include)),
        *(word for path in inputs.after for word in ("-idirafter", str(path))),
    )
    link = (*compiler, f"--ld-path={root.path}/usr/lib/llvm-19/bin/ld.lld", "-shared", "-Wl,-z,lazy,-z,defs")
    lines = [
        "ninja_required_version = 1.5",
        f"compiler = {_words(compiler)}",
        f"flags = {_words(flags)}",
        "rule compile",
        "  command = $compiler $flags -x $language $level -MMD -MF $out.d -c -o $out $in",
        "  depfile = $out.d",
        "  deps = gcc",
        "  description = $in",
        # The rules of MPSGraph share their headers: read once, a file costs a third.
        "rule precompile",
        "  command = $compiler $flags -x objective-c++-header $level -MMD -MF $out.d -o $out $in",
        "  depfile = $out.d",
        "  deps = gcc",
        "  description = $in",
        "rule compile_c",
        f"  command = {_words((*c_compiler, *C_FLAGS))} -MMD -MF $out.d -c -o $out $in",
        "  depfile = $out.d",
        "  deps = gcc",
        "  description = $in",
        "rule link",
        # Renamed when it is whole: a program that runs keeps the library that it has.
        f"  command = {_words(link)} -o $out.part @$out.list {' '.join(_LIBRARIES)} && mv $out.part $out",
        "  rspfile = $out.list",
        "  rspfile_content = $in",
        "  description = $out",
    ]
    objects = []
    for file, name, level in inputs.sources:
        objects.append(f"objects/{name}.o")
        rule = "compile_c" if file.suffix == ".c" else "compile"
        language = "objective-c++" if file.suffix == ".mm" else "c++"
        is_graph = file.parent == graph.parent
        lines += [f"build {_path(objects[-1])}: {rule} {_path(str(file))}{f' | {_SHARED}' if is_graph else ''}"]
        lines += [f"  language = {language}", f"  level = {f'-include-pch {_SHARED} ' if is_graph else ''}{level}"]
        if is_graph and not any(line.startswith(f"build {_SHARED}") for line in lines):
            lines += [f"build {_SHARED}: precompile {_path(str(graph))}", f"  level = {level}"]
    lines += [f"build {LIBRARY}: link {' '.join(map(_path, objects))}", f"default {LIBRARY}"]
    return "\n".join(lines) + "\n"


def own_sources(native: Path = NATIVE) -> tuple[Path, ...]:
    """Return the software Metal's own sources."""
    return tuple(sorted(path for suffix in ("mm", "cpp") for path in native.rglob(f"*.{suffix}")))


def _words(words: Sequence[str]) -> str:
    return shlex.join(words).replace("$", "$$")


def _path(path: str) -> str:
    """Return a path as ninja reads it.

    >>> _path("a b:c")
    'a$ b$:c'
    """
    return path.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")
