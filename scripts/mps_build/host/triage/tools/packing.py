"""What the tools around a finished wheel print: pip, delocate-listdeps, codesign."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mps_build.common.logs.text import clean_lines

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
