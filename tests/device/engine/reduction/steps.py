"""A program of public calls as data: its inputs, its steps, what it answers, and each as Python text."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any, Callable

import torch
from torch.overrides import TorchFunctionMode

# What a number or a word of a call may be; anything else cannot be written out.
_WORDS = (bool, str, type(None), type(Ellipsis))
_BINARY = {"__getitem__": "{0}[{1}]", "__setitem__": "{0}[{1}] = {2}"}


class Inexpressible(Exception):
    """This case cannot be written as public calls; the message says why."""


@dataclass(frozen=True)
class Ref:
    """A value of the program, by the expression that names it: `x0`, `r3`, `r3[1]`."""

    text: str

    @property
    def name(self) -> str:
        """Return the variable."""
        return self.text.partition("[")[0]


@dataclass(frozen=True)
class Device:
    """The device under test, as an argument."""


@dataclass(frozen=True)
class Step:
    """One call: the variable that holds its result, the function's public name, its arguments."""

    result: str
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    changes: bool = False  # it changes what it is given
    under: tuple[str, ...] = ()  # the contexts that it is called in

    @property
    def is_backward(self) -> bool:
        """Say whether the step fills the gradients of what its value was made of."""
        return self.name.rpartition(".")[2] == "backward"

    def refs(self) -> list[Ref]:
        """Return the values that the step reads."""
        return [one for one in leaves([self.args, self.kwargs]) if isinstance(one, Ref)]

    def text(self) -> str:
        """Return the step as a line of Python."""
        kind, _, last = self.name.rpartition(".")
        args = [literal(one) for one in self.args]
        if last in ("__get__", "__set__"):
            field = f"{args[0]}.{kind.rpartition('.')[2]}"
            done = field if last == "__get__" else f"{field} = {args[1]}"
        elif kind == "torch.Tensor" and last in _BINARY and not self.kwargs:
            key = self.args[1]
            inner = ", ".join(index(one) for one in key) if isinstance(key, tuple) and key else index(key)
            done = _BINARY[last].format(args[0], inner, *args[2:])
        else:
            named = [f"{key}={literal(value)}" for key, value in self.kwargs.items()]
            if kind == "torch.Tensor" and self.args and isinstance(self.args[0], Ref):
                done = f"{args[0]}.{last}({', '.join(args[1:] + named)})"
            else:
                done = f"{self.name}({', '.join(args + named)})"
        line = f"{self.result} = {done}" if self.result else done
        return f"with {', '.join(self.under)}: {line}" if self.under else line


@dataclass(frozen=True)
class Input:
    """One tensor of the host: its values, and how it is written where they are drawn anew."""

    value: torch.Tensor
    drawn: str = ""

    def text(self) -> str:
        """Return the expression that makes it."""
        numbers = mapped(self.value.tolist(), self._shortened)
        return self.drawn or f"torch.tensor({literal(numbers)}, dtype={self.value.dtype})" + (
            f".reshape({tuple(self.value.shape)})" if self.value.numel() == 0 else ""
        )

    def _shortened(self, number: Any) -> Any:
        """Return the shortest number that is the same in the tensor's dtype."""
        if not isinstance(number, float):
            return number
        digits = {torch.float32: 9, torch.float16: 5, torch.bfloat16: 4}.get(self.value.dtype, 17)
        return next(
            (
                short
                for count in range(1, digits)
                if (short := float(f"{number:.{count}g}")) == number
                or torch.tensor(short, dtype=self.value.dtype).item() == number
            ),
            float(f"{number:.{digits}g}"),
        )


@dataclass(frozen=True)
class Program:
    """Inputs by name, steps in order, the expressions of what is compared, and how far that may be off."""

    inputs: dict[str, Input]
    steps: tuple[Step, ...]
    answers: tuple[str, ...] = ()
    factor: float = 16.0

    def body(self) -> list[str]:
        """Return the lines of the function that asks."""
        return [step.text() for step in self.steps]

    def with_input(self, name: str, value: Input) -> Program:
        """Return the program with another input."""
        return replace(self, inputs={**self.inputs, name: value})

    def used(self) -> Program:
        """Return the program without the inputs that nothing reads."""
        names = {ref.name for step in self.steps for ref in step.refs()} | {Ref(one).name for one in self.answers}
        return replace(self, inputs={key: one for key, one in self.inputs.items() if key in names})


