"""Metal source text to a shared library of this machine: clang with a shim of metal_stdlib.

python -I -S metal_source.py SOURCE OUT LOG; run by the software Metal, with the interpreter that has torch. Each
kernel becomes a function of the machine that runs a wheel's kernels: pointers of its arguments, then its thread's ids.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SHIM = Path(__file__).resolve().parent / "metal_shim.h"
# A kernel; a template's, which is none until one of its instances is named; and such an instance.
_KERNEL = re.compile(
    r"(?P<template>\btemplate\s*<[^<>]*>\s*)?(?:\btemplate\s*\[\[\s*host_name\s*\((?P<host>[\s\w\"]+)\)\s*\]\]\s*)?"
    r"\b(?:kernel\s+void|void\s+kernel)\s+(?P<name>\w+)\s*(?P<given><[^<>()]*>)?\s*\("
)
_CONSTANT = re.compile(r"\bconstant\s+([\w:]+)\s+(\w+)\s*\[\[\s*function_constant\s*\(\s*(\d+)\s*\)\s*\]\]\s*;")
_INCLUDE = re.compile(r"^[ \t]*#include[ \t]*<metal\w*>[ \t]*$", re.MULTILINE)
_ATTRIBUTE = re.compile(r"\[\[([^\[\]]*)\]\]")
_SLOT = re.compile(r"\s*buffer\s*\(\s*(\d+)\s*\)\s*")
_CAST = re.compile(r"\b(half|bfloat)\s*\(")
_POINTER = re.compile(r"\*\s*(\w+)(?=\s*(?:\[\[|,|\)|$))")
# Where the machine keeps each id, in 32-bit words (kernels/runtime/runtime.h).
_IDS = {
    "thread_position_in_grid": 0,
    "threadgroup_position_in_grid": 3,
    "thread_position_in_threadgroup": 6,
    "threads_per_threadgroup": 9,
    "threadgroups_per_grid": 12,
    "threads_per_grid": 15,
    "thread_index_in_simdgroup": 18,
    "simdgroup_index_in_threadgroup": 19,
    "thread_index_in_threadgroup": 20,
}
FLAGS = (
    *("-std=gnu++17", "-O2", "-w", "-fPIC", "-shared", "-ffp-contract=off", "-fno-strict-aliasing"),
    "-fsigned-char",  # as Metal's; that of Linux on arm64 is not
)
_OF_THIS_MACHINE = ("-march=x86-64-v3",)
# What clang is given to expand the macros of a text, but for the file: macros may write the instances of a template.
EXPANSION = ("-E", "-P", "-x", "c++", "-D__METAL_VERSION__=310")


class Unsupported(Exception):
    """The text uses what the shim does not have."""


@dataclass(frozen=True)
class Parameter:
    """One parameter: its C++ type, and its buffer's index or the name of an id."""

    type: str
    slot: int | None
    identity: str | None


@dataclass(frozen=True)
class Kernel:
    """One kernel: the name that it is found by, what C++ calls it, its parameters."""

    name: str
    function: str
    parameters: tuple[Parameter, ...]


def kernels_of(text: str) -> Iterator[Kernel]:
    """Yield each kernel. A template's attributes hold where an instance of it repeats none."""
    of_template: dict[str, list[list[str]]] = {}
    for match in _KERNEL.finditer(text):
        parts = split_commas(text[match.end() : _closing(text, match.end())])
        if match["template"]:
            of_template[match["name"]] = [_ATTRIBUTE.findall(part) for part in parts]
            continue
        name = "".join(re.findall(r'"(\w*)"', match["host"] or "")) or match["name"]
        parameters = tuple(_parameters(parts, name, of_template.get(match["name"], [])))
        yield Kernel(name=name, function=match["name"] + (match["given"] or ""), parameters=parameters)


def _closing(text: str, at: int) -> int:
    depth = 1
    for place in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise Unsupported("a list of parameters does not end")


def _parameters(parts: list[str], kernel: str, of_template: list[list[str]]) -> Iterator[Parameter]:
    free = 0
    for index, part in enumerate(parts):
        names = _ATTRIBUTE.findall(part) or (of_template[index] if index < len(of_template) else [])
        words = _ATTRIBUTE.sub("", part).strip()
        kind = re.sub(r"\w+\s*$", "", words).strip() or words  # an instance of a template may leave the name out
        slot = next((int(found[1]) for each in names if (found := _SLOT.fullmatch(each))), None)
        identity = next((each.strip() for each in names if each.strip() in _IDS), None)
        if identity is None and slot is None:
            if not kind.endswith(("*", "&")):
                raise Unsupported(f"{kernel}: parameter {words!r} with {names}")
            slot = free
        if slot is not None:
            free = slot + 1
        yield Parameter(type=kind, slot=slot, identity=identity)


