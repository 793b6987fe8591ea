"""What is wrong as a script that needs torch alone: the public calls of one run, written down as they are made.

A script ends with 0 where the device's answer is right, 1 where it is wrong, 2 where it cannot be tried here, 3 where
the script itself is at fault.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import torch

from .transformation import Call, Transformation

_LITERAL = 256
_MOST_LINES = 40
_HOMES = (
    ("torch", torch),
    ("torch.nn.functional", torch.nn.functional),
    ("torch.linalg", torch.linalg),
    ("torch.special", torch.special),
    ("torch.fft", torch.fft),
    ("torch.autograd", torch.autograd),
    ("torch.Tensor", torch.Tensor),
)


def script(call: Call, transformation: Transformation, bench: Any, truth: Any) -> str | None:
    """Return a script that makes the call on the device that its argument names and on the CPU, and compares.

    It is None where a call is not made through public functions alone, or takes more lines or larger operands; before
    torch 1.13, which cannot be watched so; and under autocast.
    """
    if "@autocast" in call.levels:
        return None
    tracer = _Tracer()
    drawn = _DrawnApart(call.operator, call.row)
    object.__setattr__(drawn, "tracer", tracer)
    try:
        with tracer:
            results = transformation.perform(drawn, bench.same(), truth)
    except Exception:
        return None
    names = [tracer.name(one) for one in results]
    if tracer.lost or any(name is None for name in names):
        return None
    text = _TEMPLATE.format(
        told=f"{call.operator.name}, {transformation.name}: {_told(call)}"[:110],
        lines="\n    ".join(tracer.lines),
        names=", ".join(map(str, names)),
        tolerance=_tolerance(call),
    )
    return text if len(text.splitlines()) <= _MOST_LINES else None


_TEMPLATE = """\
# {told}
import sys
import torch
from math import inf, nan

def run(device):
    {lines}
    return [{names}]

try:
    device = sys.argv[1] if len(sys.argv) > 1 else "mps"
    torch.ones(1, device=device)
except Exception as raised:
    sys.exit(print("not tried:", raised) or 2)
try:
    want = run("cpu")
except Exception as raised:
    sys.exit(print("no reference:", raised) or 3)
try:
    got, wrong = run(device), False
    for one, two in zip(got, want):
        one, two = (torch.as_tensor(x).detach().cpu() for x in (one, two))
        wrong |= one.dtype != two.dtype or not torch.allclose(one, two, {tolerance}, equal_nan=True)
        print(device + ":", one, "cpu:", two, sep="\\n")
except Exception as raised:
    sys.exit(print("wrong:", raised) or 1)
sys.exit(print("wrong" if wrong else "right") or int(wrong))
"""


def _tolerance(call: Call) -> str:
    return "2e-2, 1e-2" if call.levels["@dtype"] in (torch.float16, torch.bfloat16) else "1e-4, 1e-5"


def _told(call: Call) -> str:
    told = ((name.lstrip("@"), level) for name, level in call.levels.items() if name[0] == "@")
    return ", ".join(f"{name}={str(level).replace('torch.', '')}" for name, level in told)


class _DrawnApart(Call):
    """A call whose operands are drawn while nothing is written down: they are literals of the script."""

    tracer: Any = None

    def changed(self, **levels: Any) -> Call:
        return self._like(super().changed(**levels))

    def with_level(self, factor: str, level: Any) -> Call:
        return self._like(super().with_level(factor, level))

    def bases(self, run: Any) -> list[Any]:
        with self.tracer.paused():
            return super().bases(run)

    def places(self, truth: Any) -> list[Any]:
        with self.tracer.paused():
            return super().places(truth)

    def _like(self, call: Call) -> Call:
        other = _DrawnApart(call.operator, call.row)
        object.__setattr__(other, "tracer", self.tracer)
        return other


class _Tracer:
    """Writes public calls down: a name for each tensor, a line for each call. `lost`: something cannot be written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.lost = False
        self._names: dict[int, str] = {}
        self._literals: set[int] = set()
        self._kept: list[Any] = []  # an id is of one tensor only while that lives
        self._stack = contextlib.ExitStack()
        self._is_paused = False

    def __enter__(self) -> _Tracer:
        from torch.overrides import TorchFunctionMode  # torch 1.13 and newer

        tracer = self

        class Mode(TorchFunctionMode):
            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                return tracer.traced(func, args, kwargs or {})

        self._stack.enter_context(Mode())
        return self

    def __exit__(self, *raised: Any) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Write nothing down."""
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    def traced(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Make a call and write it down, unless it only reads what a tensor is, or moves it to where it lies."""
        if self._is_paused:
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        told = [self.text(one) for one in args if not _is_read(name)]
        told += [f"{key}={self.text(one)}" for key, one in kwargs.items()]
        answer = func(*args, **kwargs)
        first = args[0] if args else None
        made = any(
            isinstance(one, torch.Tensor) for one in (answer if isinstance(answer, (tuple, list)) else (answer,))
        )
        if not made and name not in ("__setitem__", "__set__"):
            return answer
        if answer is first and name == "to":
            self.lost |= id(first) not in self._literals  # it was made on the host: where it goes is not written down
            return answer
        if _is_read(name):  # an attribute that is a tensor: .T, .real
            self._write(answer, f"{self.text(first)}.{getattr(getattr(func, '__self__', None), '__name__', '')}")
            return answer
        home = next((path for path, home in _HOMES if getattr(home, name, None) is func), None)
        if home is None:
            is_method = isinstance(first, torch.Tensor) and hasattr(torch.Tensor, name)
            home, self.lost = "torch.Tensor", self.lost or not is_method
        self._write(answer, f"{home}.{name}({', '.join(told)})")
        return answer

    def _write(self, answer: Any, text: str) -> None:
        name = f"v{len(self._kept)}"
        self.lines.append(f"{name} = {text}")
        self._kept.append(answer)
        if isinstance(answer, torch.Tensor):
            self._names[id(answer)] = name
        elif isinstance(answer, (tuple, list)):
            self._names.update((id(one), f"{name}[{place}]") for place, one in enumerate(answer))

    def name(self, value: Any) -> str | None:
        """Return how a result is written."""
        return self._names.get(id(value)) if isinstance(value, torch.Tensor) else self.text(value)

    def text(self, value: Any) -> str:
        """Return how an argument is written; a tensor that no call made is a literal."""
        if isinstance(value, torch.Tensor):
            if id(value) not in self._names:
                self.lost |= value.numel() > _LITERAL or value.requires_grad
                flat = [] if self.lost else value.detach().reshape(-1).tolist()
                literal = f"torch.tensor({flat}, dtype={value.dtype}).reshape({tuple(value.shape)})"
                self._write(value, f"{literal}.to(device)")
                self._literals.add(id(value))
            return self._names[id(value)]
        if isinstance(value, tuple):
            return f"({''.join(f'{self.text(one)}, ' for one in value)})"
        if isinstance(value, list):
            return f"[{', '.join(self.text(one) for one in value)}]"
        if isinstance(value, torch.device):
            return "device"
        return "..." if value is Ellipsis else repr(value)


def _is_read(name: str) -> bool:
    return name == "__get__"
