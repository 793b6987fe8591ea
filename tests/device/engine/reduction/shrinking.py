"""What a device answers to a program of calls, and the smallest program to which it still answers wrongly."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass, replace
from typing import Any, Callable, ContextManager, Iterator

import torch

from .steps import Device, Inexpressible, Input, Program, Ref, Step, leaves, mapped

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


def isolated(program: Program, fault: Fault) -> Program | None:
    """Return the call at fault with its arguments as inputs; None where it needs more than their values."""
    step = program.steps[fault.step]
    if step.name.startswith("torch.autograd") or step.name.rpartition(".")[2] in ("backward", "__get__", "__set__"):
        return None
    names = _values_before(program, fault.step)
    inputs: dict[str, Input] = {}
    steps: list[Step] = []
    renamed: dict[str, str] = {}
    for ref in step.refs():
        if ref.text in renamed:
            continue
        value = eval(ref.text, names)
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
            return None
        renamed[ref.text] = _as_input(value.detach(), inputs, steps)

    def change(one: Any) -> Any:
        return Ref(renamed[one.text]) if isinstance(one, Ref) else one

    result = "out" if step.result else ""
    steps.append(
        Step(result, step.name, mapped(step.args, change), mapped(step.kwargs, change), step.changes, step.under)
    )
    answer = fault.answer
    if step.result and Ref(answer).name == step.result:
        answer = result + answer[len(step.result) :]
    elif answer in renamed:
        answer = renamed[answer]
    elif not fault.answer:
        answer = result or next((one.text for one in leaves([steps[-1].args]) if isinstance(one, Ref)), "")
    else:
        return None
    return Program(inputs, tuple(steps), (answer,), program.factor)


def _values_before(program: Program, place: int) -> dict[str, Any]:
    names: dict[str, Any] = {"torch": torch, "device": torch.device("cpu"), "cast": lambda dtype: dtype}
    names.update({name: one.value.clone() for name, one in program.inputs.items()})
    for step in program.steps[:place]:
        exec(step.text(), names)  # our own recording of our own suite
    return names


def _as_input(value: torch.Tensor, inputs: dict[str, Input], steps: list[Step]) -> str:
    """Add an input, its way to the device and its view there; return the view's name."""
    number = len(inputs)
    name, moved, view = f"x{number}", f"d{number}", f"v{number}"
    shape, strides, offset = tuple(value.shape), value.stride(), value.storage_offset()
    if value.numel() == 0 or (value.is_contiguous() and not offset):
        inputs[name] = Input(value.clone())
        steps.append(Step(moved, "torch.Tensor.to", (Ref(name), Device()), {}))
        return moved
    length = offset + 1 + sum((side - 1) * step for side, step in zip(shape, strides))
    inputs[name] = Input(value.as_strided((length,), (1,), 0).clone())
    steps.append(Step(moved, "torch.Tensor.to", (Ref(name), Device()), {}))
    steps.append(Step(view, "torch.Tensor.as_strided", (Ref(moved), shape, strides, offset), {}))
    return view


# Their elements are not defined, or what they leave is no number.
_UNDEFINED = ("empty", "resize", "empty_like", "new_empty", "empty_strided", "new_empty_strided")


@dataclass(frozen=True)
class Fault:
    """What is wrong: after which step, in which value, and in words."""

    step: int
    answer: str
    effect: str


class Asker:
    """Runs programs on one device, with a fault around if there is one."""

    def __init__(
        self, device: torch.device, around: Callable[[], ContextManager[Any]] = contextlib.nullcontext
    ) -> None:
        self.device = device
        self.around = around

    def first_fault(self, program: Program) -> Fault | None:
        """Return the first value that is wrong on the device; None where all are right, or the CPU cannot say.

        The order is that of the steps; then come the inputs and values that later steps changed.
        """
        same = _run(program, torch.device("cpu"), wide=False)
        if isinstance(same[-1], Exception):
            return None
        wide = _run(program, torch.device("cpu"), wide=True)
        torch.manual_seed(1)
        again = _run(program, torch.device("cpu"), wide=False)
        with self.around():
            got = _run(program, self.device, wide=False)
        for place, mine in enumerate(got):
            if isinstance(mine, Exception):
                if place >= len(program.steps):
                    return None
                return Fault(place, "", f"raises {type(mine).__name__}: {' '.join(str(mine).split())[:150]}")
            for text, value in mine.items():
                if program.answers and text not in program.answers:
                    continue
                if _undefined(program, place) or not _equal(same[place][text], again[place][text]):
                    continue
                exact = wide[place].get(text) if place < len(wide) and isinstance(wide[place], dict) else None
                found = wrong(value, same[place][text], exact, program.factor)
                if found:
                    return Fault(min(place, len(program.steps) - 1), text, found)
        return None