def split_commas(text: str) -> list[str]:
    """Split at the commas that lie outside of all brackets.

    >>> split_commas("array<int, 2> &a [[buffer(0)]], uint i")
    ['array<int, 2> &a [[buffer(0)]]', ' uint i']
    """
    parts, depth, begin = [], 0, 0
    for place, character in enumerate(text):
        depth += {"(": 1, "<": 1, "[": 1, ")": -1, ">": -1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(text[begin:place])
            begin = place + 1
    return [*parts, text[begin:]] if text[begin:].strip() else parts


def _without_aliases(text: str) -> str:
    """Say of the pointers that kernels take that no two reach the same memory, as Metal's compiler takes it to be.

    Its code for a kernel says `noalias` of each buffer: what was read before a write is not read again.
    """
    parts, done = [], 0
    for match in _KERNEL.finditer(text):
        end = _closing(text, match.end())
        parts += [text[done : match.end()], _POINTER.sub(r"*__restrict \1", text[match.end() : end])]
        done = end
    return "".join([*parts, text[done:]])


def translated(text: str) -> str:
    """Return Metal source as C++ that exports its kernels."""
    text = without_includes(text)
    kernels = list(kernels_of(text))
    constants = _CONSTANT.findall(text)
    text = _CONSTANT.sub(r"static \1 \2;", text)
    text = _CAST.sub(r"sim_\1(", _without_aliases(text))
    wrappers, rows = [], []
    for kernel in kernels:
        name, parameters = kernel.name, kernel.parameters
        given = ", ".join(_argument(index, each) for index, each in enumerate(parameters))
        call = f"{kernel.function}({given});"
        wrappers.append(f"static void sim_run_{name}(void **slots, const unsigned *ids) {{ {call} }}")
        taken = max((index + 1 for index, each in enumerate(parameters) if each.slot is not None), default=0)
        wrappers.append(f"SIM_ROW({name}, {taken}, {call})")
        buffers = [
            f"{{{index}, {each.slot}, sim_size<{each.type}>()}}"
            for index, each in enumerate(parameters)
            if each.slot is not None
        ]
        entries = f"(void *)sim_run_{name}, (void *)sim_row_{name}"
        rows.append(f'{{"{name}", {entries}, {len(buffers)}, {{{", ".join(buffers)}}}}},')
    rows.append("{nullptr, nullptr, nullptr, 0, {}}")
    table = 'extern "C" { sim_exported sim_kernels[] = {\n' + "\n".join(rows) + "}; }"
    if constants:
        places = "".join(f"{{{index}, sizeof({name}), &{name}}}, " for _, name, index in constants)
        table += f'\nextern "C" {{ sim_constant sim_constants[] = {{{places}{{0, 0, nullptr}}}}; }}'
    return "\n".join((f'#include "{SHIM}"', _ATTRIBUTE.sub("", text), *wrappers, table, ""))


def _argument(index: int, parameter: Parameter) -> str:
    if parameter.identity is not None:
        return f"sim_id<{parameter.type}>(ids + {_IDS[parameter.identity]})"
    if parameter.type.endswith("&"):
        return f"*({parameter.type[:-1].strip()} *)slots[{index}]"
    return f"({parameter.type})slots[{index}]"


def needs_expansion(text: str) -> bool:
    """Return whether a text names instances of templates, which macros may write."""
    return "host_name" in text


def without_includes(text: str) -> str:
    """Return a text without Metal's own headers, which the shim stands for."""
    return _INCLUDE.sub("", text)


def errors_of(said: str) -> str:
    """Return the first errors of what a compiler says, or its last lines."""
    return "\n".join(([line for line in said.splitlines() if "error" in line] or said.splitlines()[-5:])[:8])


def _expanded(text: str, clang: Path) -> str:
    """Return the text with its macros expanded."""
    argv = [str(clang), *EXPANSION, "-"]
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unsupported(done.stderr)
    return done.stdout


def main() -> int:
    """Compile one file; what is wrong goes to the log."""
    source, out, log = (Path(each) for each in sys.argv[1:])
    root = Path(sys.executable).resolve().parents[2]
    clang = root / "usr/lib/llvm-19/bin/clang"
    beside = out.with_name(f"{out.name}.cpp")
    try:
        text = source.read_text(encoding="utf-8")
        if needs_expansion(text):
            text = _expanded(without_includes(text), clang)
        beside.write_text(translated(text), encoding="utf-8")
    except Unsupported as error:
        log.write_text(str(error), encoding="utf-8")
        return 1
    argv = [str(clang), "--driver-mode=g++", f"--sysroot={root}", f"--ld-path={clang.parent}/ld.lld", *FLAGS]
    argv += _OF_THIS_MACHINE
    done = subprocess.run([*argv, "-o", str(out), str(beside)], capture_output=True, text=True, check=False)
    log.write_text(errors_of(done.stderr), encoding="utf-8")
    if done.returncode == 0:
        # What is kept is believed by this (simulation/kept.py); the loader reads nothing behind the sections.
        out.write_bytes((data := out.read_bytes()) + hashlib.sha256(data).hexdigest().encode())
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
