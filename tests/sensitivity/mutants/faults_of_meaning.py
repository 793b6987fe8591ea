"""Faults in what is computed: cache keys, casts, scalars, dimensions, conditions, operands, types."""

from __future__ import annotations

import re
from typing import Iterator, Mapping

from .edits import Edit, messages_left_out, statements_left_out, swapped
from .text import Span, Text


def key_parts(text: Text) -> Iterator[Edit]:
    """Parts of a graph's cache key."""
    for found in text.find(r"\bkey\w*\s*\+?=(?!=)\s*"):
        statement = text.statement(found.start())
        if statement is None:
            continue
        parts = text.parts(Span(found.end(), statement.end - 1), "+")
        if len(parts) > 1:
            for part in parts:
                if text.code[part.start] != '"':
                    yield Edit(part.start, part.end, "std::string()")
    for found in text.find(r"\bgetTensorsStringKey\(\s*\{"):
        tensors = text.arguments(found.end() - 1)
        if len(tensors) > 1:
            for one, other in zip(tensors[1:], tensors):
                yield Edit(other.end, one.end, "")
    for found in text.find(r"\bkey\w*\s*=\s*(?:fmt::format|c10::str)\("):
        for argument in text.arguments(found.end() - 1)[1:]:
            if text.code[argument.start] != '"':
                yield Edit(argument.start, argument.end, "0")


def casts(text: Text) -> Iterator[Edit]:
    """Casts of a tensor or a graph's node that are left out."""
    for name, which in (("castMPSTensor", 1), ("castToIHFTypes", 1), ("castFromIHFTypes", 1)):
        for found in text.find(rf"\b{name}\("):
            arguments, closing = text.arguments(found.end() - 1), text.closing(found.end() - 1)
            if (
                len(arguments) > which
                and closing
                and " " not in text.code[arguments[which].start : arguments[which].end]
            ):
                inside = text.whole[arguments[which].start : arguments[which].end]
                yield Edit(found.start(), closing + 1, inside)
    yield from messages_left_out(text, "castTensor")
    for found in text.find(r"\.to\("):
        closing = text.closing(found.end() - 1)
        if closing is not None:
            yield Edit(found.start(), closing + 1, "")


def scalars(text: Text) -> Iterator[Edit]:
    """`alpha`, `beta` and their kind ignored."""
    for found in text.find(
        r"\b(alpha|beta|value|weight|eps|epsilon|momentum|lr|negative_slope|scale\w*)\.to(?:Double|Float|<\w+>)?\(\)"
    ):
        yield Edit(found.start(), found.end(), "1.0")
    for found in text.find(r"\b(?:alpha|beta)(?=\s*[,)])(?!\s*\)\s*\{)"):
        before = text.code[: found.start()].rstrip()
        if before[-1:] in ",(" and not re.search(r"[&*\w]\s*$", text.code[found.start() - 1]):
            yield Edit(found.start(), found.end(), "at::Scalar(1)")
    for found in text.find(r"\b(?:alpha|beta)(?:\.\w+\(\))?\s*(==|!=)\s*[\d.]+"):
        yield Edit(found.start(), found.end(), "true" if found[1] == "==" else "false")


def wraps(text: Text) -> Iterator[Edit]:
    """Negative dimensions that stay negative."""
    for found in text.find(r"\bmaybe_wrap_dim\("):
        arguments, closing = text.arguments(found.end() - 1), text.closing(found.end() - 1)
        if arguments and closing and not text.code[arguments[0].start : arguments[0].end].count(" "):
            yield Edit(found.start(), closing + 1, f"({text.whole[arguments[0].start : arguments[0].end]})")
    for found in text.find(r"(?<![\w.])(\w+)\s*<\s*0\s*\?\s*([^:?;]+)\s*:\s*\1\b"):
        yield Edit(found.start(), found.end(), found[1])
    yield from statements_left_out(text, r"\bmaybe_wrap_dims\(")


def macos_versions(text: Text) -> Iterator[Edit]:
    """A condition on the version of macOS, inverted."""
    for found in text.find(r"\bis_macos_13_or_newer\("):
        closing = text.closing(found.end() - 1)
        start = text.receiver_start(found.end() - 1)
        if closing is not None and start is not None and not re.search(r"\bbool\s+$", text.code[:start]):
            yield Edit(start, closing + 1, f"(!{text.whole[start : closing + 1]})")
    for found in text.find(
        r"\b(?:isOperatingSystemAtLeastVersion|isMacOS13Plus|is_macos\w*_available)\w*(?=[\s)&|?;])"
    ):
        if not re.search(r"\b(?:bool|BOOL|static)\s+$|[\[:]\s*$", text.code[: found.start()]):
            yield Edit(found.start(), found.end(), f"(!{found[0]})")
    for found in text.find(r"\b(?:is)?[mM]acOS(?:_?\d+\w*)(?=\s*[)&|?;])"):
        if not re.search(r"(?:\bbool\s+|::\s*|[\w>]\s+)$", text.code[: found.start()]):
            yield Edit(found.start(), found.end(), f"(!{found[0]})")


_TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}


