"""Finds how a contract's small case becomes a large one, by trying, held against what the small case leaves.

Three ways: the same threadgroups further along the grid; a stride of some tensor longer, so that its pieces lie
further apart; every index of a buffer of indices higher, and the tensor that it points into longer. Where trying cannot
find it (numbers that count up, tensors behind a table of addresses), the case's binder states it. A way counts only if
what is left is the same after several small moves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..families.shared.contracts import Case, Kernel, find_binder
from ..machine.left import buffers_of
from ..machine.runner import Runner
from ..machine.shift import Moved, Shift
from ..program.launch import Addresses, Buffer, Program, Step, Value
from .ways import MOST_RUNS, STATED, STILL, WAYS, Exhausted, Trials, shift_of, stated

_PROGRAMS = 6
# Where so many kernels of a family could not be made large, the next are tried less.
_IN_VAIN, _FEW_RUNS = 3, 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A case of a contract, one launch of it, and how that becomes large."""

    program: Program
    step: Step
    shift: Shift
    small: Moved


@dataclass(slots=True)
class Ways:
    """What has made the kernels of each family large so far: the case's number, and the way; how often nothing did."""

    found: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    in_vain: dict[str, int] = field(default_factory=dict)


def any_move(_: Move) -> bool:
    """Take every way."""
    return True


def moves_of(
    kernel: Kernel,
    case: Case,
    device: Runner,
    ways: Ways,
    fits: Callable[[Move], bool] = any_move,
    tried: Sequence[str] = (),
    most: int = 2,
) -> Iterator[Move]:
    """Yield up to so many ways in which a kernel's cases become large, each of another kind or along another axis.

    What worked for another kernel of its form is tried first, and alone if it works.

    Args:
        fits: whether a way leads to launches that are to be tested.
        tried: the ways that are tried; empty: all.

    Raises:
        NotBound, WrongBinding: no case can be made.
    """
    assert kernel.contract is not None
    family, found = kernel.contract.family, []
    trials = Trials(device, _FEW_RUNS if ways.in_vain.get(family, 0) >= _IN_VAIN else MOST_RUNS)
    try:
        cases = list(_cases(kernel, case, trials))
        for number, way in ways.found.get(family, ()):
            same = [each for each in cases if each[0] == number]
            for each, move in _moves(kernel, same, trials, [way], fits):
                found.append(each)
                yield move
        if found:
            return
        are_stated = any(program.growth for _, program, _, _ in cases)
        for each, move in _moves(kernel, cases, trials, tried or ((STATED,) if are_stated else WAYS), fits):
            found.append(each)
            yield move
            if len(found) == most:
                break
    except Exhausted:
        pass
    if found:  # not after a finding, which ends the search for other ways
        ways.found[family] = found
    else:
        ways.in_vain[family] = ways.in_vain.get(family, 0) + 1


def _cases(kernel: Kernel, case: Case, trials: Trials) -> Iterator[tuple[int, Program, Step, Moved]]:
    """Yield the cases that can stand alone: number, program, the launch, and what it leaves as it is."""
    assert kernel.contract is not None
    programs = find_binder(kernel.contract.binder)(kernel, case)
    for number, program in enumerate(itertools.islice(programs, _PROGRAMS)):
        step = alone(program, kernel.name, trials.device)
        if step is None:
            continue
        if step.free and not trials.device.codes[kernel.name].is_cooperative:
            step = replace(step, threadgroup=(1, 1, 1))  # the finest grid: every thread can be moved
        small = trials.run(step, STILL)
        if small.trouble is None and small.contents:
            yield number, program, step, small


def _moves(
    kernel: Kernel,
    cases: Sequence[tuple[int, Program, Step, Moved]],
    trials: Trials,
    ways: Sequence[str],
    fits: Callable[[Move], bool],
) -> Iterator[tuple[tuple[int, str], Move]]:
    done: set[str] = set()
    for number, program, step, small in cases:
        for way in ways:
            move = None if way in done else _move(kernel, program, step, small, trials, way)
            if move is not None and fits(move):
                done.add(way)
                yield (number, way), move


def _move(kernel: Kernel, program: Program, step: Step, small: Moved, trials: Trials, way: str) -> Move | None:
    if way == STATED:
        found = stated(step, trials, program.growth) if program.growth else None
        return Move(program=program, step=step, shift=found[0], small=found[1]) if found else None
    shift = shift_of(kernel, step, small, trials, way)
    return Move(program=program, step=step, shift=shift, small=small) if shift else None


def alone(program: Program, name: str, device: Runner) -> Step | None:
    """Return the first launch of a kernel; what earlier launches leave is there before it.

    None if the program does not launch it, or a table of addresses holds what earlier launches leave.
    """
    place = next((number for number, step in enumerate(program.steps) if step.kernel == name), None)
    if place is None:
        return None
    step, earlier = program.steps[place], replace(program, steps=program.steps[:place])
    if not place:
        return step
    left, contents = device.left_by(earlier, ())
    if any(launch.is_trouble for launch in left.launches):
        return None
    changing = [each for each in buffers_of(earlier) if each.role != "input"]
    held = {id(buffer): data for buffer, data in zip(changing, contents, strict=True)}
    tables = [value for value in step.arguments.values() if isinstance(value, Addresses)]
    if any(id(buffer) in held for table in tables for buffer in table.places.values()):
        return None
    return replace(step, arguments={key: _with(value, held) for key, value in step.arguments.items()})


def _with(value: Value, held: Mapping[int, bytes]) -> Value:
    """Return a buffer that begins as earlier launches left it."""
    return replace(value, data=held[id(value)]) if isinstance(value, Buffer) and id(value) in held else value
