"""Faults in where values lie: strides, offsets, gathers, fills, buffers, and when they are there."""

from __future__ import annotations

import re
from typing import Iterator

from .edits import Edit, statements_left_out, swapped
from .text import Text


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
    yield from statements_left_out(
        text, r"[\w.\->\[\]]+\.(?:zero_|fill_|copy_)\(|\bmemset\(|\bmemcpy\(|\[[^;\[\]]*fillBuffer:"
    )
    yield from statements_left_out(
        text, r"\b(?:fill_mps_tensor_|fill_scalar_mps\w*|mps_copy_|copy_blit_mps|zero_mps_|output_copy)\("
    )
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
            yield swapped(text, one, other)


def releases(text: Text) -> Iterator[Edit]:
    """Objects that are given up too early: not kept, or released once more; blocks of memory that are still in use."""
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
    yield from statements_left_out(text, r"\[\w+ (?:retain|addCompletedHandler:\^[^;]*)\]")


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
    yield from statements_left_out(text, pattern)
