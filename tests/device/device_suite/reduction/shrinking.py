"""Cuts a program down to what still fails: fewer steps, smaller sides, plainer values, as long as a predicate holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Iterator

import torch

from .budget import Budget
from .steps import Inexpressible, Input, Program, Ref, leaves, mapped

LITERAL = 24  # values that a script writes out
Predicate = Callable[[Program], bool]


class Shrinker:
    """Tries smaller programs until none fails or the time is over."""

    def __init__(self, fails: Predicate, budget: Budget) -> None:
        self._ask, self._budget = fails, budget
        self._seen: dict[str, bool] = {}

    def shrink(self, program: Program) -> Program:
        """Return the smallest program found; what is large in it is drawn from a seed, where that still fails."""
        before = ""
        while before != (before := _key(program)):
            program = self._without_steps(program)
            program = self._smaller(program)
            if self._budget.is_over:
                break
        return self._plainer(program)

    def _fails(self, program: Program) -> bool:
        if self._budget.is_over:
            return False
        key = _key(program)
        if key not in self._seen:
            try:
                self._seen[key] = self._ask(program)
            except Inexpressible:
                self._seen[key] = False
        return self._seen[key]

    def _without_steps(self, program: Program) -> Program:
        size = max(len(program.steps) // 2, 1)
        while True:
            begin = len(program.steps) - size
            while begin > -size:
                kept = program.steps[: max(begin, 0)] + program.steps[begin + size :]
                smaller = replace(program, steps=kept).used()
                if len(kept) < len(program.steps) and self._fails(smaller):
                    program = smaller
                begin -= size
            if size == 1:
                return program
            size //= 2

    def _smaller(self, program: Program) -> Program:
        """Give each side that is not 1 a smaller size, wherever the number stands."""
        for side in sorted(_sides(program), reverse=True):
            for smaller in _less(side):
                made = _resized(program, side, smaller)
                if made is not None and self._fails(made):
                    program = made
                    break
        for name in list(program.inputs):  # one side of one input
            for axis in range(program.inputs[name].value.dim()):
                for smaller in _less(program.inputs[name].value.shape[axis]):
                    made = program.with_input(name, Input(_cut(program.inputs[name].value, axis, smaller)))
                    if self._fails(made):
                        program = made
                        break
        return program

    def _plainer(self, program: Program) -> Program:
        for name in list(program.inputs):
            for value in _plain_values(program.inputs[name].value):
                made = program.with_input(name, value)
                if self._fails(made):
                    program = made
                    break
        return program


def slice_of(program: Program, answers: tuple[str, ...], last: int) -> Program:
    """Return the steps up to `last` that the answers need; what changes a needed value, or a view of it, is needed.

    A `backward` changes all that its own value was made of: the gradients lie there.
    """
    steps = program.steps[: last + 1]
    root: dict[str, str] = {}
    behind: dict[str, set[str]] = {}
    for step in steps:
        names = [ref.name for ref in step.refs()]
        if step.result and names:
            root[step.result] = root.get(names[0], names[0])
            behind[step.result] = {*names, *(one for name in names for one in behind.get(name, ()))}
    needed = {Ref(one).name for one in answers}
    kept: set[int] = set()
    while True:
        count = len(kept)
        roots = {root.get(name, name) for name in needed}
        for place in reversed(range(len(steps))):
            step = steps[place]
            touched = [ref.name for ref in step.refs()]
            reached = {*touched, *(one for name in touched for one in behind.get(name, ()) if step.is_backward)}
            changed = step.changes and any(root.get(name, name) in roots for name in reached)
            if place not in kept and (step.result in needed or changed):
                kept.add(place)
                needed |= set(touched)
        if len(kept) == count:
            return replace(program, steps=tuple(steps[place] for place in sorted(kept)), answers=answers).used()


def written_out(program: Program) -> Program:
    """Return the program with large inputs drawn from a seed: a device is not there to ask what still fails."""
    for name, given in program.inputs.items():
        if given.value.numel() > LITERAL:
            program = program.with_input(name, _drawn(given.value))
    return program


def _key(program: Program) -> str:
    inputs = [f"{key}:{tuple(one.value.shape)}:{one.drawn}:{_short(one.value)}" for key, one in program.inputs.items()]
    return "\n".join([*inputs, *program.body()])


def _short(value: torch.Tensor) -> str:
    return str(value.flatten()[:LITERAL].tolist())


def _sides(program: Program) -> set[int]:
    found = {side for one in program.inputs.values() for side in one.value.shape}
    for step in program.steps:
        found |= {one for one in leaves([step.args, step.kwargs]) if type(one) is int}
    return {side for side in found if side > 1}


def _less(side: int) -> Iterator[int]:
    tried = []
    for smaller in (1, 2, 3, side // 4, side // 2, side - 1):
        if 0 < smaller < side and smaller not in tried:
            tried.append(smaller)
            yield smaller


def _resized(program: Program, side: int, smaller: int) -> Program | None:
    def change(one: Any) -> Any:
        return smaller if type(one) is int and one == side else one

    inputs = {}
    for name, given in program.inputs.items():
        value = given.value
        for axis, length in enumerate(value.shape):
            if length == side:
                value = _cut(value, axis, smaller)
        inputs[name] = Input(value)
    steps = tuple(
        replace(step, args=mapped(step.args, change), kwargs=mapped(step.kwargs, change)) for step in program.steps
    )
    return replace(program, inputs=inputs, steps=steps)


def _cut(value: torch.Tensor, axis: int, length: int) -> torch.Tensor:
    return value.narrow(axis, 0, min(length, value.shape[axis])).clone()


def _plain_values(value: torch.Tensor) -> Iterator[Input]:
    """Yield simpler values, the simplest first; whole ones and short ones are easier to read and to send."""
    count = value.numel()
    if value.dtype == torch.bool or not count:
        if count > LITERAL:
            yield _drawn(value)
        return
    if count > LITERAL:
        yield _drawn(value)
        return
    steps = torch.arange(1, count + 1).reshape(value.shape)
    yield Input(steps.to(value.dtype))
    if value.is_floating_point():
        yield Input((steps / 2 - count // 4).to(value.dtype))
        for digits in (10.0, 1000.0):
            yield Input(((value.double() * digits).round() / digits).to(value.dtype))


def _drawn(value: torch.Tensor) -> Input:
    """Return an input of the same kind that a seed draws."""
    shape, dtype = tuple(value.shape), value.dtype
    seed = "generator=torch.Generator().manual_seed(0)"
    if dtype.is_floating_point or dtype.is_complex:
        base = "" if dtype in (torch.float32, torch.complex64) else f".to({dtype})"
        drawn = "torch.complex64" if dtype.is_complex else "torch.float32"
        text = f"torch.randn({shape}, {seed}, dtype={drawn}){base}"
        finite = value.abs()[torch.isfinite(value.abs())]
        if not dtype.is_complex and finite.numel() and bool((value[torch.isfinite(value)] >= 0).all()):
            text += ".abs()"
    elif dtype == torch.bool:
        text = f"torch.randint(0, 2, {shape}, {seed}).bool()"
    else:
        low, high = int(value.min()), int(value.max())
        flat = value.flatten()
        if len(flat.unique()) == len(flat) and high - low == len(flat) - 1:
            text = f"(torch.randperm({len(flat)}, {seed}) + {low}).reshape({shape}).to({dtype})"
        else:
            text = f"torch.randint({low}, {min(high + 1, 2**63 - 1)}, {shape}, {seed}).to({dtype})"
    return Input(eval(text, {"torch": torch}), text)  # a text of this function