def leaves(value: Any) -> list[Any]:
    """Return what lies in nested containers and slices, in order."""
    if isinstance(value, (tuple, list)):
        return [leaf for one in value for leaf in leaves(one)]
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in leaves(one)]
    if isinstance(value, slice):
        return leaves([value.start, value.stop, value.step])
    return [value]


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return nested containers with every leaf changed."""
    if isinstance(value, (tuple, list)):
        made = [mapped(one, change) for one in value]
        return tuple(made) if isinstance(value, tuple) else made
    if isinstance(value, dict):
        return {key: mapped(one, change) for key, one in value.items()}
    if isinstance(value, slice):
        return slice(mapped(value.start, change), mapped(value.stop, change), mapped(value.step, change))
    return change(value)


def index(value: Any) -> str:
    """Return an index as it stands between brackets."""
    if isinstance(value, slice):
        ends = ["" if one is None else literal(one) for one in (value.start, value.stop, value.step)]
        return ":".join(ends[: 3 if ends[2] else 2])
    return "..." if value is Ellipsis else literal(value)


def literal(value: Any) -> str:
    """Return a value as Python text.

    >>> literal((1, float("inf"), [True]))
    '(1, float("inf"), [True])'
    """
    if isinstance(value, Ref):
        return value.text
    if isinstance(value, Device):
        return "device"
    if isinstance(value, torch.dtype):
        wide = value.is_floating_point or value.is_complex
        return f"cast({value})" if wide else str(value)
    if isinstance(value, (float, complex)) and not isinstance(value, bool):
        return _number(value)
    if isinstance(value, (int, *_WORDS)):
        return repr(value)
    if isinstance(value, (torch.memory_format, torch.layout)):
        return str(value)
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return "{" + ", ".join(f"{key!r}: {literal(one)}" for key, one in value.items()) + "}"
    raise Inexpressible(f"an argument is a {type(value).__name__}")


def _number(value: Any) -> str:
    if isinstance(value, complex):
        return f"complex({_number(value.real)}, {_number(value.imag)})"
    return repr(value) if math.isfinite(value) else f'float("{value}")'


_HOMES = (
    ("torch", torch),
    ("torch.nn.functional", torch.nn.functional),
    ("torch.linalg", torch.linalg),
    ("torch.fft", torch.fft),
    ("torch.special", torch.special),
    ("torch.Tensor", torch.Tensor),
    ("torch.autograd", torch.autograd),
    ("torch.nn.utils", torch.nn.utils),
    ("torch.nn.init", torch.nn.init),
    ("torch._C._nn", torch._C._nn),
    ("torch._C._special", torch._C._special),
)
# Numbers that a host or a device draws: their result is an input, not a call.
_RANDOM = ("rand", "normal", "uniform", "bernoulli", "exponential", "cauchy", "geometric", "multinomial", "poisson")
_RANDOM_MORE = ("kaiming", "xavier", "trunc_normal", "orthogonal", "log_normal", "sparse_")
_SILENT = ("grad_fn", "is_leaf", "is_sparse", "_has_compatible", "_record_function", "retain_grad")
MOST_STEPS = 4000


class Recorder(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """Records while it is entered; several entries make one program."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device
        self.inputs: dict[str, Input] = {}
        self.steps: list[Step] = []
        self._names: dict[int, str] = {}
        self._held: list[Any] = []  # ids are reused otherwise

    def program(self, answers: tuple[str, ...] = ()) -> Program:
        """Return what was recorded so far."""
        return Program(dict(self.inputs), tuple(self.steps), answers)

    def name_of(self, tensor: torch.Tensor) -> str | None:
        """Return the expression of a tensor that was recorded."""
        return self._names.get(id(tensor))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = public_name(func)
        last = name.rpartition(".")[2]
        if not name or any(word in name for word in _SILENT):
            return func(*args, **kwargs)
        if last.startswith((*_RANDOM, *_RANDOM_MORE)):
            return self._drawn(func(*args, **kwargs))
        moves = last == "to" and any(isinstance(one, torch.device) for one in [*args[1:], *kwargs.values()])
        if moves and isinstance(args[0], torch.Tensor) and id(args[0]) not in self._names:
            self._input(args[0], stays=True)
        given, named = self._value(args), self._value(kwargs)
        result = func(*args, **kwargs)
        changes = _changes(last, kwargs) or getattr(getattr(func, "_schema", None), "is_mutable", False)
        if not changes and not _tensors(result):
            return result
        if len(self.steps) > MOST_STEPS:
            raise Inexpressible("it makes thousands of calls")
        known = isinstance(result, torch.Tensor) and id(result) in self._names and not moves
        variable = "" if known or not _tensors(result) else f"r{len(self.steps)}"
        self.steps.append(Step(variable, name, given, named, changes, _contexts(changes)))
        if variable:
            self._name(result, variable)
        return result

    def _drawn(self, result: Any) -> Any:
        for tensor in _tensors(result):
            self._names.pop(id(tensor), None)
        return result

    def _name(self, result: Any, text: str) -> None:
        if isinstance(result, torch.Tensor):
            self._names[id(result)] = text
            self._held.append(result)
        elif isinstance(result, (tuple, list)):
            for number, one in enumerate(result):
                self._name(one, f"{text}[{number}]")

    def _value(self, value: Any) -> Any:
        """Return an argument as the program holds it; a tensor that is new becomes an input."""
        if isinstance(value, torch.Tensor):
            return Ref(self._names.get(id(value)) or self._input(value))
        if isinstance(value, torch.device):
            return Device() if value.type == self._device.type else str(value)
        if isinstance(value, (tuple, list)) or value.__class__.__name__ == "odict_values":
            made = [self._value(one) for one in value]
            return made if isinstance(value, list) else tuple(made)
        if isinstance(value, dict):
            return {key: self._value(one) for key, one in value.items()}
        if isinstance(value, slice):
            return slice(self._value(value.start), self._value(value.stop), self._value(value.step))
        return value

    def _input(self, tensor: torch.Tensor, *, stays: bool = False) -> str:
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout != torch.strided:
            raise Inexpressible(f"a {tensor.layout} tensor of {type(tensor).__name__} comes from outside")
        with torch._C.DisableTorchFunction():
            value = tensor.detach()
            name, shape, strides = f"x{len(self.inputs)}", tuple(value.shape), value.stride()
            dense = value.is_contiguous() or value.numel() == 0
            if not dense:
                length = 1 + sum((side - 1) * step for side, step in zip(shape, strides))
                value = value.as_strided((length,), (1,))
            self.inputs[name] = Input(value.cpu().contiguous().clone())
            self._names[id(tensor)] = name
            self._held.append(tensor)
            if not stays and tensor.device.type == self._device.type:
                moved = f"d{name[1:]}"
                self.steps.append(Step(moved, "torch.Tensor.to", (Ref(name), Device()), {}))
                self._names[id(tensor)] = name = moved
            if not dense:
                view = f"v{name[1:]}"
                self.steps.append(Step(view, "torch.Tensor.as_strided", (Ref(name), shape, strides), {}))
                self._names[id(tensor)] = name = view
            if tensor.requires_grad:
                self.steps.append(Step("", "torch.Tensor.requires_grad_", (Ref(name),), {}, changes=True))
        return name


