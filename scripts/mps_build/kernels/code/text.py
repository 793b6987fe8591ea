"""A module's text, taken apart once: types and their sizes, globals, definitions, declarations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# Sizes of LLVM types, as text: what a load or store touches, and how long a threadgroup array is.

_SCALARS = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}


class UnknownType(ValueError):
    """A type whose size is not known."""


def split_top(text: str) -> list[str]:
    """Split at the commas that lie outside of all brackets.

    >>> split_top("i32 0, <2 x i64> <i64 1, i64 2>, { i32, ptr } undef")
    ['i32 0', '<2 x i64> <i64 1, i64 2>', '{ i32, ptr } undef']
    """
    parts, depth, begin, quoted = [], 0, 0, False
    for position, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in "<[{(":
            depth += 1
        elif character in ">]})":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:position].strip())
            begin = position + 1
    if tail := text[begin:].strip():
        parts.append(tail)
    return parts


def take_type(text: str) -> tuple[str, str]:
    """Split `text` into the type it begins with and the rest.

    >>> take_type("<4 x float> %3, i32 1"), take_type("ptr addrspace(3) @a"), take_type("[2 x { i8 }] undef")
    (('<4 x float>', '%3, i32 1'), ('ptr addrspace(3)', '@a'), ('[2 x { i8 }]', 'undef'))
    """
    text = text.lstrip()
    if text[:1] in "<[{":
        depth = 0
        for position, character in enumerate(text):
            depth += (character in "<[{") - (character in ">]}")
            if depth == 0:
                return text[: position + 1], text[position + 1 :].lstrip()
        raise UnknownType(text[:40])
    match = re.match(r'ptr(?: addrspace\(\d+\))?|%"[^"]*"|%[\w.$-]+|[a-z]+\d*', text)
    if not match:
        raise UnknownType(text[:40])
    return match[0], text[match.end() :].lstrip()


def size_and_alignment(type_text: str, named: Mapping[str, str]) -> tuple[int, int]:  # noqa: PLR0912
    """Return the bytes that a value takes in an array, and its alignment; AIR and this machine agree in both.

    >>> size_and_alignment("<3 x float>", {}), size_and_alignment("[2 x { i8, i32 }]", {})
    ((16, 16), (16, 4))

    Raises:
        UnknownType: scalable vectors, functions, opaque types and the like.
    """
    text = type_text.strip()
    if text.startswith("ptr"):
        return 8, 8
    if text in _SCALARS:
        return _SCALARS[text], _SCALARS[text]
    if match := re.fullmatch(r"i(\d+)", text):
        size = 1
        while size * 8 < int(match[1]):
            size *= 2
        return size, min(size, 16)
    if text.startswith("%"):
        if text not in named:
            raise UnknownType(text)
        return size_and_alignment(named[text], named)
    if match := re.fullmatch(r"\[(\d+) x (.*)\]", text):
        size, align = size_and_alignment(match[2], named)
        return int(match[1]) * size, align
    if text.startswith("<{"):
        return sum(size_and_alignment(part, named)[0] for part in split_top(text[2:-2])), 1
    if match := re.fullmatch(r"<(\d+) x (.*)>", text):
        if match[2] == "i1":
            size = max(1, (int(match[1]) + 7) // 8)
        else:
            size = int(match[1]) * size_and_alignment(match[2], named)[0]
        whole = 1
        while whole < size:
            whole *= 2
        return whole, whole
    if text.startswith("{"):
        return _struct(split_top(text[1:-1]), named)
    raise UnknownType(text)


def _struct(parts: list[str], named: Mapping[str, str]) -> tuple[int, int]:
    offset, most = 0, 1
    for part in parts:
        size, align = size_and_alignment(part, named)
        offset = (offset + align - 1) // align * align + size
        most = max(most, align)
    return (offset + most - 1) // most * most, most


def store_size(type_text: str, named: Mapping[str, str]) -> int:
    """Return the bytes that a load or store touches (a vector of three touches three).

    >>> store_size("<3 x float>", {}), store_size("i1", {})
    (12, 1)
    """
    if (match := re.fullmatch(r"<(\d+) x (.*)>", type_text.strip())) and match[2] != "i1":
        return int(match[1]) * size_and_alignment(match[2], named)[0]
    return size_and_alignment(type_text, named)[0]


NAME = r'@(?:"[^"]*"|[\w.$-]+)'
_ATTACHMENT = re.compile(r", ![\w.]+ !\d+")
_EMPTY_TABLE = re.compile(r"@llvm\.global_[cd]tors = appending global \[0 x ")
_GROUP = re.compile(r" #\d+(?= \{|$|,| )")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleText:
    """A module without comments, attribute groups and metadata.

    Args:
        types: `%name = type …` lines: name to body.
        globals: `@name = …` lines, in order.
        definitions: each function's lines, from `define` to `}`.
        declarations: `declare …` lines.
        unknown: lines of a kind that no Metal kernel has (module assembly, aliases …).
        empty_tables: how many empty lists of constructors it has.
    """

    types: dict[str, str]
    globals: tuple[str, ...]
    definitions: tuple[tuple[str, ...], ...]
    declarations: tuple[str, ...]
    unknown: tuple[str, ...]
    empty_tables: int = 0


def split_module(text: str) -> ModuleText:
    """Return the parts of a module that LLVM printed."""
    types: dict[str, str] = {}
    globals_, declarations, unknown = [], [], []
    definitions: list[tuple[str, ...]] = []
    body: list[str] | None = None
    empty_tables = 0
    for line in text.splitlines():
        if body is not None:
            if line == "}":
                definitions.append((*body, line))
                body = None
            elif line and not line.startswith(";") and "#dbg_" not in line:
                body.append(_plain(line))
        elif line.startswith("define "):
            body = [_plain(line)]
        elif line.startswith("declare "):
            declarations.append(_plain(line))
        elif _EMPTY_TABLE.match(line):
            empty_tables += 1  # of constructors; Metal 3.0's compiler writes it into every module
        elif line.startswith("@"):
            globals_.append(_plain(line))
        elif line.startswith("%"):
            name, _, rest = line.partition(" = type ")
            types[name] = rest
        elif line and not line.startswith(("!", ";", "attributes #", "source_filename", "target ")):
            unknown.append(line)
    return ModuleText(
        types=types,
        globals=tuple(globals_),
        definitions=tuple(definitions),
        declarations=tuple(declarations),
        unknown=tuple(unknown),
        empty_tables=empty_tables,
    )


def _plain(line: str) -> str:
    """Drop a comment, metadata attachments and attribute groups."""
    if "; preds" in line:
        line = line[: line.index(";")].rstrip()
    if "!" in line:
        line = _ATTACHMENT.sub("", line)
    return _GROUP.sub("", line) if "#" in line else line


# A function that a module declares: its name, what it returns, what it takes, and how LLVM's names spell that.


class NotTranslated(Exception):
    """An AIR function that is not known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A function that a module declares: its name, what it returns and the types of its parameters."""

    name: str
    result: str
    parameters: tuple[str, ...]

    @property
    def operation(self) -> str:
        """The name without `air.` and the types.

        >>> Declaration(name="air.atomic.global.add.u.i32", result="i32", parameters=()).operation
        'atomic.global.add'
        """
        return re.sub(r"(?:\.(?:[usf]|rtz|rte|rtp|rtn|p\d+\w*|v?\d*(?:bf16|[if]\d+)))+$", "", self.name[4:])

    @property
    def is_unsigned(self) -> bool:
        """True if the name says that the operands are unsigned."""
        return ".u." in self.name


def parse_declaration(line: str) -> Declaration:
    """Return what a `declare` line says, without attributes.

    >>> parse_declaration("declare float @air.exp.f32(float) local_unnamed_addr").parameters
    ('float',)
    """
    match = re.match(r"declare (.*?)@(\"[^\"]*\"|[\w.$-]+)\((.*)\)[^)]*$", line)
    if not match:
        raise NotTranslated(line)
    result = match[1].strip()
    while (
        word := re.match(r"(?:fastcc|zeroext|signext|noundef|dso_local|hidden|local_unnamed_addr)\s+", result)
    ) is not None:
        result = result[word.end() :]
    parameters = tuple(take_type(part)[0] for part in split_top(match[3]) if part != "...")
    return Declaration(name=match[2].strip('"'), result=take_type(result)[0], parameters=parameters)


def is_vector(kind: str) -> bool:
    """Return whether an IR type is a vector: `<4 x float>`."""
    return kind.startswith("<")


def element(kind: str) -> str:
    """
    >>> element("<4 x float>"), element("i32")
    ('float', 'i32')
    """
    return kind.split(" x ")[1][:-1] if is_vector(kind) else kind


def lanes(kind: str) -> int:
    """Return the number of elements of an IR type; 1 for a scalar."""
    return int(kind[1:].split(" ", maxsplit=1)[0]) if is_vector(kind) else 1


_SUFFIX = {"half": "f16", "float": "f32", "bfloat": "bf16", "double": "f64"}


def suffix(kind: str) -> str:
    """Return how LLVM's names spell a type.

    >>> suffix("<4 x float>"), suffix("i32")
    ('v4f32', 'i32')
    """
    name = _SUFFIX.get(element(kind), element(kind))
    return f"v{lanes(kind)}{name}" if is_vector(kind) else name


def splat(kind: str, value: str) -> str:
    """Return a constant, in every element of a vector."""
    if not is_vector(kind):
        return value
    return "<" + ", ".join(f"{element(kind)} {value}" for _ in range(lanes(kind))) + ">"
