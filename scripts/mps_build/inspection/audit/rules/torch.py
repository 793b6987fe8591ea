"""F, O, B, G and M: a torch wheel has its libraries, OpenMP, Accelerate, the commit it names, and really the Metal back
end, with kernels that open on the macOS it claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..contents import Metallib
from ..macho import format_version
from ..metallib import PLATFORM_MACOS
from ..model import Level, WheelFacts
from ..releases import NEWEST_KNOWN, TORCH_CPU, Wanted
from .binaries import is_openmp
from .rule import Hit, rule

_FRAMEWORKS = ("Metal", "MetalPerformanceShaders", "MetalPerformanceShadersGraph")
EXPORTED_SENTINELS = (b"__ZTVN2at3mps12MPSGuardImplE", b"__ZN2at3mps2mmERKNS_6TensorES3_")
IMPORTED_SENTINEL = b"_OBJC_CLASS_$_MPSGraph"
LEAST_DISPATCH_HEADERS, LEAST_FUNCTIONS = 190, 100


@rule("M1", torch_only=True)
def frameworks_are_linked_weakly(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """torch reaches the GPU through these frameworks; weak, so that it loads where they are missing"""
    macho = facts.macho(TORCH_CPU)
    if macho is None:
        return
    for name in _FRAMEWORKS:
        prefix = f"/System/Library/Frameworks/{name}.framework/"
        kinds = [dependency.kind for dependency in macho.dependencies if dependency.path.startswith(prefix)]
        if "weak" not in kinds:
            yield Hit(TORCH_CPU, f"loads {name} {kinds[0]}, not weak" if kinds else f"does not load {name}")


@rule("M3", needs_full=True)
def metallibs_have_kernels(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """a metallib with few kernels was compiled from part of the sources"""
    least = LEAST_FUNCTIONS if wanted.is_torch else 1
    for member, metallib in _metallibs(facts):
        if metallib.functions is not None and len(metallib.functions) < least:
            yield Hit(
                member, f"{metallib.section} has {len(metallib.functions)} kernels; at least {least} are required"
            )


@rule("M4", torch_only=True)
def dispatch_headers_are_there(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """each operator with an MPS kernel has its dispatch header"""
    count = count_dispatch_headers(facts)
    if count < LEAST_DISPATCH_HEADERS:
        yield Hit("torch/include/ATen/ops", f"{count} *_mps_dispatch.h; at least {LEAST_DISPATCH_HEADERS} are required")


@rule("M5", needs_full=True)
def metallibs_are_readable(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """a section that is not a metallib cannot be opened, and every kernel in it is missing"""
    for member, metallib in _metallibs(facts):
        if metallib.fault:
            yield Hit(member, f"{metallib.section}: {metallib.fault}")


@rule("M6", needs_full=True)
def metallibs_are_for_macos(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """kernels compiled for another platform cannot be opened"""
    for member, metallib in _metallibs(facts):
        if metallib.header and metallib.header.platform != PLATFORM_MACOS:
            yield Hit(
                member, f"{metallib.section} has platform {metallib.header.platform:#x}, macOS is {PLATFORM_MACOS:#x}"
            )


@rule("M7", needs_full=True)
def metallibs_fill_their_sections(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """a metallib shorter than it says is cut off"""
    for member, metallib in _metallibs(facts):
        if metallib.header and metallib.header.file_size != metallib.section_size:
            yield Hit(
                member,
                f"{metallib.section} says {metallib.header.file_size} bytes in a section of {metallib.section_size}",
            )


@rule("M8", torch_only=True, needs_full=True)
def mps_symbols_are_there(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """what only a build with MPS exports and imports"""
    contents = facts.contents(TORCH_CPU)
    if contents is None:
        return
    for name in EXPORTED_SENTINELS:
        if name not in contents.exports:
            yield Hit(TORCH_CPU, f"does not export {name.decode()}")
    if IMPORTED_SENTINEL not in contents.undefined:
        yield Hit(TORCH_CPU, f"does not import {IMPORTED_SENTINEL.decode()}")


@rule("M9", torch_only=True, needs_full=True)
def mps_is_among_the_flags(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """torch.__config__ must tell that MPS was compiled in"""
    contents = facts.contents(TORCH_CPU)
    if contents and "-DUSE_MPS" not in contents.cxx_flags:
        yield Hit(TORCH_CPU, "no -DUSE_MPS among the embedded CXX_FLAGS")


@rule("M10")
def basic_kernels_fit_the_tag(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """the kernels that every Mac uses must be there, and open on the macOS that the tag claims"""
    yield from _missing(facts, wanted, "metal_basic", is_lifted=wanted.allow_jit_shaders)
    tag = facts.name.macos if facts.name else None
    for member, metallib in _metallibs(facts):
        os = metallib.header.os_version if metallib.header else None
        if metallib.section == "metal_basic" and os and tag and os > tag:
            yield Hit(
                member, f"metal_basic is compiled for macOS {format_version(os)}, the tag says {format_version(tag)}"
            )


@rule("M11")
def bfloat_kernels_fit_their_macos(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """torch 2.6 to 2.8 opens the bfloat kernels on macOS 14 and later, so that is what they are compiled for"""
    yield from _missing(facts, wanted, "metal_bfloat", is_lifted=wanted.allow_jit_shaders)
    yield from _other_target(facts, wanted, "metal_bfloat")


@rule("M12")
def metal4_kernels_fit_their_macos(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """torch opens the Metal 4 kernels from one macOS on: newer ones fail there, older ones lack what it asks for"""
    is_lifted = wanted.without_metal4 or wanted.allow_jit_shaders
    yield from _missing(facts, wanted, "metal_40", is_lifted=is_lifted)
    yield from _other_target(facts, wanted, "metal_40")


def count_dispatch_headers(facts: WheelFacts) -> int:
    """Return how many operators have an MPS kernel of their own."""
    return sum(name.endswith("_mps_dispatch.h") for name in facts.modes)


def section_names(facts: WheelFacts) -> set[str]:
    """Return the embedded metallibs by name; headers are enough."""
    return {
        section.name
        for _binary, macho in facts.machos.values()
        for section in macho.sections
        if section.segment == "__TEXT" and section.name.startswith("metal_")
    }


def _missing(facts: WheelFacts, wanted: Wanted, section: str, *, is_lifted: bool) -> Iterator[Hit]:
    if section in wanted.metal and section not in section_names(facts):
        level: Level | None = "warning" if is_lifted else None
        what = (
            "feature loss, as requested"
            if is_lifted
            else f"wanted: compiled for macOS {format_version(wanted.metal[section])}"
        )
        yield Hit(TORCH_CPU if wanted.is_torch else None, f"no __TEXT,{section} ({what})", level)


def _other_target(facts: WheelFacts, wanted: Wanted, section: str) -> Iterator[Hit]:
    target = wanted.metal.get(section)
    # What a release newer than the table asks for is not known.
    level: Level | None = "warning" if wanted.is_torch and wanted.release[:2] > NEWEST_KNOWN else None
    for member, metallib in _metallibs(facts):
        os = metallib.header.os_version if metallib.header else None
        if metallib.section == section and os and target and os != (*target, 0)[:2]:
            yield Hit(
                member,
                f"{section} is compiled for macOS {format_version(os)}, torch opens it from {format_version(target)}",
                level,
            )


def _metallibs(facts: WheelFacts) -> Iterator[tuple[str, Metallib]]:
    for member, (binary, _macho) in facts.machos.items():
        for metallib in binary.contents.metallibs.values() if binary.contents else ():
            yield member, metallib


_OF_METAL = (
    frameworks_are_linked_weakly,
    metallibs_have_kernels,
    dispatch_headers_are_there,
    metallibs_are_readable,
    metallibs_are_for_macos,
    metallibs_fill_their_sections,
    mps_symbols_are_there,
    mps_is_among_the_flags,
    basic_kernels_fit_the_tag,
    bfloat_kernels_fit_their_macos,
    metal4_kernels_fit_their_macos,
)


_LIBRARIES = tuple(
    f"torch/lib/lib{name}.dylib" for name in ("torch_cpu", "c10", "torch", "torch_python", "shm", "torch_global_deps")
)
_MANAGER = "torch/bin/torch_shm_manager"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ACCELERATE = "/System/Library/Frameworks/Accelerate.framework/"


@rule("F1")
def required_files_are_there(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """the wheel must hold what it is for"""
    required = (*_LIBRARIES, _MANAGER) if wanted.is_torch else ()
    for member in (*required, *wanted.members):
        if member not in facts.modes:
            yield Hit(member, "is not in the wheel")
    if wanted.is_torch:
        if not any(re.fullmatch(r"torch/_C\..*\.so", name) for name in facts.modes):
            yield Hit("torch/_C.*.so", "is not in the wheel")
        if _MANAGER in facts.modes and not facts.modes[_MANAGER] & 0o111:
            yield Hit(_MANAGER, f"mode {facts.modes[_MANAGER] & 0o7777:#o} is not executable")


@rule("O1", torch_only=True)
def openmp_is_used(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """without OpenMP the CPU part of torch runs on one core"""
    macho = facts.macho(TORCH_CPU)
    if not wanted.openmp or macho is None:
        return
    if not any(is_openmp(dependency.path) for dependency in macho.dependencies):
        yield Hit(TORCH_CPU, "loads no libomp.dylib")
    if not any(is_openmp(member) for member in facts.modes):
        yield Hit(None, "no libomp.dylib in the wheel")
    contents = facts.contents(TORCH_CPU)
    if contents and not any(name.startswith((b"___kmpc", b"_omp_")) for name in contents.undefined):
        yield Hit(TORCH_CPU, "imports nothing of OpenMP (___kmpc_*, _omp_*)")


@rule("B1", torch_only=True)
def accelerate_is_linked(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """matrix products on the CPU go through Accelerate"""
    macho = facts.macho(TORCH_CPU)
    if macho is None:
        return
    kinds = [dependency.kind for dependency in macho.dependencies if dependency.path.startswith(_ACCELERATE)]
    if "strong" not in kinds:
        yield Hit(TORCH_CPU, f"loads Accelerate {kinds[0]}" if kinds else "does not load Accelerate")


@rule("G2")
def commit_is_the_one_requested(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """the wheel must be built from the commit that it names and that was requested"""
    git_version = facts.git_version
    where = f"{facts.distribution}/version.py"
    if wanted.is_torch and not _COMMIT.fullmatch(git_version or ""):
        yield Hit(where, f"git_version is {git_version!r}, not a commit")
    elif wanted.commit and git_version is not None and git_version != wanted.commit:
        yield Hit(where, f"git_version {git_version}; requested {wanted.commit}")
    elif wanted.commit and git_version is None:
        yield Hit(where, f"gives no git_version; requested {wanted.commit}")
    contents = facts.contents(TORCH_CPU)
    if wanted.is_torch and contents and wanted.release >= (2, 6) and contents.commit != git_version:
        yield Hit(TORCH_CPU, f"COMMIT_SHA {contents.commit or 'is not there'}; {where} says {git_version}")


_OF_TORCH = (required_files_are_there, openmp_is_used, accelerate_is_linked, commit_is_the_one_requested)


RULES = (*_OF_TORCH, *_OF_METAL)