def _contexts(changes: bool) -> tuple[str, ...]:
    """Return the contexts of the call that is made now; without a gradient matters to what changes its input."""
    found = ["torch.no_grad()"] if changes and not torch.is_grad_enabled() else []
    if torch.is_autocast_cpu_enabled():  # the recording is made on the CPU
        found.append(f"torch.autocast(device.type, {torch.get_autocast_cpu_dtype()})")
    return tuple(found)


def _changes(last: str, kwargs: dict[str, Any]) -> bool:
    private = last.startswith("__")
    inplace = last.endswith("_") and not private
    return inplace or last in ("__setitem__", "__set__", "backward", "__iadd__") or "out" in kwargs


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for item in value for one in _tensors(item)] if isinstance(value, (tuple, list)) else []


@functools.lru_cache(maxsize=None)
def _public() -> dict[int, str]:
    found: dict[int, str] = {}
    for home, module in _HOMES:
        for name in dir(module):
            if name.startswith("__") and home != "torch.Tensor":
                continue
            found.setdefault(id(getattr(module, name, None)), f"{home}.{name}")
    return found


def public_name(func: Any) -> str:
    """Return the name by which a script can call a function, or an empty text."""
    if getattr(func, "__name__", "") in ("__get__", "__set__"):
        return f"torch.Tensor.{getattr(func.__self__, '__name__', '')}.{func.__name__}"
    if isinstance(func, torch._ops.OpOverload):
        return "torch.ops." + str(func)
    if isinstance(func, torch._ops.OpOverloadPacket):
        return "torch.ops." + str(func)
    if hasattr(torch.Tensor, getattr(func, "__name__", "?")) and getattr(func, "__objclass__", None) is not None:
        return f"torch.Tensor.{func.__name__}"
    return _public().get(id(func), "")
