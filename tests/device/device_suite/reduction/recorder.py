"""Records the public calls that a case makes on tensors, as a program."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .steps import Device, Inexpressible, Input, Program, Ref, Step

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
