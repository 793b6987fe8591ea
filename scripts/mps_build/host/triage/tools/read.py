"""Whose output a text is, and what it says: one entry point to all readers, and those of the tools around a wheel."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from mps_build.common.cmake_summary import parse_configure
from mps_build.common.logs.text import clean_lines

from .caches import parse_ccache, parse_sccache
from .ninja import parse_ninja, parse_ninja_log

_CREATED = re.compile(r"^\s*Created wheel for \S+: filename=(\S+\.whl) size=(\d{1,18})")
_BUILT = re.compile(r"^\s*Successfully built \S")
_LIBRARY = re.compile(r"^(?P<path>(?:/|@rpath/|@loader_path/|@executable_path/)[^:]+?):?$")
_ARCHITECTURE = re.compile(r"^\s*In architecture: (\S+)")
_CODESIGN = re.compile(r"^(?P<path>.+?): (?P<words>[a-z].*)$")
# codesign's own words, by what they come to; the first that fits.
_REFUSALS = (
    ("invalid signature", "invalid signature"),
    ("not signed at all", "not signed"),
    ("a sealed resource is missing or invalid", "sealed resource"),
    ("does not satisfy its designated requirement", "requirement"),
    ("unsealed contents", "unsealed contents"),
    ("invalid or unsupported format for signature", "invalid format"),
    ("code has no resources but signature indicates", "sealed resource"),
    ("main executable failed strict validation", "strict validation"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeWheel:
    """The wheel that pip says it made; success only once pip says that too."""

    wheel: str
    size: int
    success: bool

    def facts(self) -> dict[str, Any]:
        """Return the wheel's name and size, and `success` if the tool said so."""
        facts: dict[str, Any] = {"wheel": self.wheel, "size": self.size}
        return facts | ({"success": True} if self.success else {})


def parse_pip_wheel(text: str) -> MadeWheel | None:
    """Return the last wheel that `pip wheel` or `pip install` made; None if none is named."""
    made = None
    success = False
    for line in clean_lines(text):
        if match := _CREATED.match(line.text):
            made, success = match, False
        elif _BUILT.match(line.text):
            success = True
    return MadeWheel(wheel=made[1], size=int(made[2]), success=success) if made else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelDependencies:
    """Libraries that a wheel's own libraries name."""

    foreign: tuple[str, ...]
    unresolved: tuple[str, ...]
    system: int

    @property
    def finding(self) -> str | None:
        """The row of the catalogue that a foreign library is known by."""
        return "B25" if any(path.endswith("/libomp.dylib") for path in self.foreign) else None

    def facts(self) -> dict[str, Any]:
        """Return the libraries that the wheel loads from outside, by kind."""
        facts: dict[str, Any] = {"tool": "delocate-listdeps", "foreign": list(self.foreign), "system": self.system}
        facts |= {"unresolved": list(self.unresolved)} if self.unresolved else {}
        return facts | ({"finding": self.finding} if self.finding else {})


def parse_listdeps(text: str) -> WheelDependencies | None:
    """Return what `delocate-listdeps --all [--depending]` lists; None if it lists nothing."""
    foreign, unresolved, system = [], [], 0
    for line in clean_lines(text):
        if not (match := _LIBRARY.match(line.text)):
            continue
        path = match["path"]
        if path.startswith(("/usr/lib/", "/System/")):
            system += 1
        elif path.startswith("@rpath/"):
            unresolved.append(path)
        elif not path.startswith("@"):
            foreign.append(path)
    if not (foreign or unresolved or system):
        return None
    return WheelDependencies(foreign=tuple(foreign), unresolved=tuple(unresolved), system=system)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureCheck:
    """What `codesign --verify` answers; `bad` are the files it refuses."""

    ok: bool
    reason: str | None
    architecture: str | None
    bad: tuple[str, ...]
    files: int

    def facts(self) -> dict[str, Any]:
        """Return whether the signature holds, and if not, why and of which files."""
        facts: dict[str, Any] = {"tool": "codesign --verify", "ok": self.ok}
        facts |= {"reason": self.reason} if self.reason else {}
        facts |= {"architecture": self.architecture} if self.architecture else {}
        return facts | ({"bad": list(self.bad)} if self.bad and self.files > 1 else {})


def parse_codesign_verify(text: str, *, exit: int | None = None) -> SignatureCheck | None:
    """Return the answer; without --verbose a good one is silence, so `exit` is needed to understand it."""
    bad: list[str] = []
    reason = architecture = None
    good: set[str] = set()
    for line in clean_lines(text):
        if match := _ARCHITECTURE.match(line.text):
            architecture = match[1]
        elif match := _CODESIGN.match(line.text):
            if match["words"].startswith(("valid on disk", "satisfies its Designated Requirement")):
                good.add(match["path"])
            words = match["words"].lower()
            if refusal := next((short for known, short in _REFUSALS if known in words), None):
                bad.append(match["path"])
                reason = reason or refusal
    if not bad and not good and not (exit == 0 and not text.strip()):
        return None
    files = len({*good, *bad})
    return SignatureCheck(ok=not bad, reason=reason, architecture=architecture, bad=tuple(bad), files=files)


# What a reader may meet in a text that only looks like its own. It is queried beside the main question: never its end.
_NOT_ITS_OWN = (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError)


def read_tool_output(text: str, argv: Sequence[str] = ()) -> dict[str, Any] | None:
    """Return the facts in a tool's output; None: not understood.

    Args:
        argv: the command, if known; without it the text itself must tell whose it is.
    """
    program = PurePosixPath(argv[0]).name if argv else ""
    for name, reader in _READERS:
        if program and name != program:
            continue
        try:
            facts = reader(text)
        except _NOT_ITS_OWN:
            continue
        if facts is not None:
            return facts
    return None


def configure_facts(text: str) -> dict[str, Any] | None:
    """Return what PyTorch's configure came out with, by the names of README-logs."""
    facts = parse_configure(text)
    if facts.use_mps is None and facts.sdk_version is None and not facts.missing:
        return None
    named: dict[str, Any] = {"USE_MPS": facts.use_mps, "CAN_COMPILE_METAL": facts.can_compile_metal}
    named |= {"sdk": facts.sdk_version, "reason": facts.reason_id, "compiler_id": facts.compiler_id}
    named |= {"ccache": facts.ccache}
    stopped = "Configuring incomplete, errors occurred" in text
    return named | ({"configured": facts.generated} if facts.generated or stopped else {})


def _facts(parse: Callable[[str], Any]) -> Callable[[str], dict[str, Any] | None]:
    def read(text: str) -> dict[str, Any] | None:
        value = parse(text)
        return None if value is None else dict(value.facts())

    return read


# In the order in which a text without its command is tried: the surest forms first.
_READERS: tuple[tuple[str, Callable[[str], dict[str, Any] | None]], ...] = (
    (".ninja_log", _facts(parse_ninja_log)),
    ("sccache", _facts(parse_sccache)),
    ("ccache", _facts(parse_ccache)),
    ("cmake", configure_facts),
    ("codesign", _facts(parse_codesign_verify)),
    ("pip", _facts(parse_pip_wheel)),
    ("ninja", _facts(parse_ninja)),
    ("delocate-listdeps", _facts(parse_listdeps)),
)
