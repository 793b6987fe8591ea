"""How a kernel is called: `rt_entry` for one thread, and `rt_row` for the threads of a row, one after another.

Of a row's threads only few built-ins differ: they are counted in registers, all others and the buffers' addresses are
read once. Nothing is promised of the buffers: whether two iterations may change places, LLVM finds out by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..read.metadata import BUILTINS, Argument, Metadata
from .compiled import ENTRY, ROW

# Words of `ids` that grow by one from thread to thread of a row; and those that follow from the thread's index.
_GROWING = frozenset(BUILTINS[name][0] for name in ("thread_position_in_grid", "thread_position_in_threadgroup"))
_INDEX = BUILTINS["thread_index_in_threadgroup"][0]
_OF_INDEX: Mapping[int, str] = {
    BUILTINS["thread_index_in_simdgroup"][0]: "and i32 {index}, 31",
    BUILTINS["simdgroup_index_in_threadgroup"][0]: "lshr i32 {index}, 5",
}


class UnknownArgument(Exception):
    """An argument that no launch here can give."""


def entry(metadata: Metadata) -> str:
    """Return `void rt_entry(ptr arguments, ptr ids)`: buffers by address, built-ins from the thread's words."""
    lines = [f"define void @{ENTRY}(ptr %arguments, ptr %ids) nounwind {{"]
    loaded: set[int] = set()
    for argument in metadata.arguments:
        words = _words(argument)
        lines += [line for word in words if word not in loaded for line in _load(word)]
        loaded.update(words)
        lines += _buffer(argument) if argument.is_buffer else _builtin(argument, {})
    return "\n".join([*lines, f"  call void @{_name(metadata)}({_passed(metadata)})", "  ret void", "}"])


def row(metadata: Metadata) -> str:
    """Return `void rt_row(ptr arguments, ptr ids, i32 count)`: the same for `count` threads, of which there is one.

    `nuw` is true: scheduler.c takes rows only where no position lies beyond 2^32.
    """
    words = sorted({word for each in metadata.arguments for word in _words(each)})
    if any(word in _OF_INDEX for word in words):
        words = sorted({*words, _INDEX})
    lines = [f"define void @{ROW}(ptr %arguments, ptr %ids, i32 %count) nounwind {{", "begin:"]
    lines += [line for each in metadata.arguments if each.is_buffer for line in _buffer(each)]
    lines += [line for word in words for line in _load(word)]
    lines += ["  br label %thread", "thread:", "  %k = phi i32 [ 0, %begin ], [ %next, %thread ]"]
    names: dict[int, str] = {}
    for word in words:
        if word in _GROWING or word == _INDEX:
            names[word] = f"%k{word}"
            lines.append(f"  %k{word} = add nuw i32 %w{word}, %k")
    for word in words:
        if word in _OF_INDEX:
            names[word] = f"%k{word}"
            lines.append(f"  %k{word} = {_OF_INDEX[word].format(index=names[_INDEX])}")
    lines += [line for each in metadata.arguments if not each.is_buffer for line in _builtin(each, names)]
    lines += [f"  call void @{_name(metadata)}({_passed(metadata)}) alwaysinline", "  %next = add nuw i32 %k, 1"]
    lines += ["  %more = icmp ult i32 %next, %count", "  br i1 %more, label %thread, label %end", "end:"]
    return "\n".join([*lines, "  ret void", "}"])


def _name(metadata: Metadata) -> str:
    return metadata.function if re.fullmatch(r"[\w.$-]+", metadata.function) else f'"{metadata.function}"'


def _passed(metadata: Metadata) -> str:
    return ", ".join(f"{_type(each)} %v{each.index}" for each in metadata.arguments)


def _type(argument: Argument) -> str:
    if argument.is_buffer:
        return f"ptr addrspace({argument.space})"
    word, count = _word(argument)
    return word if count == 1 else f"<{count} x {word}>"


def _buffer(argument: Argument) -> list[str]:
    n = argument.index
    return [
        f"  %s{n} = getelementptr ptr, ptr %arguments, i64 {n}",
        f"  %g{n} = load ptr, ptr %s{n}",
        f"  %v{n} = addrspacecast ptr %g{n} to ptr addrspace({argument.space})",
    ]


def _word(argument: Argument) -> tuple[str, int]:
    match = re.fullmatch(r"(uint|ushort|int|short|ulong)([234]?)", argument.type)
    if not match or argument.kind not in BUILTINS:
        raise UnknownArgument(f"its argument {argument.kind} of type {argument.type} is not known")
    word = {"uint": "i32", "int": "i32", "ushort": "i16", "short": "i16", "ulong": "i64"}[match[1]]
    return word, int(match[2] or 1)


def _words(argument: Argument) -> range:
    """Return which words of `ids` a kernel is given for an argument: none for a buffer."""
    if argument.is_buffer:
        return range(0)
    count = _word(argument)[1]
    first, components = BUILTINS[argument.kind]
    if count > components:
        raise UnknownArgument(f"its argument {argument.kind} has {count} components")
    return range(first, first + count)


def _load(word: int) -> list[str]:
    return [f"  %p{word} = getelementptr i32, ptr %ids, i64 {word}", f"  %w{word} = load i32, ptr %p{word}"]


def _builtin(argument: Argument, names: Mapping[int, str]) -> list[str]:
    """Return how an argument that is no buffer is made of words, which `names` has where they are no `%w`."""
    n, (word, count), lines, whole = argument.index, _word(argument), [], "poison"
    convert = {"i16": "trunc", "i64": "zext"}.get(word)
    for c, at in enumerate(_words(argument)):
        value = names.get(at, f"%w{at}")
        if convert:
            lines.append(f"  %x{n}_{c} = {convert} i32 {value} to {word}")
            value = f"%x{n}_{c}"
        target = f"%v{n}" if c == count - 1 else f"%i{n}_{c}"
        if count == 1:
            lines.append(f"  {target} = select i1 true, {word} {value}, {word} {value}")
        else:
            lines.append(f"  {target} = insertelement <{count} x {word}> {whole}, {word} {value}, i32 {c}")
            whole = target
    return lines
