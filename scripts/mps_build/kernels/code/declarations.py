"""A function that a module declares: its name, what it returns, what it takes, and how LLVM's names spell that."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .sizes import split_top, take_type


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
