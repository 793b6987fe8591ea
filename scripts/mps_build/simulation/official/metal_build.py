"""The software Metal for a macOS wheel: one Mach-O dylib for arm64, and the machine of the kernels for Linux.

The sources are those of the simulation that is compiled from PyTorch's own (native/), without elf/ and most of torch/.
What reckons with ATen (graph/, torch/) is compiled with the headers of the wheel; everything else is the same for all
wheels. An object is kept by the digest of all that it is made of.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import CompileError
from mps_build.common.files import copy_whole, write_whole
from mps_build.common.process import Command, capture
from mps_build.common.receipts import digest_of
from mps_build.common.reporting import Reporter
from mps_build.wheel_build.objc import write_frameworks

from ...kernels.machine.build import SOURCES as RUNTIME  # its C is a part of the machine
from ..availability import read_availability, table_source
from ..builder.ninja_file import C_FLAGS, NATIVE
from ..builder.source import mirrored
from .inventory import Lacking, lacking, names_of

LIBRARY, MACHINE = "libsoftware_metal.dylib", "libmachine.so"
# Of the software Metal: the classes and methods first, since Mach-O runs initialisers in the order of its files.
_PARTS = ("runtime", "foundation", "metal", "macho", "graph")
_FIRST = ("runtime/classes.cpp",)
_OPERATORS = "torch/operators.cpp"  # an error and a crash name the operator
_TARGET = "aarch64-macos.14.0"
_MACHINE_TARGET = "aarch64-linux-gnu.2.31"
_FLAGS = (
    *("-target", _TARGET, "-O1", "-fPIC", "-fblocks", "-fno-objc-arc", "-fno-sanitize=all", "-fclang-abi-compat=17"),
    *("-DNDEBUG", "-DUSE_MPS", "-DAT_PER_OPERATOR_HEADERS", "-w", "-g0"),
)
# ATen's headers before 2.5 are no C++20 with a libc++ of today.
_CPLUSPLUS_20_SINCE = (2, 5)
_COMPILE_SECONDS = 1800.0
_INCLUDED = re.compile(r'^#include [<"]([^>"]+)[>"]', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Zig:
    """The compiler and linker, and its whole environment (its cache's folder)."""

    program: Path
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metal:
    """What was built: the dylib, and the machine that its process loads before."""

    library: Path
    machine: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    """A source, and the arguments that it is compiled with."""

    source: Path
    argv: tuple[str, ...]
    inputs: str


def build_metal(site: Path, *, version: str, home: Path, zig: Zig, jobs: int, reporter: Reporter) -> Metal:
    """Return the software Metal for a wheel, compiled only as far as it is not there yet.

    Args:
        site: the folder that holds the wheel's `torch`. version: its release, as 2.15.0.
        home: of this software's builds; objects and libraries of all releases lie there.

    Raises:
        CompileError: a file does not compile, or the whole does not link.
    """
    common, headers = home / "common", site / "torch" / "include"
    frameworks = write_frameworks(common / "frameworks").include
    # Compiled where the objects are: another checkout, or another installation, of the same sources compiles nothing.
    native, runtime = mirrored(NATIVE, common / "native"), mirrored(RUNTIME, common / "runtime")
    # Zig's headers are Apple's own but for these, which ask for more of the compiler than ours.
    copy_whole(native / "include/dispatch/dispatch.h", common / "include/dispatch/dispatch.h")
    write_whole(native / "macho/availability.cpp", table_source(read_availability()))
    compiler = capture(Command(argv=(str(zig.program), "version"), environ=zig.environ)).stdout.strip()
    common_inputs = f"{compiler} {_digest_of(list(frameworks.rglob('*.h')))}"
    base = (
        *(*_FLAGS, "-include", str(native / "include/linux_prefix.h")),
        *(f"-I{path}" for path in (common / "include", native, native / "metal", runtime)),
        *("-idirafter", str(frameworks)),
    )
    torch = (f"-std=c++{20 if _numbers(version) >= _CPLUSPLUS_20_SINCE else 17}", "-isystem", str(headers))
    theirs = digest_of([version, _digest_of([headers / "torch/csrc/api/include/torch/version.h"])])
    store = home / "objects"
    header = _Object(
        source=native / "graph/graph.h",
        # Zig keeps what it compiled, and clang refuses what is older than its headers: a wheel that was unpacked again.
        argv=("-x", "objective-c++-header", "-Xclang", "-fno-pch-timestamp", *torch, *base),
        inputs=f"{common_inputs} {theirs}",
    )
    shared = _place(header, store)
    objects = []
    for path in _sources(native):
        language = "objective-c++" if path.suffix == ".mm" else "c++"
        if path.parent.name in ("graph", "torch"):
            words = ("-x", "objective-c++", "-include-pch", str(shared), *torch, *base)
            objects.append(_Object(source=path, argv=words, inputs=header.inputs))
        else:
            objects.append(_Object(source=path, argv=("-x", language, "-std=c++20", *base), inputs=common_inputs))
    places = [_place(each, store) for each in objects]
    if not all(place.is_file() for each, place in zip(objects, places, strict=True) if each.inputs == header.inputs):
        reporter.started("Read the wheel's headers")  # once for all: a file then costs a fifth
        store.mkdir(parents=True, exist_ok=True)
        _compile(header, shared, zig)
        reporter.done()
    _compile_missing(objects, places, zig, jobs=jobs, reporter=reporter)
    shared.unlink(missing_ok=True)  # 100 MB
    key = digest_of([path.name for path in places])[:16]
    folder = home / "libraries" / f"{version}-{key}"
    library = folder / LIBRARY
    if not library.is_file():
        _link(places, library, zig)
    machine = _machine(native / "linux", runtime, home / "machines", zig, compiler)
    return Metal(library=library, machine=machine)


def lacking_in(metal: Metal, site: Path) -> Lacking:
    """Return what a wheel's code takes from Metal's frameworks and the software does not have; reads all libraries.

    Raises:
        Malformed: a library is no thin Mach-O.
    """
    wanted = names_of(path for path in sorted((site / "torch/lib").glob("libtorch*.dylib")))
    return lacking(wanted, metal.library.read_bytes())


def _sources(native: Path) -> Iterator[Path]:
    paths = [path for part in _PARTS for path in sorted((native / part).glob("*")) if path.suffix in (".cpp", ".mm")]
    first = [native / name for name in _FIRST]
    yield from first
    yield from (path for path in paths if path not in first)
    yield native / _OPERATORS


def _compile_missing(
    objects: Sequence[_Object], places: Sequence[Path], zig: Zig, *, jobs: int, reporter: Reporter
) -> None:
    missing = [(each, place) for each, place in zip(objects, places, strict=True) if not place.is_file()]
    if not missing:
        return
    missing[0][1].parent.mkdir(parents=True, exist_ok=True)
    reporter.started("Compile the software Metal", total=len(missing), unit="files")
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        work = [pool.submit(_compile, each, place, zig) for each, place in missing]
        try:
            for done, (future, (each, _)) in enumerate(zip(work, missing, strict=True), 1):
                future.result()
                reporter.advanced(done, total=len(missing), note=each.source.name)
        finally:
            for future in work:
                future.cancel()
    reporter.done()


def _place(each: _Object, folder: Path) -> Path:
    suffix = "pch" if each.source.suffix == ".h" else "o"
    return folder / f"{each.source.parent.name}.{each.source.name}-{_key(each)}.{suffix}"


def _compile(each: _Object, place: Path, zig: Zig) -> None:
    beside = place.with_name(f".{os.getpid()}.{place.name}")
    only = ("-c",) if place.suffix == ".o" else ()
    argv = (str(zig.program), "c++", *each.argv, *only, str(each.source), "-o", str(beside))
    _run(argv, zig, f"{each.source.name} does not compile for a macOS wheel")
    beside.replace(place)


def _link(objects: Sequence[Path], library: Path, zig: Zig) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    beside = library.with_name(f".{library.name}.{os.getpid()}")
    # As C: the process has one C++ library, which all images share.
    argv = (
        *(str(zig.program), "cc", "-target", _TARGET, "-shared", "-Wl,-undefined,dynamic_lookup"),
        *(f"-Wl,-install_name,@rpath/{LIBRARY}", "-o", str(beside), *map(str, objects)),
    )
    _run(argv, zig, "the software Metal for a macOS wheel does not link")
    beside.replace(library)


def _machine(linux: Path, runtime: Path, home: Path, zig: Zig, version: str) -> Path:
    """Return the machine of the kernels for Linux on arm64, with what the software Metal asks of Linux."""
    sources = sorted([*runtime.glob("*.c"), *linux.glob("*.c")])
    inputs = _digest_of([*sources, *runtime.glob("*.h"), *linux.glob("*.h")])
    key = digest_of([inputs, version, _MACHINE_TARGET, C_FLAGS])[:16]
    place = home / key / MACHINE
    if place.is_file():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    argv = (
        *(str(zig.program), "cc", "-target", _MACHINE_TARGET, *C_FLAGS, "-fno-sanitize=all", "-g0", "-shared"),
        *(f"-I{runtime}", "-o", str(beside), *map(str, sources), "-lm", "-ldl", "-lpthread"),
    )
    _run(argv, zig, "the machine of the kernels does not compile for arm64")
    beside.replace(place)
    return place


def _run(argv: Sequence[str], zig: Zig, what: str) -> None:
    answer = capture(Command(argv=tuple(argv), environ=zig.environ), timeout_seconds=_COMPILE_SECONDS)
    if answer.ok:
        return
    said = [line for line in answer.stderr.splitlines() if "error" in line] or answer.stderr.splitlines()[-3:]
    raise CompileError(f"{what}: {' | '.join(said[:3])}", hint=f"does the compiler run? {argv[0]} --version")


def _key(each: _Object) -> str:
    """Return the digest of all that an object is made of; what lies at a path counts, not the path."""
    words = [word for word in each.argv if "/" not in word]
    return digest_of([words, each.inputs, _digest_of(list(read_with(each.source)))])[:16]


def read_with(source: Path) -> set[Path]:
    """Return a source of native/ and our headers that it includes, directly or not."""
    native = source.parent.parent
    found, pending = set(), [source, native / "include/linux_prefix.h"]
    while pending:
        path = pending.pop()
        if path in found:
            continue
        found.add(path)
        for name in _INCLUDED.findall(path.read_text(encoding="utf-8")):
            places = (path.parent, native, native / "metal", native / "include", native.parent / "runtime")
            pending += [place.resolve() for each in places if (place := each / name).is_file()]
    return found


def _digest_of(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+", maxsplit=1)[0].split(".")[:2])
