"""Two wheels side by side: what should be equal of the same version and commit, and what may differ.

Strong parts are those that were equal between official wheels of one commit (files, Python sources, operators,
schemas, kernels, flags, dependencies); weak ones differ with the compiler or with every build (other exports,
sizes, bytes) and are only reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.errors import UsageError
from ...common.reporting import Reporter
from ...common.stopping import budget_of
from ..limits import Malformed
from .contents import Metallib
from .facts import collect_facts
from .macho import format_version
from .model import WheelFacts
from .releases import TORCH_CPU
from .rules.torch import section_names
from .verdict import cpu_seconds

MOST_NAMES = 200
_OPERATOR = re.compile(rb"__ZN2at3mps(\d+)")
_SCHEMA_NAME = re.compile(rb"[\w.:]+\(")
_OWN = re.compile(rb"__Z[A-Z]*N?K?(?:2at|3c10|5torch)\d")
_INFO = re.compile(r"^[^/]+\.dist-info/")
_PYTHON_TAG = re.compile(r"\.cpython-3\d+t?-darwin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing compared: how many entries each side has, which only one has, and which both have otherwise."""

    name: str
    is_strong: bool
    left: int
    right: int
    only_left: tuple[str, ...]
    only_right: tuple[str, ...]
    changed: tuple[str, ...] = ()
    note: str = ""

    @property
    def is_equal(self) -> bool:
        """True if both wheels have the same names with the same values."""
        return not (self.only_left or self.only_right or self.changed)

    def document(self) -> dict[str, Any]:
        """Return the part as JSON: names as text, and how many differ."""
        return {
            "name": self.name,
            "strength": "strong" if self.is_strong else "weak",
            "equal": self.is_equal,
            "left": self.left,
            "right": self.right,
            "only_left": len(self.only_left),
            "only_right": len(self.only_right),
            "changed": len(self.changed),
            "only_left_names": list(self.only_left[:MOST_NAMES]),
            "only_right_names": list(self.only_right[:MOST_NAMES]),
            "changed_names": list(self.changed[:MOST_NAMES]),
            "note": self.note,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """All parts, strong ones first; `is_same_source` tells whether equality is to be expected."""

    left: str
    right: str
    is_same_source: bool
    parts: tuple[Part, ...]

    @property
    def differing(self) -> tuple[Part, ...]:
        """The strong parts that are not equal."""
        return tuple(part for part in self.parts if part.is_strong and not part.is_equal)

    def document(self) -> dict[str, Any]:
        """Return the comparison as `compare --json` writes it."""
        return {
            "compared": "wheels",
            "left": self.left,
            "right": self.right,
            "same_source": self.is_same_source,
            "strong_parts_equal": not self.differing,
            "parts": [part.document() for part in self.parts],
        }


def compare_wheels(left: Path, right: Path, reporter: Reporter) -> Parity:
    """Return what is equal and what differs between two wheels.

    Raises:
        UsageError: one of them cannot be read.
    """
    with budget_of(f"{left.name} and {right.name}", cpu_seconds=cpu_seconds(left, right)):
        ours, theirs = (
            collect_facts(path, quick=False, reporter=reporter, keep_strings=True) for path in (left, right)
        )
    for path, facts in ((left, ours), (right, theirs)):
        if not facts.archive.is_readable:
            raise UsageError(f"{path}: cannot be read as a wheel", hint=f"`nox -s audit_wheel -- {path}` says why")
    return compare_facts(ours, theirs)


def compare_facts(left: WheelFacts, right: WheelFacts) -> Parity:
    """Return what is equal and what differs between two sets of full facts."""
    parts = [_part(name, True, read(left), read(right)) for name, read in STRONG.items()]
    missing = section_names(left) ^ section_names(right)
    for section in sorted(section_names(left) | section_names(right)):
        sides = (_kernels(left, section), _kernels(right, section))
        if section in missing:
            side = left.file if section in section_names(right) else right.file
            note = f"feature loss: {side} has no {section}"
            parts.append(_part(f"kernels of {section}", False, *sides, note=note))
        else:
            parts.append(_part(f"kernels of {section}", True, *sides))
            parts.append(
                _part(f"macOS of {section}", True, _compiled_for(left, section), _compiled_for(right, section))
            )
    parts += [_part(name, False, read(left), read(right)) for name, read in WEAK.items()]
    is_same = _version(left) == _version(right) and left.git_version == right.git_version
    return Parity(left=left.file, right=right.file, is_same_source=is_same, parts=tuple(parts))


def _part(name: str, is_strong: bool, left: Iterable[str], right: Iterable[str], note: str = "") -> Part:
    """Compare two sets of entries; of an entry `name\\tvalue` only the name counts as being there."""
    ours, theirs = set(left), set(right)
    only_left, only_right = ours - theirs, theirs - ours
    changed = {entry.partition("\t")[0] for entry in only_left} & {entry.partition("\t")[0] for entry in only_right}
    return Part(
        name=name,
        is_strong=is_strong,
        left=len(ours),
        right=len(theirs),
        only_left=tuple(sorted({entry.partition("\t")[0] for entry in only_left} - changed)),
        only_right=tuple(sorted({entry.partition("\t")[0] for entry in only_right} - changed)),
        changed=tuple(sorted(changed)),
        note=note,
    )


def _version(facts: WheelFacts) -> tuple[str, ...]:
    return facts.metadata.get("version", ())


def _same_for_any_python(member: str) -> str:
    return _INFO.sub(".dist-info/", _PYTHON_TAG.sub("", member))


def _commit(facts: WheelFacts) -> Iterable[str]:
    return (facts.git_version or "unknown",)


def _members(facts: WheelFacts) -> Iterable[str]:
    return map(_same_for_any_python, facts.modes)


def _sources(facts: WheelFacts) -> Iterable[str]:
    return (f"{row.path}\t{row.digest}" for row in facts.record if row.path.endswith((".py", ".pyi")))


def _metadata(facts: WheelFacts) -> Iterable[str]:
    compared = (
        "name",
        "version",
        "requires-python",
        "requires-dist",
        "provides-extra",
        "license-expression",
        "license",
    )
    return (f"{key}: {value}" for key in compared for value in facts.metadata.get(key, ()))


def _dispatch_headers(facts: WheelFacts) -> Iterable[str]:
    return (name.rpartition("/")[2] for name in facts.modes if name.endswith("_mps_dispatch.h"))


def _exports(facts: WheelFacts, prefix: bytes = b"") -> Iterable[bytes]:
    contents = facts.contents(TORCH_CPU)
    try:
        return list(contents.exports.names(prefix)) if contents else []
    except Malformed:
        return []


def _operators(facts: WheelFacts) -> Iterable[str]:
    for name in _exports(facts, b"__ZN2at3mps"):
        if match := _OPERATOR.match(name):
            yield name[match.end() : match.end() + int(match[1])].decode("ascii", "replace")


def _schemas(facts: WheelFacts) -> Iterable[str]:
    contents = facts.contents(TORCH_CPU)
    strings = contents.strings.split(b"\0") if contents else []
    return (text.decode("utf-8", "replace") for text in strings if _is_schema(text))


def _is_schema(text: bytes) -> bool:
    """Tell whether a string is `aten::add(Tensor self) -> Tensor`."""
    before, arrow, result = text.rpartition(b") -> ")
    return bool(arrow and result and b"\n" not in text and _SCHEMA_NAME.match(before))


def _flags(facts: WheelFacts) -> Iterable[str]:
    contents = facts.contents(TORCH_CPU)
    return contents.cxx_flags if contents else ()


def _dependencies(facts: WheelFacts) -> Iterable[str]:
    for member, (_binary, macho) in facts.machos.items():
        for dependency in macho.dependencies:
            yield f"{_same_for_any_python(member)} {dependency.path} {dependency.kind}"


def _minima(facts: WheelFacts) -> Iterable[str]:
    for member, (_binary, macho) in facts.machos.items():
        yield f"{_same_for_any_python(member)}\tminos {format_version(macho.minos)}"


def _kernels(facts: WheelFacts, section: str) -> Iterable[str]:
    for metallib in _metallibs(facts, section):
        if metallib.functions:
            try:
                yield from metallib.functions.names()
            except Malformed as error:
                yield f"unreadable: {error}"


def _compiled_for(facts: WheelFacts, section: str) -> Iterable[str]:
    for metallib in _metallibs(facts, section):
        yield (format_version(metallib.header.os_version) if metallib.header else None) or "not stated"


def _metallibs(facts: WheelFacts, section: str) -> Iterator[Metallib]:
    for binary in facts.binaries.values():
        if binary.contents and section in binary.contents.metallibs:
            yield binary.contents.metallibs[section]


def _own_exports(facts: WheelFacts) -> Iterable[str]:
    return (name.decode("ascii", "replace") for name in _exports(facts) if _OWN.match(name))


def _sdks(facts: WheelFacts) -> Iterable[str]:
    for member, (_binary, macho) in facts.machos.items():
        yield f"{_same_for_any_python(member)}\tSDK {format_version(macho.sdk)}"


def _bytes(facts: WheelFacts) -> Iterable[str]:
    """Every compiled file with its hash: between two Pythons of one build, libtorch_cpu, c10 and shm are equal."""
    digests = {row.path: row.digest for row in facts.record}
    return (f"{_same_for_any_python(member)}\t{digests.get(member, 'unlisted')}" for member in facts.binaries)


STRONG: Mapping[str, Callable[[WheelFacts], Iterable[str]]] = {
    "commit": _commit,
    "files": _members,
    "Python sources": _sources,
    "METADATA": _metadata,
    "MPS dispatch headers": _dispatch_headers,
    "at::mps operators": _operators,
    "operator schemas": _schemas,
    "compiler flags": _flags,
    "libraries loaded": _dependencies,
    "minimum macOS": _minima,
}
WEAK: Mapping[str, Callable[[WheelFacts], Iterable[str]]] = {
    "at::, c10::, torch:: exports": _own_exports,
    "SDK": _sdks,
    "bytes of compiled files": _bytes,
}
