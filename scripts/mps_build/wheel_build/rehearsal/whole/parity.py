"""The wheel made here and the official one, part by part: what the machine code, the headers and the files hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ....common.errors import UsageError
from ....common.wheels.members import UnsoundWheel, open_wheel
from ....inspection.audit.linked_names import LinkedNames, read_linked_names
from ....inspection.audit.macho import format_version
from ....inspection.audit.registrations import Library, read_library
from ....inspection.audit.releases import TORCH_CPU
from ....inspection.malformed import Malformed
from .differences import UNEXPLAINED, Compared, compared
from .operators import operators_of
from .reasons import REASONS

_CLASS = "_OBJC_CLASS_$_"
_MOST_BYTES = 1 << 30  # of one library; libtorch_cpu has 200 MB
_TAG = re.compile(r"B(?P<size>\d{1,2})")
_VERSIONED = re.compile(r"\.cpython-3\d+t?-darwin|(?<=^torch-)[^/]+(?=\.dist-info/)")
_SYSTEM = ("/usr/lib/libSystem.B.dylib", "/usr/lib/libc++.1.dylib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One wheel as the comparison sees it."""

    files: frozenset[str]
    binaries: Mapping[str, LinkedNames]
    library: Library
    cpu: bytes
    dispatch_headers: frozenset[str]
    operators: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeParity:
    """All parts, and whether the shaders inside are the tree's."""

    official: str
    parts: tuple[Compared, ...]
    shaders: Mapping[str, bool]

    def part(self, name: str) -> Compared:
        """Return a part by its name ("registrations", "selectors").

        Raises:
            StopIteration: there is no such part.
        """
        return next(each for each in self.parts if each.part == name)

    @property
    def unexplained(self) -> int:
        """How many differences have no reason."""
        return sum(
            len(names) for each in self.parts for (_, text), names in each.differing.items() if text == UNEXPLAINED
        )

    def document(self) -> dict[str, Any]:
        """Return the comparison as JSON: the official wheel, what is unexplained, each part."""
        return {
            "official": self.official,
            "unexplained": self.unexplained,
            "parts": [each.document() for each in self.parts],
            "shader_sources": {"in_the_tree": len(self.shaders), "inside": sum(self.shaders.values())},
        }


def whole_parity(ours: Path, official: Path, shaders: Mapping[str, str]) -> WholeParity:
    """Return how two wheels of one release differ.

    Args:
        shaders: Metal source files of the tree, name -> text.

    Raises:
        UsageError: a wheel cannot be read.
    """
    left, right = (
        replace(side, operators=operators_of(wheel, side.library))
        for wheel, side in ((ours, read_side(ours)), (official, read_side(official)))
    )
    return _parity(left, right, official, shaders)


def library_parity(ours: Path, official: Path, shaders: Mapping[str, str]) -> WholeParity:
    """Return how one libtorch_cpu differs from the official wheel's; files and other libraries are left aside.

    Raises:
        UsageError: one of them cannot be read.
    """
    try:
        cpu = ours.read_bytes()
        left = Side(
            files=frozenset(),
            binaries={TORCH_CPU: read_linked_names(cpu)},
            library=read_library(cpu),
            cpu=cpu,
            dispatch_headers=frozenset(),
        )
    except (OSError, Malformed) as error:
        raise UsageError(f"{ours}: cannot be compared: {error}", hint="link it again: remove it") from error
    right = read_side(official)
    alone = replace(
        right, files=frozenset(), binaries={TORCH_CPU: right.binaries[TORCH_CPU]}, dispatch_headers=frozenset()
    )
    return _parity(left, alone, official, shaders)


def _parity(left: Side, right: Side, official: Path, shaders: Mapping[str, str]) -> WholeParity:
    parts = (part for part in compare_sides(left, right) if part.ours or part.official)
    return WholeParity(
        official=official.name,
        parts=tuple(parts),
        shaders={name: text.strip().encode() in left.cpu for name, text in shaders.items()},
    )


def read_side(wheel: Path) -> Side:
    """Return what is compared of one wheel.

    Raises:
        UsageError: it cannot be read, or has no libtorch_cpu.
    """
    binaries: dict[str, LinkedNames] = {}
    try:
        with open_wheel(wheel) as members:
            names = [name for name in members.names if not name.endswith("/")]
            cpu = members.read(TORCH_CPU, most_bytes=_MOST_BYTES)
            for name in names:
                if name.endswith((".dylib", ".so")) or name.startswith("torch/bin/"):
                    data = cpu if name == TORCH_CPU else members.read(name, most_bytes=_MOST_BYTES)
                    if data[:4] == b"\xcf\xfa\xed\xfe":
                        binaries[_plain(name)] = read_linked_names(data)
    except (OSError, UnsoundWheel, Malformed) as error:
        raise UsageError(f"{wheel}: cannot be compared: {error}", hint=f"nox -s audit_wheel -- {wheel}") from error
    return Side(
        files=frozenset(map(_plain, names)),
        binaries=binaries,
        library=read_library(cpu),
        cpu=cpu,
        dispatch_headers=frozenset(name.rpartition("/")[2] for name in names if name.endswith("_mps_dispatch.h")),
    )