def comparisons(text: Text) -> Iterator[Edit]:
    """Boundaries moved by one, equality turned round; in conditions only."""
    for found in text.find(r"\b(?:if|while|for|TORCH_CHECK)\s*\("):
        closing = text.closing(found.end() - 1)
        if closing is None or found[0].startswith("TORCH_CHECK"):
            continue
        inside = text.code[found.end() : closing]
        for sign in re.finditer(r"(?<![<>=!\-])(<=|>=|==|!=|(?<=\s)<(?=\s)|(?<=\s)>(?=\s))(?![<>=])", inside):
            yield Edit(found.end() + sign.start(1), found.end() + sign.end(1), _TURNED[sign[1]])


def conditions(text: Text) -> Iterator[Edit]:
    """Conditions turned round: an early answer that is not given, a branch that is not taken."""
    for found in text.find(r"\bif\s*(?:constexpr\s*)?\("):
        closing = text.closing(found.end() - 1)
        if closing is not None and "constexpr" not in found[0] and ";" not in text.code[found.end() : closing]:
            yield Edit(found.end(), closing, f"!({text.whole[found.end() : closing]})")


def axes(text: Text) -> Iterator[Edit]:
    """A dimension other than the one that is meant."""
    for found in text.find(r"\b(?:axis|dimension|withDimension|concatDimension):\s*(-?\d+)\b"):
        yield Edit(found.start(1), found.end(1), "0" if found[1] != "0" else "-1")
    for found in text.find(r"\b(?:axis|dimension):\s*([A-Za-z_]\w*)\b(?![.(\[:])"):
        yield Edit(found.start(1), found.end(1), "0")
    for found in text.find(r"\b(?:axes):\s*@\[\s*(@-?\d+)\s*,\s*(@-?\d+)"):
        yield Edit(found.start(1), found.end(2), found[1])
    yield from messages_left_out(text, "transposeTensor")
    for found in text.find(r"\b\w*[dD]ims?\w*\.push_back\((\w+)\)"):
        yield Edit(found.start(1), found.end(1), "0")


def operands(text: Text) -> Iterator[Edit]:
    """The two operands of a subtraction, a division, a comparison or a matrix product, exchanged."""
    for found in text.find(r"\b\w+WithPrimaryTensor:"):
        one = text.message_argument(found.end())
        if one is None or re.match(r"(?:addition|multiplication|equal|notEqual|logical|maximum|minimum)", found[0]):
            continue
        second = re.match(r"\s+secondaryTensor:", text.code[one.end :])
        other = text.message_argument(one.end + second.end()) if second else None
        if other is not None:
            yield swapped(text, one, other)


def flags(text: Text) -> Iterator[Edit]:
    """A flag that says the opposite: YES for NO, true for false, as an argument."""
    for found in text.find(r":\s*(YES|NO)\b"):
        yield Edit(found.start(1), found.end(1), "NO" if found[1] == "YES" else "YES")
    for found in text.find(r"(?<=[,(])\s*(true|false)(?=\s*[,)])"):
        yield Edit(found.start(1), found.end(1), "false" if found[1] == "true" else "true")
    for found in text.find(
        r"[,(]\s*(keepdim|unbiased|transpose\w*|is_backward|ceil_mode|count_include_pad|align_corners|causal|log|descending|right|upper)(?=\s*[,)])"
    ):
        if text.code[found.start()] in ",(" and not re.search(r"\bbool\s*$", text.code[: found.start(1)]):
            yield Edit(found.start(1), found.end(1), f"!{found[1]}")


def numbers(text: Text) -> Iterator[Edit]:
    """A number that is one off, a product that is a sum."""
    for found in text.find(r"(?<=[\w)\]])\s*[-+]\s*1\b(?![.\w])"):
        yield Edit(found.start(), found.end(), "")
    for found in text.find(r"(?<=[\w)\]]) (\*|/) (?=[\w(])"):
        if not re.search(
            r"(?:\b(?:const|auto|return|Tensor|void|int|char|float|MPS\w+|NS\w+|id)|>)\s*$", text.code[: found.start()]
        ):
            yield Edit(found.start(1), found.end(1), "/" if found[1] == "*" else "*")
    for found in text.find(r"(?<=[\w)\]]) (\+|-) (?=[\w(])(?!1\b)"):
        if '"' not in text.code[text.code.rfind("\n", 0, found.start()) : text.code.find("\n", found.end())]:
            yield Edit(found.start(1), found.end(1), "-" if found[1] == "+" else "+")


def arguments(text: Text) -> Iterator[Edit]:
    """Two neighbours among a call's arguments exchanged, where both are plain names."""
    plain = re.compile(r"[A-Za-z_]\w*(?:\.vec\(\))?")
    for found in text.find(r"(?<=[\w>])[({]"):
        listed = text.arguments(found.start())
        for one, other in zip(listed, listed[1:]):
            if all(plain.fullmatch(text.code[each.start : each.end]) for each in (one, other)):
                yield swapped(text, one, other)


def types(text: Text) -> Iterator[Edit]:
    """The wrong type of a scalar or of a buffer's elements."""
    swapped: Mapping[str, str] = {
        "MPSDataTypeFloat32": "MPSDataTypeFloat16",
        "MPSDataTypeFloat16": "MPSDataTypeFloat32",
        "MPSDataTypeInt32": "MPSDataTypeInt16",
        "MPSDataTypeInt64": "MPSDataTypeInt32",
        "MPSDataTypeBool": "MPSDataTypeInt8",
        "MPSDataTypeUInt8": "MPSDataTypeInt8",
    }
    for found in text.find(r"\b(?:" + "|".join(swapped) + r")\b"):
        yield Edit(found.start(), found.end(), swapped[found[0]])
