"""The ways in which a small launch becomes a large one, each found by trying (moves.py)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..families.shared.contracts import Kernel
from ..machine.runner import Runner
from ..machine.shift import PATIENCE, Moved, Shift
from ..program.launch import Addresses, Buffer, Growth, Step, Words, WrongBinding, every, memory_of

WAYS = ("x", "y", "z", "raised", "stretched")
# Its binder says how a launch grows: nothing else is tried.
STATED = "stated"
STILL = Shift(axis=0, units=0, bytes={})
# Launches that are tried for one kernel, in all and in one way with one case; one of many threads counts as several,
# and one that hangs as many.
MOST_RUNS, _MOST_OF_A_WAY, _MANY, _HANGS = 3000, 700, 8192, 30
_TRIES = 400
_UNITS = 10
# Longer constants are structs with many numbers; the lengths stand among the first.
_LONGEST = 400
_INTEGERS = {"int": 4, "uint": 4, "int32_t": 4, "uint32_t": 4, "long": 8, "ulong": 8, "int64_t": 8, "uint64_t": 8}
_APART = 64
# A counter that begins so high can begin earlier by all the threads of a large launch.
_COUNTER = 1 << 36


class Exhausted(Exception):
    """No launch more is tried."""


@dataclass(slots=True)
class Trials:
    """Launches of one kernel on trial, of which there are only so many."""

    device: Runner
    left: int = MOST_RUNS

    def run(self, step: Step, shift: Shift, groups: Sequence[int] | None = None) -> Moved:
        """Run a launch.

        Raises:
            Exhausted: there were too many.
            WrongBinding: it does not fit.
        """
        self.left -= 1 + math.prod(step.grid) // _MANY
        if self.left < 0:
            raise Exhausted
        moved = self.device.run_shifted(step, shift, groups)
        if moved.trouble is not None and moved.trouble.kind == "timeout":
            self.left -= _HANGS
        return moved

    def is_same(self, step: Step, shift: Shift, small: Moved, units: Sequence[int]) -> bool:
        """Return whether a launch leaves the same after each of some moves."""
        for each in units:
            try:
                moved = self.run(step, replace(shift, units=each))
            except WrongBinding:
                return False
            if moved.trouble is not None or moved.contents != small.contents:
                return False
        return True


def stated(step: Step, trials: Trials, growth: Growth) -> tuple[Shift, Moved] | None:
    """Return the shift that a binder states, and what is left without it; None if small moves leave something else.

    Raises:
        Exhausted: nothing more is tried.
    """
    if not {*growth.bytes, *growth.stretched, *growth.values, *growth.results} <= memory_of(step).keys():
        return None
    shift = Shift(
        axis=growth.axis,
        units=1,
        unit=growth.groups,
        bytes=growth.bytes,
        stretched=growth.stretched,
        words=growth.words,
        values=growth.values,
        results=growth.results,
        only=growth.only,
        milliseconds=PATIENCE * (4 if growth.only else 1),  # they loop as often as the tensor is long
    )
    small = trials.run(step, replace(shift, units=0))
    if small.trouble is not None:
        return None
    same = trials.is_same(step, shift, small, (1, 3, 37)) and not _is_idle(trials, step, shift, small)
    return (shift, small) if same else None


def shift_of(kernel: Kernel, step: Step, small: Moved, trials: Trials, way: str) -> Shift | None:
    """Return how a launch becomes large in one way; None if it does not, as far as was tried.

    Raises:
        Exhausted: nothing more is tried in any way.
    """
    own = Trials(trials.device, min(trials.left, _MOST_OF_A_WAY))
    before = own.left
    try:
        return _shift_of(kernel, step, small, own, way)
    except Exhausted:
        if before == trials.left:
            raise
        return None
    finally:
        trials.left -= before - own.left


def _shift_of(kernel: Kernel, step: Step, small: Moved, trials: Trials, way: str) -> Shift | None:
    if way == "raised":
        return _raised(kernel, trials, step, small)
    if way == "stretched":
        return _stretched(kernel, trials, step, small)
    axis = WAYS.index(way)
    count = -(-step.grid[axis] // step.threadgroup[axis])
    units = units_of(count)
    seen = (_along(kernel, step, small, trials, axis, each, _seen(trials, step, axis, each, small)) for each in units)
    shares = (
        _along(kernel, step, small, trials, axis, each, _shares(step, count // each, small)) for each in reversed(units)
    )
    return next((each for each in itertools.chain(seen, shares) if each is not None), None)


def units_of(count: int) -> list[int]:
    """Return by how many threadgroups a launch may be moved: one, or as many as an outer dimension's step takes.

    The longest step is that of the outermost dimension, along which every tensor can grow.

    >>> units_of(30), units_of(7), units_of(1), units_of(144)
    ([1, 2, 3, 5, 6, 10, 15], [1], [], [1, 2, 3, 4, 6, 8, 9, 12, 16, 72])
    """
    found = [each for each in range(1, count // 2 + 1) if each == 1 or count % each == 0]
    return found if len(found) <= _UNITS else [*found[: _UNITS - 1], found[-1]]


def _along(
    kernel: Kernel,
    step: Step,
    small: Moved,
    trials: Trials,
    axis: int,
    unit: int,
    outputs: Mapping[str | int, int],
) -> Shift | None:
    """Find how far each buffer moves with a unit: as far as the outputs do, each by its own size, or not; what the
    launch might write and leaves empty (messages of errors) stays."""
    if not outputs:
        return None
    count = -(-step.grid[axis] // step.threadgroup[axis]) // unit
    key = max(outputs, key=lambda each: outputs[each])
    value = step.arguments[key]
    assert isinstance(value, Buffer)
    moves: dict[str | int, list[int]] = {}
    for name, other in step.arguments.items():
        if isinstance(other, Buffer) and name not in outputs and other.data:
            is_empty = name in small.contents and not any(small.contents[name])
            moves[name] = [0] if is_empty else [*strides_of(other.size, outputs[key], value.size, count), 0]
    words = list(_lengths(step, outputs[key], value.size, count))
    counters = [{}, *_counters(kernel, step, unit, unit * step.threadgroup[axis])]
    grown = (_together(one, other) for one in counters for other in _choices(words))
    tries = itertools.product(grown, itertools.product(*moves.values()))
    for each, chosen in itertools.islice(tries, _TRIES):
        shift = Shift(
            axis=axis, units=3, unit=unit, bytes={**outputs, **dict(zip(moves, chosen, strict=True))}, words=each
        )
        if trials.is_same(step, shift, small, (3, count, 37)):
            return shift
    return None


def strides_of(size: int, by: int, whole: int, count: int) -> list[int]:
    """Return how far a buffer may move with a unit: in proportion to the output, or with a gap after each unit's part.

    >>> strides_of(60, 180, 360, 2), strides_of(124, 16, 76, 5)
    ([30], [28])
    """
    if size * by % whole == 0:
        return [size * by // whole]
    least, most = -(-size // count), (size - 1) // max(count - 1, 1)
    return [each for each in range(least, most + 1) if each % 4 == size % 4 == 0 or size % 4][:2]


def _seen(trials: Trials, step: Step, axis: int, unit: int, small: Moved) -> dict[str | int, int]:
    """Return how far apart the first units of a launch write, in each output of which that is seen; not where the
    next two write at another distance."""
    still = replace(STILL, axis=axis)
    count = -(-step.grid[axis] // step.threadgroup[axis]) // unit
    runs = [trials.run(step, still, groups=(number * unit,)) for number in range(min(count, 3))]
    found = {}
    for key in small.contents:
        untouched = _before(step, key)
        places = [
            next((i for i, (a, b) in enumerate(zip(each.contents[key], untouched, strict=True)) if a != b), None)
            for each in runs
        ]
        steps = [b - a for a, b in itertools.pairwise(places) if a is not None and b is not None]
        if places[0] is not None and steps and steps[0] > 0 and len(set(steps)) == 1:
            found[key] = steps[0]
    return found


def _shares(step: Step, count: int, small: Moved) -> dict[str | int, int]:
    """Return how far apart units write if each has an equal part of each output, wherever in it that they write: the
    indices that they read decide."""
    return {
        key: len(left) // count
        for key, left in small.contents.items()
        if left != _before(step, key) and len(left) % count == 0
    }


def _before(step: Step, key: str | int) -> bytes:
    value = step.arguments[key]
    assert isinstance(value, Buffer)
    return value.data or b"\xa5" * value.size


def _constants(step: Step) -> Iterator[tuple[str | int, int, int, int]]:
    """Yield the numbers of the constants: argument, offset, size, value."""
    for name, value in step.arguments.items():
        if not isinstance(value, bytes) or len(value) > _LONGEST:
            continue
        for width in (8, 4):
            for offset in range(0, len(value) - width + 1, width):
                yield name, offset, width, int.from_bytes(value[offset : offset + width], "little")


def _lengths(step: Step, by: int, size: int, count: int) -> Iterator[tuple[str | int, tuple[int, int, int]]]:
    """Yield words of constants that may be lengths of what grows: argument, (offset, bytes, growth)."""
    for name, offset, width, number in sorted(_constants(step), key=lambda each: each[2]):
        if not 1 < number <= size:
            continue
        if number * by % size == 0:
            yield name, (offset, width, number * by // size)
        elif number % count == 0:
            yield name, (offset, width, number // count)


def _counters(kernel: Kernel, step: Step, groups: int, threads: int) -> Iterator[Mapping[str | int, Words]]:
    """Yield counters among the constants that may start earlier, by the threadgroups or the threads of a unit: what a
    thread draws hangs on its number and on where its stream begins."""
    for name, offset, width, number in _constants(step):
        if width == 8 and number >= _COUNTER and _type_of(kernel, name).lstrip("u").startswith(("long", "int64")):
            yield from ({name: ((offset, width, -each),)} for each in dict.fromkeys((threads, groups)))


def _together(one: Mapping[str | int, Words], other: Mapping[str | int, Words]) -> Mapping[str | int, Words]:
    return {name: (*one.get(name, ()), *other.get(name, ())) for name in {**one, **other}}


def _choices(words: Sequence[tuple[str | int, tuple[int, int, int]]]) -> list[Mapping[str | int, Words]]:
    """No length grows, or one of them, or two."""
    found: list[Mapping[str | int, Words]] = [{}]
    found += [{name: (word,)} for name, word in words]
    for (one, first), (other, second) in itertools.combinations(words[:6], 2):
        found.append({one: (first, second)} if one == other else {one: (first,), other: (second,)})
    return found


def _stretched(kernel: Kernel, trials: Trials, step: Step, small: Moved) -> Shift | None:
    """Find a stride among the constants, and the tensors whose pieces lie that far apart."""
    buffers = {key: value for key, value in step.arguments.items() if isinstance(value, Buffer) and value.size > 1}
    own = {key: _element_of(kernel, key) for key in buffers}
    for name, offset, width, number in _constants(step):
        if number < 2:
            continue
        for chosen in _pieces(buffers, own, number):
            shift = Shift(
                axis=0,
                units=1,
                unit=0,
                bytes={},
                words={name: ((offset, width, _APART),)},
                stretched={key: (number * element, _APART * element) for key, element in chosen.items()},
            )
            if trials.is_same(step, shift, small, (1, 3, 37)) and not _is_idle(trials, step, shift, small):
                return shift
    return None


def _pieces(
    buffers: Mapping[str | int, Buffer], own: Mapping[str | int, int], number: int
) -> Iterator[Mapping[str | int, int]]:
    """Yield which buffers may have pieces of so many elements, each with the bytes of an element: all, and all inputs,
    by their own elements; then for elements of each size one alone, and all."""
    mixed = {key: own[key] for key, each in buffers.items() if number * own[key] < each.size}
    inputs = {key: element for key, element in mixed.items() if buffers[key].role == "input"}
    yield from (each for each in (mixed, inputs) if len(set(each.values())) > 1)
    for element in (1, 2, 4, 8, 16):
        pieces = [key for key, each in buffers.items() if number * element < each.size]
        yield from ({key: element} for key in pieces)
        if len(pieces) > 1:
            yield dict.fromkeys(pieces, element)


def _raised(kernel: Kernel, trials: Trials, step: Step, small: Moved) -> Shift | None:
    """Find a buffer of indices, the tensor (or the tensors) that they point into, and the constant that is its
    length."""
    constants = [each for each in _constants(step) if each[3] > 0]
    lengths = list(dict.fromkeys([1, *(each[3] for each in constants)]))[:12]
    for index, held, width in _indices(kernel, step):
        for moves in _pointed(kernel, step, small, index, _rows_of(held, width), lengths):
            for grown in ({}, *({name: ((at, size, 1),)} for name, at, size, _ in constants)):
                shift = Shift(
                    axis=0, units=1, unit=0, bytes=moves, words=grown, values={index: every(held.size, width, 1)}
                )
                if trials.is_same(step, shift, small, (1, 3, 37)) and not _is_idle(trials, step, shift, small):
                    return shift
    return None


def _pointed(
    kernel: Kernel, step: Step, small: Moved, index: str | int, rows: int, lengths: Sequence[int]
) -> Iterator[Mapping[str | int, int]]:
    """Yield which tensors may have the rows that indices name, each with the bytes of a row: one alone; then all that
    are written, these with one that is read, and with all that are read and as long.

    Args:
        rows: how many rows there are, if the highest index is that of the last one; 0 if that cannot be.
    """
    own = {key: _element_of(kernel, key) for key in step.arguments}
    buffers = {key: each for key, each in step.arguments.items() if isinstance(each, Buffer) and key != index}

    def row_of(key: str | int) -> list[int]:
        elements = buffers[key].size // own[key]
        return [elements // rows] if 0 < rows <= elements and elements % rows == 0 else []

    for key in buffers:
        yield from ({key: row * own[key]} for row in [*row_of(key), *lengths])
    written = [key for key, left in small.contents.items() if left != _before(step, key)]
    read = [key for key, each in buffers.items() if each.role == "input"]
    alike = [key for key in read if buffers[key].size == max((buffers[each].size for each in written), default=0)]
    for chosen in (written, *([*written, key] for key in read), [*written, *alike]):
        if len(chosen) > 1:
            if all(map(row_of, chosen)):
                yield {key: row_of(key)[0] * own[key] for key in chosen}
            yield from ({key: row * own[key] for key in chosen} for row in lengths)


def _indices(kernel: Kernel, step: Step) -> Iterator[tuple[str | int, Buffer, int]]:
    """Yield the buffers that may hold indices, each with the bytes of one.

    Where there is a table of addresses they are behind it, of 64 bits: the only one there.
    """
    tables = {str(key): value for key, value in step.arguments.items() if isinstance(value, Addresses)}
    for key, held in memory_of(step).items():
        table = tables.get(str(key).partition("+")[0])
        if tables and (table is None or len(table.places) != 1):
            continue
        width = 8 if table else _INTEGERS.get(_type_of(kernel, key), 0)
        if held.data and held.role == "input" and width and held.size % width == 0:
            yield key, held, width


def _rows_of(index: Buffer, width: int) -> int:
    """Return how many rows there are, if the highest index is that of the last row; 0 if it is negative."""
    numbers = [int.from_bytes(index.data[at : at + width], "little", signed=True) for at in range(0, index.size, width)]
    return max(max(numbers) + 1, 0)


def _is_idle(trials: Trials, step: Step, shift: Shift, small: Moved) -> bool:
    """Return whether the tensors may as well stay where they are: then the constants have no effect on them."""
    still = replace(shift, bytes={}, stretched={}, units=37)
    try:
        moved = trials.run(step, still)
    except WrongBinding:
        return False
    return moved.trouble is None and moved.contents == small.contents


def _type_of(kernel: Kernel, key: str | int) -> str:
    return next((each.type for each in kernel.metadata.arguments if key in (each.name, each.index)), "")


def _element_of(kernel: Kernel, key: str | int) -> int:
    return next((each.element or 1 for each in kernel.metadata.arguments if key in (each.name, each.index)), 1)
