"""The rules by which host code is made wrong. Each finds its places in a file; a mutant is one of them carried out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Iterator, Mapping

from .text import Span, Text


@dataclass(frozen=True)
class Edit:
    """What a rule does at one place: `new` stands instead of what is there."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Rule:
    """A kind of fault: `what` says it in words, `find` yields the places."""

    name: str
    what: str
    find: Callable[[Text], Iterator[Edit]]


def applied(text: Text, edit: Edit) -> str:
    """Return a file with one edit; its lines keep their numbers."""
    lost = text.whole.count("\n", edit.start, edit.end) - edit.new.count("\n")
    return text.whole[: edit.start] + edit.new + "\n" * max(lost, 0) + text.whole[edit.end :]


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


def strides(text: Text) -> Iterator[Edit]:
    """Strides: of another dimension, of another kind, none."""
    for found in text.find(r"\bstride\((\s*-?\d+\s*)\)"):
        other = "0" if found[1].strip() != "0" else "-1"
        yield Edit(found.start(1), found.end(1), other)
    for found in text.find(r"\.(strides)\(\)"):
        yield Edit(found.start(1), found.end(1), "sizes")
    for found in text.find(r"\b\w*[sS]trides?\w*\[([^\]\[]+)\]"):
        if found[1].strip() not in ("0", ""):
            yield Edit(found.start(1), found.end(1), "0")


def offsets(text: Text) -> Iterator[Edit]:
    """Offsets: dropped, or counted in elements instead of bytes."""
    for found in text.find(r"\bstorage_offset\(\)"):
        start = text.receiver_start(found.end())
        if start is not None:
            yield Edit(start, found.end(), "0")
    for found in text.find(r"\s*\*\s*(?:[\w.\->]+)?element_size\(\)"):
        yield Edit(found.start(), found.end(), "")
    for found in text.find(r"\b(?:offset|sourceOffset|destinationOffset):"):
        argument = text.message_argument(found.end())
        if argument is not None and text.code[argument.start : argument.end] not in ("0", ""):
            yield Edit(argument.start, argument.end, "0")


def casts(text: Text) -> Iterator[Edit]:
    """Casts of a tensor or a graph's node that are left out."""
    for name, which in (("castMPSTensor", 1), ("castToIHFTypes", 1), ("castFromIHFTypes", 1)):
        for found in text.find(rf"\b{name}\("):
            arguments, closing = text.arguments(found.end() - 1), text.closing(found.end() - 1)
            if len(arguments) > which and closing and " " not in text.code[arguments[which].start : arguments[which].end]:
                inside = text.whole[arguments[which].start : arguments[which].end]
                yield Edit(found.start(), closing + 1, inside)
    yield from _message_left_out(text, "castTensor")
    for found in text.find(r"\.to\("):
        closing = text.closing(found.end() - 1)
        if closing is not None:
            yield Edit(found.start(), closing + 1, "")


def _message_left_out(text: Text, keyword: str) -> Iterator[Edit]:
    """Messages to a graph whose first argument stands for their result."""
    for found in text.find(rf"\b{keyword}:"):
        argument = text.message_argument(found.end())
        opening = _message_start(text, found.start())
        if argument is not None and opening is not None:
            closing = text.closing(opening)
            if closing is not None:
                yield Edit(opening, closing + 1, f"({text.whole[argument.start : argument.end]})")


def _message_start(text: Text, place: int) -> int | None:
    """Return where the message opens that a place is inside of."""
    at = place - 1
    while at >= 0:
        letter = text.code[at]
        if letter in ")]}":
            at = text.opening(at) or 0
        elif letter == "[":
            return at
        elif letter in "({;":
            return None
        at -= 1
    return None


def synchronizations(text: Text) -> Iterator[Edit]:
    """Waits and commits that do not happen."""
    for found in text.find(r"\bSyncType::(COMMIT_AND_WAIT|COMMIT_AND_CONTINUE|COMMIT_ADAPTIVE|COMMIT)\b"):
        if text.code[: found.start()].rstrip().endswith(("case", "==", "!=", "=")):
            continue
        yield Edit(found.start(1), found.end(1), "NONE")
    pattern = (
        r"(?:\[[^;\[\]]*\b(?:waitUntilCompleted|commit|encodeSignalEvent[^;]*|encodeWaitForEvent[^;]*|endEncoding)\s*\])"
        r"|(?:[\w.\->:()]*\b(?:synchronize|commitAndWait|commitAndContinue|commit|endKernelCoalescing|waitForEvents"
        r"|recordEvents|waitUntilCompleted)\()"
    )
    yield from _statements_left_out(text, pattern)


