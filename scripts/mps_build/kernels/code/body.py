"""What a kernel does, without the names: equal for equal instructions, whatever values, helpers and types are called.

The container's own hash differs for every kernel, also for equal code. Metadata, debug records, attributes of
functions and promises about pointers do not count; flags of an operation, alignments and constants do.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from ...inspection.limits import Malformed
from .text import NAME, ModuleText, split_top

_LOCAL = r'%(?:"[^"]*"|[\w.$-]+)'
_TOKEN = re.compile(rf"{NAME}|{_LOCAL}")
_LABEL = re.compile(r'^("[^"]*"|[\w.$-]+):')
_DEFINED = re.compile(rf"({NAME})\(")
# Where a thing lies, how it is called and what is promised of it: no part of what is computed.
_WORDS = re.compile(
    r" (?=[a-z])(?:internal|private|linkonce_odr|weak_odr|external|hidden|protected|dso_local|local_unnamed_addr"
    r"|unnamed_addr|fastcc|coldcc|ccc|tail|musttail|notail|noundef|nonnull|noalias|nocapture|captures\(none\)|readonly|readnone"
    r"|writeonly|returned|immarg|nofree|nest|dereferenceable(?:_or_null)?\(\d+\)|memory\([^)]*\)|nounwind|willreturn"
    r"|mustprogress|nosync|norecurse|convergent|speculatable)(?= )"
)
_STRINGS = re.compile(r' "[\w.-]+"(?:="[^"]*")?')


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A kernel's instructions: their digest, and how many there are with those of the helpers it calls."""

    digest: str
    instructions: int


_KERNEL = re.compile(r"^!air\.kernel = !\{!(\d+)\}$", re.MULTILINE)


def kernel_name(text: str) -> str:
    """Return the name of a printed module's kernel; nothing if there is not exactly one.

    >>> kernel_name("!air.kernel = !{!0}\\n!0 = !{ptr @exp_float, !1, !2}")
    'exp_float'
    """
    nodes = _KERNEL.findall(text)
    match = re.search(rf'^!{nodes[0]} = !\{{ptr @("[^"]*"|[\w.$-]+)', text, re.MULTILINE) if len(nodes) == 1 else None
    return match[1].strip('"') if match else ""


def body_of(module: ModuleText, kernel: str) -> Body:
    """Return the body of a module's kernel: itself, then what it refers to, in the order of first use.

    Raises:
        Malformed: there is no such kernel.
    """
    return _Reader(module).read(kernel)


class _Reader:
    def __init__(self, module: ModuleText) -> None:
        self._types = module.types
        self._shapes: dict[str, str] = {}
        self._definitions = {
            match[1]: lines for lines in module.definitions if (match := _DEFINED.search(lines[0])) is not None
        }
        self._globals = dict(line.split(" = ", 1) for line in module.globals if " = " in line)
        self._globals_and_definitions = {*self._definitions, *self._globals}
        self._numbers: dict[str, str] = {}
        self._queue: list[str] = []

    def read(self, kernel: str) -> Body:
        name = f"@{kernel}" if f"@{kernel}" in self._definitions else f'@"{kernel}"'
        if name not in self._definitions:
            raise Malformed(f"its metadata speaks of a kernel {kernel}, which is not there")
        text, instructions, done = [], 0, 0
        self._global_name(name)
        while done < len(self._queue):
            name, done = self._queue[done], done + 1
            if name in self._definitions:
                lines = self._function(self._definitions[name])
                instructions += sum(not line.startswith("B") for line in lines[1:])
                text += lines
            else:
                text.append(self._line(self._globals[name], {}))
        digest = hashlib.sha256("\n".join(text).encode()).hexdigest()[:32]
        return Body(digest=digest, instructions=instructions)

    def _function(self, lines: tuple[str, ...]) -> list[str]:
        match = _DEFINED.search(lines[0])
        assert match is not None
        end = _closing(lines[0], match.end())
        parameters = lines[0][match.end() : end]
        body = [f"B %{label[1]}" if (label := _LABEL.match(line)) else line for line in lines[1:-1]]
        if not body[0].startswith("B %"):  # the first block has no label, and takes the number after the parameters'
            body.insert(0, f"B %{sum(re.search(r'%[0-9]+$', each) is not None for each in split_top(parameters))}")
        names = {body[0][2:]: "%B0"}
        head = f"F {lines[0][len('define ') : match.start()]}({parameters})"
        return self._line("\n".join((head, *body)), names).split("\n")

    def _line(self, text: str, names: dict[str, str]) -> str:
        types, globals_ = self._types, self._globals_and_definitions

        def renamed(match: re.Match[str]) -> str:
            token = match[0]
            if (found := names.get(token)) is not None:
                return found
            if token[0] == "@":
                return self._global_name(token) if token in globals_ else token  # AIR's, LLVM's: the name says what
            if token in types:
                return self._shape(token)
            names[token] = found = f"%{len(names)}"
            return found

        if '"' in text:
            text = _STRINGS.sub("", text)
        return _TOKEN.sub(renamed, _WORDS.sub("", f" {text}")[1:])

    def _global_name(self, name: str) -> str:
        if name not in self._numbers:
            self._numbers[name] = f"@{len(self._numbers)}"
            self._queue.append(name)
        return self._numbers[name]

    def _shape(self, name: str) -> str:
        """Return a named type by what it holds."""
        if name not in self._shapes:
            self._shapes[name] = name  # an opaque type, or one that holds itself, keeps its name
            body = self._types[name]
            if body != "opaque":
                self._shapes[name] = _TOKEN.sub(
                    lambda match: self._shape(match[0]) if match[0] in self._types else match[0], body
                )
        return self._shapes[name]


def _closing(text: str, begin: int) -> int:
    """Return where the bracket closes that is open at `begin`."""
    depth = 1
    for at in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if not depth:
            return at
    return len(text)