def compare_sides(ours: Side, official: Side) -> Iterator[Compared]:
    """Yield every part, the most telling first."""

    def part(name: str, left: Iterable[str], right: Iterable[str]) -> Compared:
        return compared(name, left, right, REASONS)

    yield part("MPS registrations", _registered(ours), _registered(official))
    yield part("MPS kernels that fall back to the CPU", _falling_back(ours), _falling_back(official))
    yield part("MPS dispatch headers", ours.dispatch_headers, official.dispatch_headers)
    yield part("operators and what they do on MPS (op_coverage)", ours.operators, official.operators)
    yield part("selectors", _selectors(ours), _selectors(official))
    yield part("Objective-C classes", _classes(ours), _classes(official))
    yield part("names of frameworks, with library and weak mark", _frameworks(ours), _frameworks(official))
    yield part("names of libSystem and libc++", _system(ours), _system(official))
    yield part("names of torch's own libraries", _internal(ours), _internal(official))
    yield part("libraries loaded", _loads(ours), _loads(official))
    yield part("rpaths", _rpaths(ours), _rpaths(official))
    yield part("ids", _ids(ours), _ids(official))
    yield part("minimum macOS and SDK", _versions(ours), _versions(official))
    yield part("load commands", _commands(ours), _commands(official))
    yield part("exported names, inline ones aside", _exports(ours, weak=False), _exports(official, weak=False))
    yield part("exported inline names", _exports(ours, weak=True), _exports(official, weak=True))
    yield part("files", ours.files, official.files)


def untagged(name: str) -> str:
    """Return a mangled name without ABI tags: libc++ marks its inline functions with its own version.

    >>> untagged("__ZNSt3__1plB9nie220108Ev"), untagged("__ZNSt3__1plB7v160006Ev"), untagged("__ZN3fooBar")
    ('__ZNSt3__1plEv', '__ZNSt3__1plEv', '__ZN3fooBar')
    """
    kept, at = [], 0
    while match := _TAG.search(name, at):
        end = match.end() + int(match["size"])
        tag = name[match.end() : end]
        if len(tag) == int(match["size"]) and re.fullmatch(r"[a-z]{1,4}\d{5,6}", tag):
            kept.append(name[at : match.start()])
            at = end
        else:
            kept.append(name[at : match.end()])
            at = match.end()
    return "".join([*kept, name[at:]])


def _plain(name: str) -> str:
    return _VERSIONED.sub("", name)


def _registered(side: Side) -> set[str]:
    functions = side.library.registered.get("MPS", ())
    return {each.operator for function in functions for each in function}


def _falling_back(side: Side) -> set[str]:
    functions = side.library.registered.get("MPS", ())
    return {each.operator for function in functions for each in function if each.falls_back}


def _cpu(side: Side) -> LinkedNames:
    return side.binaries[TORCH_CPU]


def _selectors(side: Side) -> set[str]:
    return {name for binary in side.binaries.values() for name in binary.selectors}


def _classes(side: Side) -> set[str]:
    return {each.name.removeprefix(_CLASS) for each in _cpu(side).imports if each.name.startswith(_CLASS)}


def _frameworks(side: Side) -> set[str]:
    return {
        f"{each.name} {_library(each.library)}{' weak' if each.is_weak else ''}"
        for each in _cpu(side).imports
        if ".framework/" in each.library or "libobjc" in each.library
    }


def _system(side: Side) -> set[str]:
    return {
        untagged(each.name) for binary in side.binaries.values() for each in binary.imports if each.library in _SYSTEM
    }


def _internal(side: Side) -> set[str]:
    return {
        f"{member}: {untagged(each.name)} {_library(each.library)}"
        for member, binary in side.binaries.items()
        for each in binary.imports
        if each.library.startswith("@") or not each.library.startswith("/")
    }


def _loads(side: Side) -> set[str]:
    return {
        f"{member}: {each.path} {each.kind}"
        for member, binary in side.binaries.items()
        for each in binary.macho.dependencies
    }


def _rpaths(side: Side) -> set[str]:
    return {f"{member}: {path}" for member, binary in side.binaries.items() for path in binary.macho.rpaths}


def _ids(side: Side) -> set[str]:
    return {
        f"{member}: {binary.macho.install_name}"
        for member, binary in side.binaries.items()
        if binary.macho.install_name
    }


def _versions(side: Side) -> set[str]:
    return {
        f"{member}: macOS {format_version(binary.macho.minos)}, SDK {format_version(binary.macho.sdk)}"
        for member, binary in side.binaries.items()
    }


def _commands(side: Side) -> set[str]:
    return {f"{member}: {command}" for member, binary in side.binaries.items() for command in binary.commands}


def _exports(side: Side, *, weak: bool) -> set[str]:
    return {
        f"{member.rpartition('/')[2]}: {untagged(name)}"
        for member, binary in side.binaries.items()
        for name, is_weak in binary.exports.items()
        if is_weak is weak
    }


def _library(path: str) -> str:
    return path.rpartition("/")[2]
