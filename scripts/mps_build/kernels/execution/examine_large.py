"""One kernel on tensors past 2**31 and 2**32: candidates from its code, proved or cleared by running it there.

A contract's own small case is moved along its grid: the same threadgroups, at numbers at which the elements' offsets
pass the limit, over buffers that are as large and of which only the touched pages exist. The results must be those of
the small case. How far each buffer moves with a threadgroup, and which lengths grow, is found by trying, and held
against a case that is moved a little, so that a kernel that cannot be moved is never called wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..families.shared.contracts import Case, Kernel, find_binder
from ..machine.runner import Runner
from ..machine.shift import Moved, Shift
from ..machine.sparse import largest_size
from ..program.errors import NotBound, WrongBinding
from ..program.launch import Buffer, Step
from .examine import Verdict

LIMITS = ((1 << 31, "2**31"), (1 << 32, "2**32"))
_ASK_THE_HOST = "whether torch launches it at that size was not asked"
_TRIES = 400
_UNITS = 10
# Longer constants are structs with many numbers; the lengths stand among the first.
_LONGEST = 400
# Their iterators cut tensors so that every offset fits 31 bits (at::TensorIterator::with_32bit_indexing).
_CUT_BY_HOST = ("unary.", "binary.")
_TWINS = (("u32", "u64"), ("uint32_t", "uint64_t"), ("int32_t", "int64_t"), ("i32", "i64"))


def examine_large(kernel: Kernel, case: Case | None, device: Runner, narrow: Sequence[str], names: set[str]) -> Verdict:
    """Return `passed` for a kernel that is right past the limits, what it does where it is not, else a candidate.

    Args:
        narrow: the 32-bit arithmetic that reaches an address (code/addresses.py).
        names: of all kernels of the library.
    """
    if not narrow:
        return Verdict(outcome="passed", reason="no 32-bit arithmetic reaches an address: nothing can wrap")
    shown = f"{len(narrow)} values of 32 bits reach an address, first `{narrow[0]}`"
    if kernel.contract is None or case is None:
        return Verdict(outcome="overflow_candidate", reason=f"{shown}; no contract has its signature")
    try:
        found = _movable(kernel, case, device)
    except (NotBound, WrongBinding) as error:
        return Verdict(outcome="overflow_candidate", reason=f"{shown}; it cannot be asked: {error}")
    if found is None:
        is_cut = kernel.contract.binder.startswith(_CUT_BY_HOST)
        who = "; torch cuts such tensors before it launches this family" if is_cut else ""
        return Verdict(
            outcome="overflow_candidate", reason=f"{shown}; none of its cases can be shifted along its grid{who}"
        )
    step, shift, label = found
    return _beyond(kernel, step, shift, label, device, names)


def _movable(kernel: Kernel, case: Case, device: Runner) -> tuple[Step, Shift, str] | None:
    """Return a case of the contract that can be moved, and how."""
    assert kernel.contract is not None
    for program in itertools.islice(find_binder(kernel.contract.binder)(kernel, case), 6):
        step = _alone(program.steps, kernel.name)
        if step is None:
            continue
        if step.free and not device.codes[kernel.name].is_cooperative:
            step = replace(step, threadgroup=(1, 1, 1))  # the finest grid: every thread can be moved
        small = device.run_shifted(step, Shift(axis=0, units=0, bytes={}))
        if small.trouble is not None or not small.contents:
            continue
        for axis in range(3):
            count = -(-step.grid[axis] // step.threadgroup[axis])
            for unit in _units(count):
                if (shift := _learnt(device, step, axis, unit, count // unit, small)) is not None:
                    return step, shift, program.label
    return None


def _units(count: int) -> list[int]:
    """Return by how many threadgroups a launch may be moved: one, or as many as an outer dimension's step takes.

    >>> _units(30), _units(7), _units(1)
    ([1, 2, 3, 5, 6, 10, 15], [1], [])
    """
    return [each for each in range(1, count // 2 + 1) if each == 1 or count % each == 0][:_UNITS]


def _alone(steps: Sequence[Step], name: str) -> Step | None:
    """Return the first launch of a kernel that needs nothing of what earlier launches left."""
    left: set[int] = set()
    for step in steps:
        buffers = {
            id(value) for value in step.arguments.values() if isinstance(value, Buffer) and value.role != "input"
        }
        if step.kernel == name:
            return None if buffers & left else step
        left |= buffers
    return None


def _learnt(device: Runner, step: Step, axis: int, unit: int, count: int, small: Moved) -> Shift | None:
    """Find how far each buffer moves with a unit: as far as the outputs do, each by its own size, or not."""
    outputs = _steps_of_outputs(device, step, axis, unit, small)
    if not outputs:
        return None
    key = max(outputs, key=lambda each: outputs[each])
    value = step.arguments[key]
    assert isinstance(value, Buffer)
    moves: dict[str | int, list[int]] = {}
    for name, other in step.arguments.items():
        if isinstance(other, Buffer) and name not in outputs and other.data:
            moves[name] = [*_strides(other.size, outputs[key], value.size, count), 0]
    words = list(_lengths(step, outputs[key], value.size, count))
    tries = itertools.product(_choices(words), itertools.product(*moves.values()))
    for grown, chosen in itertools.islice(tries, _TRIES):
        shift = Shift(
            axis=axis, units=3, unit=unit, bytes={**outputs, **dict(zip(moves, chosen, strict=True))}, words=grown
        )
        if all(_is_same(device, step, replace(shift, units=each), small) for each in (3, count, 37)):
            return shift
    return None


def _strides(size: int, by: int, whole: int, count: int) -> list[int]:
    """Return how far a buffer may move with a unit: in proportion to the output, or with a gap after each unit's part.

    >>> _strides(60, 180, 360, 2), _strides(124, 16, 76, 5)
    ([30], [28])
    """
    if size * by % whole == 0:
        return [size * by // whole]
    least, most = -(-size // count), (size - 1) // max(count - 1, 1)
    return [each for each in range(least, most + 1) if each % 4 == size % 4 == 0 or size % 4][:2]


def _steps_of_outputs(device: Runner, step: Step, axis: int, unit: int, small: Moved) -> dict[str | int, int]:
    """Return how far apart two neighbouring units write, in each output that is written at all."""
    first, second = (
        device.run_shifted(step, Shift(axis=axis, units=0, bytes={}), groups=(number,)) for number in (0, unit)
    )
    found = {}
    for key in small.contents:
        untouched = _before(step, key)
        places = [
            next((i for i, (a, b) in enumerate(zip(each.contents[key], untouched, strict=True)) if a != b), None)
            for each in (first, second)
        ]
        if places[0] is not None and places[1] is not None and places[1] > places[0]:
            found[key] = places[1] - places[0]
    return found


def _before(step: Step, key: str | int) -> bytes:
    value = step.arguments[key]
    assert isinstance(value, Buffer)
    return value.data or b"\xa5" * value.size


def _lengths(step: Step, by: int, size: int, count: int) -> Iterator[tuple[str | int, tuple[int, int, int]]]:
    """Yield words of constants that may be lengths of what grows: argument, (offset, bytes, growth)."""
    for name, value in step.arguments.items():
        if not isinstance(value, bytes) or len(value) > _LONGEST:
            continue
        for width in (4, 8):
            for offset in range(0, len(value) - width + 1, width):
                number = int.from_bytes(value[offset : offset + width], "little")
                if not 1 < number <= size:
                    continue
                if number * by % size == 0:
                    yield name, (offset, width, number * by // size)
                elif number % count == 0:
                    yield name, (offset, width, number // count)


def _choices(
    words: Sequence[tuple[str | int, tuple[int, int, int]]],
) -> list[Mapping[str | int, tuple[tuple[int, int, int], ...]]]:
    """No length grows, or one of them, or two."""
    found: list[Mapping[str | int, tuple[tuple[int, int, int], ...]]] = [{}]
    found += [{name: (word,)} for name, word in words]
    for (one, first), (other, second) in itertools.combinations(words[:6], 2):
        found.append({one: (first, second)} if one == other else {one: (first,), other: (second,)})
    return found


def _is_same(device: Runner, step: Step, shift: Shift, small: Moved) -> bool:
    try:
        moved = device.run_shifted(step, shift)
    except WrongBinding:
        return False
    return moved.trouble is None and moved.contents == small.contents


def _beyond(kernel: Kernel, step: Step, shift: Shift, label: str, device: Runner, names: set[str]) -> Verdict:
    """Run at each limit; the first at which it is not as it was decides."""
    small = device.run_shifted(step, Shift(axis=0, units=0, bytes={}))
    right: list[str] = []
    for units, text in _targets(kernel, step, shift):
        at = replace(shift, units=units)
        try:
            moved = device.run_shifted(step, at)
        except WrongBinding:
            continue  # no launch has so many threads, no length so many bits, or no buffer fits here
        if moved.trouble is None and moved.contents == small.contents:
            right.append(text)
            continue
        return _failed(kernel, label, names, moved, text, right)
    if not right:
        return Verdict(outcome="overflow_candidate", reason="its cases are too small to reach 2**31 bytes")
    return Verdict(outcome="passed", reason=f"right {', '.join(right)}", inputs={"case": label, "moved": right[-1]})


def _targets(kernel: Kernel, step: Step, shift: Shift) -> list[tuple[int, str]]:
    """Return how many units to move by, smallest first: across each limit, and past it."""
    count = -(-step.grid[shift.axis] // (step.threadgroup[shift.axis] * shift.unit))
    largest = max(shift.bytes, key=lambda name: shift.bytes[name])
    argument = next(each for each in kernel.metadata.arguments if largest in (each.name, each.index))
    by, element = shift.bytes[largest], argument.element or 1
    targets: dict[int, str] = {}
    for limit, text in LIMITS:
        for size, unit in ((1, "bytes"), (element, "elements")):
            across = limit * size // by - count // 2
            if across > 0 and (across + count) * by < largest_size():
                targets.setdefault(across - 2 * count, f"below {text} {unit} of {argument.name}")
                targets.setdefault(across, f"across {text} {unit} of {argument.name}")
                targets.setdefault(across + count, f"past {text} {unit} of {argument.name}")
    return sorted(targets.items())


def _failed(kernel: Kernel, label: str, names: set[str], moved: Moved, text: str, right: Sequence[str]) -> Verdict:
    what = moved.trouble.text if moved.trouble else "its results are not those of the same rows of a small tensor"
    where: dict[str, object] = {"sizes": {str(key): size for key, size in moved.sizes.items()}}
    if moved.trouble:
        where |= {"thread": list(moved.trouble.thread), **moved.trouble.where}
    if not right:  # nothing can wrap there: the case was moved wrongly, and says nothing of the kernel
        reason = f"its cases cannot be moved far: {text}, {what}"
        return Verdict(outcome="overflow_candidate", reason=reason, inputs={"case": label})
    until = f"right {', '.join(right)}; "
    twin = _twin(kernel.name, names)
    assert kernel.contract is not None
    if twin is not None or (kernel.contract.binder.startswith(_CUT_BY_HOST) and right):
        who = f"{twin} is for larger tensors" if twin else "torch cuts such tensors before it launches this family"
        return Verdict(outcome="passed", reason=f"{until}not {text}: {who}", inputs={"case": label}, where=where)
    return Verdict(
        outcome="out_of_bounds" if moved.trouble else "wrong",
        reason=f"{until}not {text}: {what} ({_ASK_THE_HOST})",
        inputs={"case": label, "moved": text},
        where=where,
    )


def _twin(name: str, names: set[str]) -> str | None:
    """Return the kernel of 64-bit offsets that the library has beside one of 32-bit offsets.

    >>> _twin("softmax_row_float_u32", {"softmax_row_float_u64"}), _twin("softmax_row_float_u64", {"x"})
    ('softmax_row_float_u64', None)
    """
    found = (f"_{name}_".replace(f"_{narrow}_", f"_{wide}_")[1:-1] for narrow, wide in _TWINS)
    return next((each for each in found if each != name and each in names), None)
