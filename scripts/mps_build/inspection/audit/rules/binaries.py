"""A, V, S and I: every compiled file is whole, for arm64 and this macOS, signed, and free of the builder's paths."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import find_leaks
from ..macho import CPU_ARM64, PLATFORM_MACOS, MachO, format_version
from ..model import WheelFacts
from ..releases import TORCH_CPU, Wanted
from .rule import Hit, rule

_LIBOMP_NAMES = ("libomp.dylib", "libiomp5.dylib", "libgomp.1.dylib")


def is_openmp(path: str) -> bool:
    """Tell whether a path's file is an OpenMP run time."""
    return path.endswith(_LIBOMP_NAMES) and path.rpartition("/")[2] in _LIBOMP_NAMES


@rule("A0")
def no_foreign_binaries(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """a compiled file of another system cannot be loaded on macOS"""
    for binary in facts.binaries.values():
        if binary.kind in ("ELF", "Windows PE"):
            yield Hit(binary.member, f"is {binary.kind}")


@rule("A1")
def binaries_are_thin_macho(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """a compiled file must be one whole 64-bit Mach-O: other slices are dead weight, or another program"""
    if wanted.is_torch and not facts.machos:
        yield Hit(None, "no Mach-O in the wheel")
    for binary in facts.binaries.values():
        if binary.malformed:
            yield Hit(binary.member, binary.malformed)
        elif binary.kind not in ("macho", "ELF", "Windows PE"):
            yield Hit(binary.member, f"is {binary.kind}, no thin 64-bit Mach-O")
    for member, (binary, macho) in facts.machos.items():
        if macho.end > binary.size:
            continue  # cut off: A2 tells it once
        for what, extent in macho.linkedit.items():
            if extent.end > binary.size:
                yield Hit(member, f"its {what.replace('_', ' ')} ends at byte {extent.end} of {binary.size}")
        for what, fault in sorted(binary.contents.faults.items()) if binary.contents else ():
            if what != "signature" and not what.startswith("metallib"):
                yield Hit(member, f"its {what.replace('_', ' ')}: {fault}")


@rule("A2")
def binaries_are_whole(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """a file that is shorter than its segments was cut off"""
    for member, (binary, macho) in facts.machos.items():
        if macho.end > binary.size:
            yield Hit(member, f"its segments end at byte {macho.end}, the file at {binary.size}")


@rule("A3")
def binaries_are_arm64(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """only arm64 code runs in an arm64 process"""
    for member, (_binary, macho) in facts.machos.items():
        if macho.cpu != CPU_ARM64:
            yield Hit(member, f"cputype {macho.cpu_name}")


@rule("V1")
def platform_is_macos(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """LC_BUILD_VERSION must say macOS: dyld refuses other platforms"""
    for member, (_binary, macho) in facts.machos.items():
        if macho.platform != PLATFORM_MACOS:
            how = "has no LC_BUILD_VERSION" if macho.platform is None else f"LC_BUILD_VERSION platform {macho.platform}"
            yield Hit(member, how)


@rule("V3")
def minimum_macos_is_within_the_tag(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """a file that wants a newer macOS than the tag claims fails on the Macs in between, after installing"""
    tag = facts.name.macos if facts.name else None
    for member, (_binary, macho) in facts.machos.items():
        if tag and macho.minos and macho.minos > tag:
            yield Hit(member, f"minos {format_version(macho.minos)}, the tag says {format_version(tag)}")


@rule("V4", level="warning")
def tag_is_not_too_high(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """a tag above every file's minimum keeps the wheel from Macs where it would run"""
    tag = facts.name.macos if facts.name else None
    wanted = [macho.minos for member, (_b, macho) in facts.machos.items() if macho.minos and not is_openmp(member)]
    if tag and wanted and max(wanted) < tag:
        yield Hit(None, f"largest minos {format_version(max(wanted))}, the tag says {format_version(tag)}")


@rule("V5", torch_only=True)
def sdk_is_new_enough(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """the SDK decides which of MPS's calls are compiled in"""
    macho = facts.macho(TORCH_CPU)
    if macho and wanted.least_sdk and (macho.sdk or (0,)) < wanted.least_sdk:
        found = format_version(macho.sdk) or "unknown"
        yield Hit(TORCH_CPU, f"SDK {found}; this release needs {format_version(wanted.least_sdk)}")


@rule("S1")
def binaries_are_signed(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """macOS kills unsigned arm64 code; the signature must end the file"""
    for member, (binary, macho) in facts.machos.items():
        extent = macho.linkedit.get("signature")
        if extent is None:
            yield Hit(member, "no LC_CODE_SIGNATURE")
        elif extent.end != binary.size:
            yield Hit(member, f"the signature ends at byte {extent.end}, the file at {binary.size}")


@rule("S2", needs_full=True)
def signatures_cover_the_file(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """the signature must cover the whole file before it"""
    for member, (binary, macho) in facts.machos.items():
        extent = macho.linkedit.get("signature")
        if extent is None or binary.contents is None or extent.end > binary.size:
            continue
        if fault := binary.contents.faults.get("signature"):
            yield Hit(member, fault)
        for directory in binary.contents.signature.directories if binary.contents.signature else ():
            if directory.code_limit != extent.offset:
                yield Hit(member, f"code limit {directory.code_limit}, the signature begins at {extent.offset}")


@rule("S3", needs_full=True)
def page_hashes_are_right(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """macOS kills the process when it touches a page whose hash is not the signed one"""
    for member, (binary, _macho) in facts.machos.items():
        contents = binary.contents
        if contents is None or contents.signature is None:
            continue
        if contents.bad_pages:
            yield Hit(member, f"{contents.bad_pages} of {contents.signature.strongest.page_count} pages")
        for slot in contents.signature.bad_blobs():
            yield Hit(member, f"the blob in slot {slot} of the signature")
        for directory in contents.unhashed:
            yield Hit(member, f"pages of {directory.page_size} bytes with {directory.hash_name} could not be checked")


@rule("I1", level="warning")
def no_paths_of_the_builder(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """a path of the building machine helps nobody elsewhere, and tells who built"""
    for member, paths in facts.leaks.items():
        yield Hit(member, _some(paths))
    for member, (binary, macho) in facts.machos.items():
        for rpath in _absolute_rpaths(macho):
            yield Hit(member, f"LC_RPATH {rpath}")
        if binary.contents:
            objects = [path for path in binary.contents.object_files if find_leaks(path.encode())]
            if objects:
                yield Hit(member, f"N_OSO {_some(objects)}")


def _absolute_rpaths(macho: MachO) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rpath for rpath in macho.rpaths if rpath.startswith("/")))


def _some(paths: tuple[str, ...] | list[str]) -> str:
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


RULES = (
    no_foreign_binaries,
    binaries_are_thin_macho,
    binaries_are_whole,
    binaries_are_arm64,
    platform_is_macos,
    minimum_macos_is_within_the_tag,
    tag_is_not_too_high,
    sdk_is_new_enough,
    binaries_are_signed,
    signatures_cover_the_file,
    page_hashes_are_right,
    no_paths_of_the_builder,
)
