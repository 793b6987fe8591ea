"""From a wheel, or an installed package, to its Metal libraries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...common.errors import UsageError
from ...inspection.audit.archive import STORED, Member, read_archive
from ...inspection.audit.macho import Section, head_size, name_kind, parse_macho
from ...inspection.audit.stream import Damaged, FolderSource, Source, ZipSource
from ...inspection.limits import Malformed
from .library import Library, parse_library


def cut(source: Source, member: Member, sections: Sequence[Section]) -> list[bytes]:
    """Return some sections of a large member in one pass."""
    found = [bytearray() for _ in sections]
    end = max((each.offset + each.size for each in sections), default=0)
    position = 0
    for piece in source.pieces(member) if sections else ():
        for section, data in zip(sections, found, strict=True):
            begin = max(section.offset, position)
            stop = min(section.offset + section.size, position + len(piece))
            if begin < stop:
                data += piece[begin - position : stop - position]  # noqa: PLW2901
        position += len(piece)
        if position >= end:
            break
    return [bytes(each) for each in found]


PREFIX = "metal_"
HEAD_BYTES = 1 << 20


class NoKernels(UsageError):
    """Nothing is damaged, and there is no compiled Metal kernel; the message says what there is."""


_SOURCE = re.compile(rb"\bkernel\s+void\s+\w+\s*\(")


def read_libraries(wheel: Path) -> tuple[Library, ...]:
    """Return the Metal libraries of a wheel: sections `metal_…` of its Mach-O files, and its .metallib files.

    Raises:
        UsageError: it is not a wheel, or is damaged.
        NoKernels: it holds no Metal library; with what can be said of it.
    """
    try:
        archive = read_archive(wheel)
    except OSError as error:
        raise UsageError(
            f"{wheel}: {error.strerror}", hint="give a .whl file, or a requirement such as torch==2.15.0"
        ) from error
    if not archive.is_readable:
        raise UsageError(
            f"{wheel} is not a readable wheel: {archive.faults[0].evidence}", hint="`audit_wheel` says more"
        )
    with wheel.open("rb") as file:
        source = ZipSource(file.fileno())
        libraries = tuple(_libraries(source, archive.members, wheel.name))
        return libraries or _none(source, archive.members, wheel.name)


def read_installed(root: Path, package: str = "torch") -> tuple[Library, ...]:
    """Return the Metal libraries of an installed package's files.

    Raises:
        NoKernels: there are none.
    """
    members = files_of(root, package)
    libraries = tuple(_libraries(FolderSource(root), members, str(root / package)))
    return libraries or _none(FolderSource(root), members, str(root / package))


def files_of(root: Path, package: str) -> list[Member]:
    """Return the native files of an installed package."""
    members = []
    for path in sorted((root / package).rglob("*")):
        if path.is_file() and path.suffix in (".dylib", ".so", ".metallib"):
            size = path.stat().st_size
            members.append(Member(str(path.relative_to(root)), size, size, 0, STORED, 0o100644, 0))
    return members


def _libraries(source: Source, members: Sequence[Member], where: str) -> Iterator[Library]:
    for member in members:
        try:
            if member.name.endswith(".metallib"):
                data = b"".join(source.pieces(member))
                yield parse_library(Path(member.name).name.removesuffix(".metallib"), data)
            elif member.name.endswith((".dylib", ".so")):
                yield from _sections(source, member)
        except (Damaged, Malformed) as error:
            raise UsageError(
                f"{where}: {member.name} {error}", hint="the file is damaged: fetch it again; `audit_wheel` says more"
            ) from error


def _sections(source: Source, member: Member) -> Iterator[Library]:
    head = source.head(member, HEAD_BYTES)
    if name_kind(head) != "macho" or head_size(head) > len(head):
        return
    wanted = [each for each in parse_macho(head).sections if each.name.startswith(PREFIX) and each.size]
    for name, data in zip([each.name for each in wanted], cut(source, member, wanted), strict=True):
        if len(data) < next(each.size for each in wanted if each.name == name):
            raise Malformed(f"is cut off inside its section {name}")
        yield parse_library(name, data)


def _none(source: Source, members: Sequence[Member], where: str) -> tuple[Library, ...]:
    native = [member for member in members if member.name.endswith((".dylib", ".so"))]
    if not native:
        what = "it holds no Mach-O files: it is not a wheel of compiled code for macOS"
    elif "x86_64" in where:
        what = "wheels for Intel carry no precompiled Metal kernels"
    elif count := _sources(source, native):
        what = f"it carries {count} Metal kernels as source text, compiled on the Mac at first use: no bitcode to run"
    else:
        what = "up to torch 2.5 Metal kernels are source text or built by MPSGraph at run time: no bitcode to run"
    raise NoKernels(
        f"{where} has no Metal library, so no kernel was verified: {what}", hint="from torch 2.6 on wheels carry them"
    )


def _sources(source: Source, members: Sequence[Member]) -> int:
    """Return how many kernels the libraries hold as source text (a name cut by a piece's edge is not counted)."""
    return sum(len(_SOURCE.findall(piece)) for member in members for piece in source.pieces(member))
