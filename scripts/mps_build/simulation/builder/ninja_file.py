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
_HOST, _HOST_SHARED = "aten.src.ATen.native.mps.", "objects/host.pch"
# Apple's Objective-C ABI in ELF; names mangled as the gcc of Debian's libtorch mangles them.
OBJECTIVE_C = (
    *("-fobjc-runtime=macosx-13.0", "-fblocks", "-fno-objc-arc", "-fPIC", "-fclang-abi-compat=17"),
    *("-w", "-g0", "-fvisibility-inlines-hidden"),
)
_DEFINITIONS = (
    # Official wheels are Release builds: an assert of the host code does nothing.
    "NDEBUG",
    *("USE_MPS", "AT_PER_OPERATOR_HEADERS", "FMT_HEADER_ONLY=1", "HAVE_MMAP=1", "_FILE_OFFSET_BITS=64"),
)
# What Debian's libtorch was compiled with: DispatchStub's signatures depend on it.
_OF_DEBIAN = ("HAVE_AVX2_CPU_DEFINITION", "HAVE_AVX512_CPU_DEFINITION")
# In place of what a libtorch without MPS lacks; one that has it needs none of it.
_WITHOUT_MPS = ("without_mps.cpp",)
# What only the process of a macOS wheel has (official/metal_build.py).
_OF_A_WHEEL = "macho"
# The kernels' runtime, as machine/build.py compiles it.
C_FLAGS = ("-O2", "-fPIC", "-std=gnu11", "-ffp-contract=off", "-fno-strict-aliasing", "-w")
_LIBRARIES = ("-ltorch_cpu", "-lc10", "-ldl", "-lpthread")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """All that a build is made of.

    Attributes:
        sources: (file, object's name, optimisation). native: where ours lie.
        shared: a header that is read once for all operators of the host code; None: each file reads its own.
        libraries: the folder of a libtorch that was built with MPS; None: the root has Debian's, without.
    """

    root: Root
    standard: str
    include: tuple[Path, ...]
    after: tuple[Path, ...]
    sources: tuple[tuple[Path, str, str], ...]
    native: Path = NATIVE
    flags: tuple[str, ...] = ()
    shared: Path | None = None
    libraries: Path | None = None


def ninja_text(inputs: Inputs) -> str:
    """Return the ninja file; the library is the default target."""
    root = inputs.root
    compiler = (str(root.clang), "--driver-mode=g++", f"--sysroot={root.path}")
    c_compiler = (str(root.clang), f"--sysroot={root.path}")
    defined = (*_DEFINITIONS, *(() if inputs.libraries else _OF_DEBIAN))
    libraries = (f"-L{inputs.libraries}", *_LIBRARIES) if inputs.libraries else (*_LIBRARIES, "-lcpuinfo")
    flags = (
        *(*OBJECTIVE_C, f"-std=gnu++{inputs.standard}", *(f"-D{each}" for each in defined), *inputs.flags),
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
        f"  command = {_words(link)} -o $out.part @$out.list {_words(libraries)} && mv $out.part $out",
        "  rspfile = $out.list",
        "  rspfile_content = $in",
        "  description = $out",
    ]
    objects = []
    headers: set[str] = set()
    for file, name, level in inputs.sources:
        objects.append(f"objects/{name}.o")
        rule = "compile_c" if file.suffix == ".c" else "compile"
        language = "objective-c++" if file.suffix == ".mm" else "c++"
        header, precompiled = _shared_header(inputs, file, name)
        lines += [f"build {_path(objects[-1])}: {rule} {_path(str(file))}{f' | {precompiled}' if header else ''}"]
        lines += [f"  language = {language}", f"  level = {f'-include-pch {precompiled} ' if header else ''}{level}"]
        if header and precompiled not in headers:
            headers.add(precompiled)
            lines += [f"build {precompiled}: precompile {_path(str(header))}", f"  level = {level}"]
    lines += [f"build {LIBRARY}: link {' '.join(map(_path, objects))}", f"default {LIBRARY}"]
    return "\n".join(lines) + "\n"


def _shared_header(inputs: Inputs, file: Path, name: str) -> tuple[Path | None, str]:
    """Return the header that is read once for a file and others, if there is one, and what it is compiled to."""
    graph = inputs.native / _GRAPH
    if file.parent == graph.parent:
        return graph, _SHARED
    return inputs.shared if name.startswith(_HOST) and file.suffix == ".mm" else None, _HOST_SHARED


def own_sources(native: Path = NATIVE, *, with_mps: bool = False) -> tuple[Path, ...]:
    """Return the software Metal's own sources.

    Args:
        with_mps: they stand beside a libtorch that was built with MPS.
    """
    found = sorted(path for suffix in ("mm", "cpp") for path in native.rglob(f"*.{suffix}"))
    ours = (path for path in found if path.relative_to(native).parts[0] != _OF_A_WHEEL)
    return tuple(path for path in ours if not (with_mps and path.name in _WITHOUT_MPS))


def _words(words: Sequence[str]) -> str:
    return shlex.join(words).replace("$", "$$")


def _path(path: str) -> str:
    """Return a path as ninja reads it.

    >>> _path("a b:c")
    'a$ b$:c'
    """
    return path.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")
