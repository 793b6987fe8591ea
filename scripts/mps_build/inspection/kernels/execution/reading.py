"""Reads kernels without running them: are two of one name the same, and how many instructions each has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...audit.macho import Malformed
from ..binding.contracts import match_kernel
from ..code import compiler
from ..code.body import Body, body_of, kernel_name
from ..code.text import ModuleText, split_module
from ..library import Library
from ..metadata import parse_metadata
from .sandbox import close_the_door

Place = tuple[int, int]
"""A library's number, and a function's in it."""
Pairs = Mapping[Place, Place | None]
"""Which kernel each is compared with; None: with none."""


def is_same_code(one: bytes, other: bytes) -> bool:
    """Return whether two kernels of one name have the same instructions."""
    try:
        return one == other or _compared(compiler.read_bitcode(one), compiler.read_bitcode(other))[0]
    except Malformed:
        return False


def _compared(one: str, other: str) -> tuple[bool, list[Body]]:
    """Return whether two modules are the same, and their bodies if it had to be looked at closely."""
    modules = [split_module(text) for text in (one, other)]
    if _lines(modules[0]) == _lines(modules[1]):
        return True, []
    bodies = [body_of(module, kernel_name(text)) for module, text in zip(modules, (one, other), strict=True)]
    return bodies[0].digest == bodies[1].digest, bodies


def _lines(module: ModuleText) -> object:
    return module.types, module.globals, module.definitions


def read_batch(
    libraries: Sequence[Library], pairs: Pairs, batch: Mapping[str, Any], say: Callable[[Mapping[str, Any]], None]
) -> None:
    """Say of each kernel: same, changed, alone or unreadable; with the family and the numbers of instructions."""
    compiler.host_target()
    close_the_door()
    for number in batch["functions"]:
        say({"event": "compile", "function": number})
        place = (batch["library"], number)
        try:
            verdict, family = _read_pair(libraries, place, pairs[place])
        except Malformed as error:
            verdict, family = {"outcome": "unreadable", "reason": str(error)}, ""
        say({"event": "done", "function": number, "verdict": verdict, "family": family})


def _read_pair(libraries: Sequence[Library], place: Place, other: Place | None) -> tuple[dict[str, Any], str]:
    text = _text(libraries, place)
    if other is None:
        return {"outcome": "alone", "instructions": [_body(text).instructions]}, _family(text)
    before = _text(libraries, other)
    is_same, bodies = _compared(before, text)
    if is_same:
        return {"outcome": "same"}, ""
    return {"outcome": "changed", "instructions": [each.instructions for each in bodies]}, _family(text)


def _text(libraries: Sequence[Library], place: Place) -> str:
    function = libraries[place[0]].functions[place[1]]
    if function.fault:
        raise Malformed(function.fault)
    return compiler.read_bitcode(libraries[place[0]].bitcode(function))


def _body(text: str) -> Body:
    return body_of(split_module(text), kernel_name(text))


def _family(text: str) -> str:
    kernel = match_kernel(kernel_name(text), parse_metadata(text))
    return kernel.contract.family if kernel and kernel.contract else ""