def _statements_left_out(text: Text, pattern: str) -> Iterator[Edit]:
    for found in text.find(pattern):
        if text.starts_statement(found.start()):
            statement = text.statement(found.start())
            if statement is not None:
                yield Edit(statement.start, statement.end, ";")


def scalars(text: Text) -> Iterator[Edit]:
    """`alpha`, `beta` and their kind ignored."""
    for found in text.find(r"\b(alpha|beta|value|weight|eps|epsilon|momentum|lr|negative_slope|scale\w*)\.to(?:Double|Float|<\w+>)?\(\)"):
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
    yield from _statements_left_out(text, r"\bmaybe_wrap_dims\(")


def gathers(text: Text) -> Iterator[Edit]:
    """A tensor with gaps that is taken as it lies."""
    for found in text.find(r"\bneedsGather\("):
        closing = text.closing(found.end() - 1)
        if closing is not None and not re.search(r"\bbool\s+$", text.code[: found.start()]):
            yield Edit(found.start(), closing + 1, "false")
    for found in text.find(r"(?<!is)\.(?:contiguous|expect_contiguous|clone)\("):
        closing = text.closing(found.end() - 1)
        if closing is not None and text.code[found.end() - 2] != "_":
            yield Edit(found.start(), closing + 1, "")
    for found in text.find(r"!\s*(?:\w+(?:\.|->))+is_(?:contiguous|non_overlapping_and_dense)\([^()]*\)"):
        yield Edit(found.start(), found.end(), "false")
    for found in text.find(r"(?<![!\w.>])(?:\w+(?:\.|->))+is_(?:contiguous|non_overlapping_and_dense)\([^()]*\)"):
        if not text.code[: found.start()].rstrip().endswith("!"):
            yield Edit(found.start(), found.end(), "true")
    for found in text.find(r"\bPlaceholder\("):
        arguments = text.arguments(found.end() - 1)
        if len(arguments) == 4 and "gatherTensorData" not in text.code[arguments[3].start : arguments[3].end]:
            yield Edit(arguments[3].start, arguments[3].end, "false")


def fills(text: Text) -> Iterator[Edit]:
    """Memory that is not filled, results that are not written back."""
    yield from _statements_left_out(text, r"[\w.\->\[\]]+\.(?:zero_|fill_|copy_)\(|\bmemset\(|\bmemcpy\(|\[[^;\[\]]*fillBuffer:")
    yield from _statements_left_out(text, r"\b(?:fill_mps_tensor_|fill_scalar_mps\w*|mps_copy_|copy_blit_mps|zero_mps_|output_copy)\(")
    for found in text.find(r"\bat::(zeros|ones|full)(_like)?\("):
        if found[1] != "full":
            yield Edit(found.start(1), found.end(1), "empty")


def buffer_indices(text: Text) -> Iterator[Edit]:
    """Arguments of a kernel at another's place."""
    for found in text.find(r"\batIndex:\s*(\d+)"):
        yield Edit(found.start(1), found.end(1), str(int(found[1]) + (1 if found[1] == "0" else -1)))
    for found in text.find(r"\bmtl_set(?:Buffer|Bytes)\("):
        arguments = text.arguments(found.end() - 1)
        if arguments and text.code[arguments[-1].start : arguments[-1].end].isdigit():
            index = int(text.code[arguments[-1].start : arguments[-1].end])
            yield Edit(*arguments[-1], str(index - 1 if index else 1))
    for found in text.find(r"\bmtl_setArgs(?:<\d+>)?\("):
        arguments = text.arguments(found.end() - 1)
        for one, other in zip(arguments[1:], arguments[2:]):
            yield _swap(text, one, other)


def _swap(text: Text, one: Span, other: Span) -> Edit:
    whole = text.whole
    between = whole[one.end : other.start]
    return Edit(one.start, other.end, whole[other.start : other.end] + between + whole[one.start : one.end])


