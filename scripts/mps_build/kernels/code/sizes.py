"""Sizes of LLVM types, as text: what a load or store touches, and how long a threadgroup array is."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SCALARS = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}


class UnknownType(ValueError):
    """A type whose size is not known."""


def split_top(text: str) -> list[str]:
    """Split at the commas that lie outside of all brackets.

    >>> split_top("i32 0, <2 x i64> <i64 1, i64 2>, { i32, ptr } undef")
    ['i32 0', '<2 x i64> <i64 1, i64 2>', '{ i32, ptr } undef']
    """
    parts, depth, begin, quoted = [], 0, 0, False
    for position, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "<[{(":
            depth += 1
        elif letter in ">]})":
            depth -= 1
        elif letter == "," and depth == 0:
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
        for position, letter in enumerate(text):
            depth += (letter in "<[{") - (letter in ">]}")
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
