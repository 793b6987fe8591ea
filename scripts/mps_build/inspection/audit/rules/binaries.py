"""A, V, S, I and P: every compiled file is whole, for arm64 and this macOS, signed, without paths of the builder; and
every library is found at run time, on any Mac, without what the builder happened to have.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator

from ...limits import MOST_LOOKUPS
from ..facts import find_leaks
from ..macho import CPU_ARM64, PLATFORM_MACOS, MachO, format_version
from ..model import Level, WheelFacts
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


_OF_FILES = (
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


_SYSTEM = ("/usr/lib/", "/System/Library/")


@rule("P1")
def rpaths_are_relative(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """an absolute search path names the builder's disk: what lies there on a user's Mac would be loaded"""
    for member, (_binary, macho) in facts.machos.items():
        for rpath in dict.fromkeys(macho.rpaths):
            if rpath != "@loader_path" and not rpath.startswith("@loader_path/"):
                yield Hit(member, f"LC_RPATH {rpath}")


@rule("P2")
def install_names_are_relative(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """whoever links against the library records its install name; a path of the builder leads nowhere"""
    for member, (_binary, macho) in facts.machos.items():
        if macho.install_name is not None and not macho.install_name.startswith("@"):
            # Harmless for the wheel's own loads, and what vendored libraries come with.
            is_mild = is_openmp(member) or not _is_strict(wanted)
            yield Hit(member, f"LC_ID_DYLIB {macho.install_name}", "warning" if is_mild else None)


@rule("P3")
def install_names_name_the_file(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """a library whose install name is another file's is loaded under the wrong name"""
    level: Level | None = None if _is_strict(wanted) else "warning"
    for member, (_binary, macho) in facts.machos.items():
        if macho.install_name is not None and posixpath.basename(macho.install_name) != posixpath.basename(member):
            yield Hit(member, f"LC_ID_DYLIB {macho.install_name}", level)


@rule("P4")
def libraries_come_from_the_wheel_or_the_system(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """a library outside the wheel and the system is not there on a user's Mac"""
    for member, (_binary, macho) in facts.machos.items():
        for dependency in macho.dependencies:
            plain = posixpath.normpath(dependency.path)
            if not plain.startswith(_SYSTEM) and not dependency.path.startswith(("@loader_path/", "@rpath/")):
                yield Hit(member, f"loads {dependency.path} ({dependency.kind})")


@rule("P5")
def libraries_are_there(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """a library that the wheel refers to must be in it, where the search paths lead"""
    lookups = 0
    for member, (_binary, macho) in facts.machos.items():
        lookups += len(macho.dependencies) * len(macho.rpaths)
        if lookups > MOST_LOOKUPS:
            yield Hit(member, f"{lookups} lookups so far; at most {MOST_LOOKUPS} are made")
            return
        for dependency in macho.dependencies:
            if dependency.path.startswith("@") and posixpath.basename(dependency.path) not in wanted.external_libraries:
                places = _places(member, macho, dependency.path)
                if not any(place in facts.machos for place in places):
                    yield Hit(member, f"loads {dependency.path}: not at {' or '.join(places) or 'any search path'}")


@rule("P6")
def rpaths_are_unique(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """dyld refuses an image that was linked against SDK 15 or later and has the same search path two times"""
    for member, (_binary, macho) in facts.machos.items():
        for rpath, count in Counter(macho.rpaths).items():
            if count > 1:
                yield Hit(member, f"LC_RPATH {rpath} {count} times")


@rule("P7")
def external_libraries_stay_outside(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """a second copy of another package's library in one process registers its operators two times, or elsewhere"""
    for member in facts.modes:
        if posixpath.basename(member) in wanted.external_libraries:
            yield Hit(member, "is bundled, but belongs to the installed torch")


def _is_strict(wanted: Wanted) -> bool:
    return wanted.is_torch or wanted.is_declared


def _places(member: str, macho: MachO, path: str) -> tuple[str, ...]:
    """Return the members that dyld would look for, in order."""
    folder = posixpath.dirname(member)
    if path.startswith("@loader_path/"):
        return (posixpath.normpath(f"{folder}/{path[len('@loader_path/') :]}"),)
    if not path.startswith("@rpath/"):
        return ()
    roots = (rpath[len("@loader_path") :] for rpath in dict.fromkeys(macho.rpaths) if rpath.startswith("@loader_path"))
    return tuple(dict.fromkeys(posixpath.normpath(f"{folder}/{root}/{path[len('@rpath/') :]}") for root in roots))


_OF_LIBRARIES = (
    rpaths_are_relative,
    install_names_are_relative,
    install_names_name_the_file,
    libraries_come_from_the_wheel_or_the_system,
    libraries_are_there,
    rpaths_are_unique,
    external_libraries_stay_outside,
)


RULES = (*_OF_FILES, *_OF_LIBRARIES)