def releases(text: Text) -> Iterator[Edit]:
    """Objects that are given up too early: not kept, or released twice; blocks of memory that are still in use."""
    for found in text.find(r"\[(\w+) retain\]"):
        yield Edit(found.start(), found.end(), found[1])
    for found in text.find(r"\[(\w+) release\];"):
        yield Edit(found.start(), found.end(), f"{found[0]} {found[0]}")
    for found in text.find(r"\b(retainCount|use_count)\(\)"):
        yield Edit(found.start(), found.end(), f"{found[0]} - 1")
    for found in text.find(r"(?<=\s)(?:id<\w+>|MPS\w+\s*\*|NS\w+(?:<[^;=]*>)?\s*\*)\s*(\w+)\s*=\s*\["):
        statement = text.statement(found.start())
        if statement and re.search(r"\b(alloc|new)\b", text.code[statement.start : statement.end]):
            yield Edit(statement.end, statement.end, f" [{found[1]} release];")
    yield from _statements_left_out(text, r"\[\w+ (?:retain|addCompletedHandler:\^[^;]*)\]")


def macos_versions(text: Text) -> Iterator[Edit]:
    """A condition on the version of macOS, inverted."""
    for found in text.find(r"\bis_macos_13_or_newer\("):
        closing = text.closing(found.end() - 1)
        start = text.receiver_start(found.end() - 1)
        if closing is not None and start is not None and not re.search(r"\bbool\s+$", text.code[:start]):
            yield Edit(start, closing + 1, f"(!{text.whole[start : closing + 1]})")
    for found in text.find(r"\b(?:isOperatingSystemAtLeastVersion|isMacOS13Plus|is_macos\w*_available)\w*(?=[\s)&|?;])"):
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
    yield from _message_left_out(text, "transposeTensor")
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
            yield _swap(text, one, other)


def flags(text: Text) -> Iterator[Edit]:
    """A flag that says the opposite: YES for NO, true for false, as an argument."""
    for found in text.find(r":\s*(YES|NO)\b"):
        yield Edit(found.start(1), found.end(1), "NO" if found[1] == "YES" else "YES")
    for found in text.find(r"(?<=[,(])\s*(true|false)(?=\s*[,)])"):
        yield Edit(found.start(1), found.end(1), "false" if found[1] == "true" else "true")
    for found in text.find(r"[,(]\s*(keepdim|unbiased|transpose\w*|is_backward|ceil_mode|count_include_pad|align_corners|causal|log|descending|right|upper)(?=\s*[,)])"):
        if text.code[found.start()] in ",(" and not re.search(r"\bbool\s*$", text.code[: found.start(1)]):
            yield Edit(found.start(1), found.end(1), f"!{found[1]}")


def numbers(text: Text) -> Iterator[Edit]:
    """A number that is one off, a product that is a sum."""
    for found in text.find(r"(?<=[\w)\]])\s*[-+]\s*1\b(?![.\w])"):
        yield Edit(found.start(), found.end(), "")
    for found in text.find(r"(?<=[\w)\]]) (\*|/) (?=[\w(])"):
        if not re.search(r"(?:\b(?:const|auto|return|Tensor|void|int|char|float|MPS\w+|NS\w+|id)|>)\s*$", text.code[: found.start()]):
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
                yield _swap(text, one, other)


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


RULES = (
    Rule("key_part", "a part left out of a graph's cache key", key_parts),
    Rule("strides", "a stride of another dimension, or sizes for strides", strides),
    Rule("offset", "an offset dropped, or in elements for bytes", offsets),
    Rule("cast", "a cast left out", casts),
    Rule("synchronization", "a wait, a commit or the end of an encoder left out", synchronizations),
    Rule("scalar", "alpha, beta or another scalar ignored", scalars),
    Rule("wrap", "a negative dimension not wrapped", wraps),
    Rule("gather", "a tensor with gaps not gathered", gathers),
    Rule("fill", "a fill or the copy of a result left out", fills),
    Rule("buffer_index", "a kernel's argument at another index", buffer_indices),
    Rule("release", "an object not kept, or released too early", releases),
    Rule("macos", "a condition on the version of macOS inverted", macos_versions),
    Rule("comparison", "a boundary off by one, equality turned round", comparisons),
    Rule("condition", "a condition turned round", conditions),
    Rule("axis", "an axis or dimension mistaken, a transposition left out", axes),
    Rule("operands", "the operands of a node exchanged", operands),
    Rule("flag", "a flag that says the opposite", flags),
    Rule("number", "a number off by one, another arithmetic operator", numbers),
    Rule("arguments", "two neighbouring arguments of a call exchanged", arguments),
    Rule("type", "a data type mistaken", types),
)