def _undefined(program: Program, place: int) -> bool:
    if place >= len(program.steps):
        return False
    return program.steps[place].name.rpartition(".")[2].rstrip("_") in _UNDEFINED


def _run(program: Program, device: torch.device, *, wide: bool) -> list[Any]:
    """Return, for each step, its tensors by expression; then all values at the end; an exception ends the list."""

    def cast(dtype: torch.dtype) -> torch.dtype:
        return widest(dtype) if wide else dtype

    names: dict[str, Any] = {"torch": torch, "device": device, "cast": cast}
    found: list[Any] = []
    for name, given in program.inputs.items():
        value = given.value.clone()
        names[name] = value.to(widest(value.dtype)) if wide else value
    try:
        for step in program.steps:
            exec(step.text(), names)  # our own recording of our own suite
            watched = [step.result] if step.result else []
            if step.changes:
                watched += [ref.text for ref in step.refs()]
            found.append({text: one for name in watched for text, one in _snapshot(name, eval(name, names))})
        every = [*program.inputs, *(step.result for step in program.steps if step.result)]
        found.append({text: one for name in every for text, one in _snapshot(name, names[name])})
    except Exception as raised:
        found.append(raised)
    return found


def _snapshot(text: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            value = value.to_dense()
        return [(text, value.detach().cpu().clone())]
    if isinstance(value, (tuple, list)):
        return [pair for number, one in enumerate(value) for pair in _snapshot(f"{text}[{number}]", one)]
    return []


def widest(dtype: torch.dtype) -> torch.dtype:
    """Return float64 or complex128 for what is floating; whole numbers stay."""
    return torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else dtype


def wrong(got: torch.Tensor, same: torch.Tensor, wide: Any, factor: float) -> str:
    """Return what is wrong with an answer, or an empty text: within the bound of float64, or of the CPU's answer."""
    if got.shape != same.shape:
        return f"has the shape {tuple(got.shape)}, the CPU gives {tuple(same.shape)}"
    if got.dtype != same.dtype:
        return f"is {str(got.dtype)[6:]}, the CPU gives {str(same.dtype)[6:]}"
    if not (got.is_floating_point() or got.is_complex()):
        count = int(got.ne(same).sum())
        return f"has {count} of {got.numel()} elements wrong" if count else ""
    wants = [same] if wide is None or wide.shape != same.shape else [wide, same]
    offs = [_off(got, want) for want in wants]
    own = _off(same, wants[0])
    scale = _scale(wants[0])
    allowed = factor * torch.finfo(got.dtype).eps * scale
    if math.isfinite(own):
        allowed = max(allowed, 8 * own)
    if min(offs) <= allowed:
        return ""
    if math.isinf(offs[0]):
        return "has NaN or infinity where it should not, or not where it should"
    return f"is off by {offs[0]:.3g} of {scale:.3g}"


def _off(got: torch.Tensor, want: torch.Tensor) -> float:
    """Return the largest difference; infinity where NaN or infinities lie elsewhere."""
    if got.numel() == 0:
        return 0.0
    if got.is_complex():
        got, want = torch.view_as_real(got.resolve_conj()), torch.view_as_real(want.resolve_conj())
    mine, rounded = got.double(), want.to(got.dtype).double()
    special = ~(torch.isfinite(mine) & torch.isfinite(rounded))
    equal = (mine == rounded) | (torch.isnan(mine) & torch.isnan(rounded))
    if bool((special & ~equal).any()):
        return math.inf
    gap = (mine - rounded).abs()[~special]
    return float(gap.max()) if gap.numel() else 0.0


def _scale(want: torch.Tensor) -> float:
    finite = want.abs().double()
    finite = finite[torch.isfinite(finite)]
    return float(finite.max()) if finite.numel() else 0.0


def _equal(one: torch.Tensor, two: torch.Tensor) -> bool:
    if torch.equal(one, two):
        return True
    return one.shape == two.shape and bool(((one == two) | (one.ne(one) & two.ne(two))).all())


_WAITS = 4  # a device that works while the processor waits may take so many times as long


class Budget:
    """So many seconds of this process's own work: where the machine is busy, the script is none the worse for it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._work = time.process_time() + seconds
        self._wall = time.monotonic() + _WAITS * seconds

    @property
    def is_over(self) -> bool:
        """Say whether nothing more should be tried."""
        return time.process_time() > self._work or time.monotonic() > self._wall

    def rest(self) -> Budget:
        """Return what is left, at least a quarter of the whole."""
        return Budget(max(self._work - time.process_time(), self.seconds / 4))
