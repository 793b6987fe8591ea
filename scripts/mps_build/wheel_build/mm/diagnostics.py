"""A compiler's words as diagnostics: which are the author's mistakes, and which are gaps in our declarations. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..objc.model import Framework, Interface

_LINE = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?P<kind>fatal error|error|warning|note): (?P<text>.*?)"
    r"(?: \[(?P<flag>-W[^\]]+)\])?$"
)
_NOT_FOUND = re.compile(r"(?P<which>instance|class) method '[+-](?P<selector>[^']+)' not found")
_AT_SELECTOR = re.compile(r"undeclared selector '(?P<selector>[^']+)'")
_MAY_NOT = re.compile(r"'(?P<type>\w+)' may not respond to '(?P<selector>[^']+)'")
_NEWER = re.compile(r"'(?P<name>[^']+)' is only available on macOS (?P<since>[\d.]+) or newer")
_HEADER = re.compile(r"'(?P<path>[^']+)' file not found")
_PROPERTY = re.compile(r"property '(?P<name>\w+)' not found on object of type '(?P<type>[^']+)'")
_APPLE = re.compile(r"'(?P<name>(?:MPS|MTL|NS|CF|kCF|IO|kIO|os_|CG|simd_)\w+)'")
_UNDECLARED = ("undeclared identifier", "unknown type name", "unknown receiver", "no type or protocol named")
# Of clang's own warnings, those that say: this message, object, block, enum or version is not what Apple declares.
_CONCERNS = re.compile(
    r"objc|incompatible|distinct-pointer|enum|format|int-conversion|literal-conversion|constant-conversion|bool-conversion|null-conversion|availability"
    r"|return-type|receiver|selector|property|unused-getter|sentinel"
)
# NSObject's own, of zig's <objc/NSObject.h>: every class has them, and our data does not name them again.
_OF_NSOBJECT = (
    "alloc autorelease class conformsToProtocol: copy copyWithZone: dealloc debugDescription description hash init "
    "instanceMethodForSelector: instancesRespondToSelector: isEqual: isKindOfClass: isMemberOfClass: isProxy "
    "isSubclassOfClass: methodForSelector: mutableCopy new performSelector: performSelector:withObject: "
    "performSelector:withObject:withObject: release respondsToSelector: retain retainCount self superclass"
)
HOW_TO_ADD = "docs/build/check_mm.md says how to add a declaration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One thing that the compiler said, with its notes."""

    file: str
    line: int
    column: int
    kind: str
    text: str
    flag: str = ""
    notes: tuple[Said, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One mistake; or, with severity `unknown`, a selector that neither a wheel nor our data knows: no mistake."""

    file: str
    line: int
    column: int
    severity: str
    text: str

    def document(self) -> dict[str, str | int]:
        """Return the row of `check_mm --json`: file, line and column (both from 1), severity, text."""
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "severity": self.severity,
            "text": self.text,
        }


def read_output(output: str) -> list[Said]:
    """Return what a compiler said, each thing once, notes with what they belong to."""
    found: list[Said] = []
    for line in output.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        said = Said(
            file=match["file"],
            line=int(match["line"]),
            column=int(match["column"]),
            kind="error" if "error" in match["kind"] else match["kind"],
            text=match["text"],
            flag=match["flag"] or "",
        )
        if said.kind != "note":
            found.append(said)
        elif found:
            last = found[-1]
            found[-1] = Said(
                file=last.file,
                line=last.line,
                column=last.column,
                kind=last.kind,
                text=last.text,
                flag=last.flag,
                notes=(*last.notes, said),
            )
    return list(dict.fromkeys(found))


def concerns(said: Said) -> bool:
    """Tell whether a warning is about Objective-C, Apple's types or their versions, and not about style."""
    return said.kind == "error" or not said.flag or bool(_CONCERNS.search(said.flag))


def newer_than_target(said: Said) -> tuple[str, str] | None:
    """Return (name, first macOS) where the compiler says that something is newer than the deployment target."""
    match = _NEWER.search(said.text)
    return (match["name"], match["since"]) if match and "availability" in said.flag else None


def judge(said: Said, known: Known) -> Diagnostic:
    """Return one thing that was said as a diagnostic."""
    severity, text = "error" if said.kind == "error" else "warning", said.text
    missing = _NOT_FOUND.search(text)
    doubtful = _MAY_NOT.search(text)
    absent = _PROPERTY.search(text)
    header = _HEADER.search(text)
    if missing:
        receiver = known.receiver(said)
        sign = "-" if missing["which"] == "instance" else "+"
        severity, text = _selector(said, f"{sign}{missing['selector']}", receiver, known)
    elif at_selector := _AT_SELECTOR.search(text):
        severity, text = _selector(said, f"-{at_selector['selector']}", None, known)
    elif doubtful:
        severity, text = _selector(said, f"-{doubtful['selector']}", known.type_named(doubtful["type"]), known)
    elif absent:
        severity, text = _property(said, absent["name"], absent["type"], known)
    elif header and (framework := apple_header(header["path"])):
        text = f"{text}: {framework} is Apple's, and our declarations lack it; {HOW_TO_ADD}"
    elif any(words in text for words in _UNDECLARED) and "did you mean" not in text and (name := _APPLE.search(text)):
        near = difflib.get_close_matches(name["name"], known.names, n=1, cutoff=0.8)
        more = (
            f"did you mean '{near[0]}'?" if near else f"our declarations do not have it; if the SDK has, {HOW_TO_ADD}"
        )
        text = f"{text}; {more}"
    return Diagnostic(file=said.file, line=said.line, column=said.column, severity=severity, text=text)


def apple_header(path: str) -> str | None:
    """Return the framework of a header that only Apple's SDK has, by its name's form.

    >>> apple_header("Vision/Vision.h"), apple_header("ATen/Tensor.h"), apple_header("os/proc.h")
    ('Vision', None, 'os')
    """
    match = re.fullmatch(r"([A-Z]\w+)/(\w+)\.h", path)
    if match and (match[1] == match[2] or re.match(r"(?:MPS|MTL|NS|CF|CG|IO|UI|CA|AV|vec)", match[2])):
        return match[1]
    system = re.fullmatch(r"(os|mach|objc|dispatch)/\w+\.h", path)
    return system[1] if system else None


class Known:
    """Our declarations as something to ask: which selectors has a type, and is that all it has?"""

    def __init__(self, frameworks: tuple[Framework, ...], heads: Mapping[str, Path]) -> None:
        self._types = {each.name: each for one in frameworks for each in (*one.protocols, *one.classes)}
        self._heads = heads
        self.names = sorted(
            {
                *self._types,
                *(name for one in frameworks for each in one.enums for name in (each.name, *each.constants)),
                *(name for one in frameworks for name in (*one.aliases, *one.structs)),
                *(each.name for one in frameworks for each in one.functions),
            }
        )

    def type_named(self, text: str) -> Interface | None:
        """Return the class or protocol that a type's spelling names, as `NSArray<NSNumber *> *` or `id<MTLBuffer>`."""
        match = re.match(r"(?:const )?(?:id\s*<\s*(\w+)\s*>|(\w+))", text)
        return self._types.get(match[1] or match[2]) if match else None

    def receiver(self, said: Said) -> Interface | None:
        """Return the class that a note points at: the declaration in our header says its name."""
        for note in said.notes:
            path = Path(note.file)
            if path.name in self._heads and "declared here" in note.text:
                lines = self._heads[path.name].read_text(encoding="utf-8").splitlines()
                match = re.match(r"@(?:interface|protocol|class) (\w+)", lines[note.line - 1])
                if match:
                    return self._types.get(match[1])
        return None

    def chain(self, interface: Interface | None) -> Iterator[Interface]:
        """Yield a type and all that it inherits from."""
        if interface is None:
            return
        yield interface
        for name in (*((interface.superclass,) if interface.superclass else ()), *interface.protocols):
            yield from self.chain(self._types.get(name))

    def selectors(self, interface: Interface | None) -> list[str]:
        """Return the selectors of a type; of all types where it is not known."""
        among = list(self.chain(interface)) or list(self._types.values())
        return sorted({*_OF_NSOBJECT.split(), *(method.selector for each in among for method in each.methods)})

    def owners(self, selector: str) -> list[str]:
        """Return the types that have a selector."""
        return [each.name for each in self._types.values() if any(one.selector == selector for one in each.methods)]

    def is_whole(self, interface: Interface | None) -> bool:
        """Tell whether a class and all that it comes from are declared whole, so that what is missing is not there."""
        while interface is not None and interface.whole:
            if interface.superclass in (None, "NSObject"):
                return True
            interface = self._types.get(str(interface.superclass))
        return False


def _selector(said: Said, signed: str, receiver: Interface | None, known: Known) -> tuple[str, str]:
    """Return severity and text for a message that its receiver does not have."""
    selector = signed[1:]
    name = f"{signed[0]}[{receiver.name if receiver else 'object'} {selector}]"
    suggested = re.search(r"did you mean '[+-]?([^']+)'", said.text)
    near = suggested[1] if suggested else nearest(selector, known.selectors(receiver))
    if near and near != selector:
        return "error", f"{name}: no such method; did you mean '{near}'?"
    owners = known.owners(selector)
    if owners:
        return "error", f"{name}: this receiver has no such method; {', '.join(owners[:3])} has"
    if known.is_whole(receiver):
        return "error", f"{name}: no such method (all methods of that class are declared)"
    return "unknown", f"{name}: no official wheel uses it and our declarations lack it; {HOW_TO_ADD}"


def _property(said: Said, name: str, type_: str, known: Known) -> tuple[str, str]:
    """Return severity and text for a property that a type does not have."""
    interface = known.type_named(type_)
    if interface is None or "did you mean" in said.text or known.is_whole(interface):
        return "error", said.text
    selectors = known.selectors(interface)
    if longer := [each for each in selectors if each.startswith(f"{name}:")]:
        return "error", f"{said.text}; '{longer[0]}' takes arguments: write it as a message"
    near = nearest(name, selectors)
    if near and near != name:
        return "error", f"{said.text}; did you mean '{near}'?"
    owners = known.owners(name)
    if owners:
        return "error", f"{said.text}; {', '.join(owners[:3])} has it"
    return "unknown", f"{said.text}: no official wheel uses it and our declarations lack it; {HOW_TO_ADD}"


def nearest(selector: str, known: list[str]) -> str | None:
    """Return the known selector that a misspelt one was meant to be.

    Near are a typing mistake (most characters are the same), parts in another order, and one label of several wrong.

    >>> nearest("tanhWithTensr:name:", ["tanWithTensor:name:", "tanhWithTensor:name:"])
    'tanhWithTensor:name:'
    >>> nearest("reshapeTensor:toShape:name:", ["reshapeTensor:withShape:name:"])
    'reshapeTensor:withShape:name:'
    >>> nearest("gatherWithUpdates:", ["tanhWithTensor:name:"]) is None
    True
    """
    close = difflib.get_close_matches(selector, known, n=1, cutoff=0.87)
    if close:
        return close[0]
    parts = selector.split(":")
    for each in known:
        others = each.split(":")
        if len(parts) > 2 and sorted(parts) == sorted(others):
            return each
        if (
            len(parts) > 2
            and len(parts) == len(others)
            and sum(a != b for a, b in zip(parts, others, strict=True)) == 1
        ):
            return each
        if len(parts) > 2 and parts[0] == others[0] and set(parts) < set(others):
            return each
    return None
