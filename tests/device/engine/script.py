"""What is wrong as a script that needs torch alone: the public calls of one run, written down as they are made.

A script ends with 0 where the device's answer is right, 1 where it is wrong, 2 where it cannot be tried here, 3 where
the script itself is at fault.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import torch

from .transformation import Call, Transformation

# Elements of an operand that is written out.
_LITERAL = 256
_MOST_LINES = 40
_LINE = 110
_HOMES = (
    ("torch", torch),
    ("torch.nn.functional", torch.nn.functional),
    ("torch.linalg", torch.linalg),
    ("torch.special", torch.special),
    ("torch.fft", torch.fft),
    ("torch.autograd", torch.autograd),
    ("torch.Tensor", torch.Tensor),
)


class NoScript(Exception):
    """A call cannot be written as a script: the message says why."""


def script(call: Call, transformation: Transformation, bench: Any, truth: Any, named: str) -> str:
    """Return a script that makes the call on the device that its argument names and on the CPU, and compares.

    Args:
        named: the device where it gets no argument.

    Raises:
        NoScript: the call is not made through public functions alone, it takes more lines or larger operands, or this
            torch is older than 1.13, which cannot be watched so.
    """
    tracer = _Tracer()
    drawn = _DrawnApart(call.operator, call.row)
    object.__setattr__(drawn, "tracer", tracer)
    results: list[Any] = []
    try:
        with tracer:
            results = transformation.perform(drawn, bench.same(), truth)
    except ImportError:
        raise NoScript("torch before 1.13 cannot be watched") from None
    except Exception as raised:
        if not tracer.refused:
            raise NoScript(f"the CPU raises {type(raised).__name__}: {raised}") from None
    if tracer.lost:
        raise NoScript(tracer.lost)
    names = [tracer.name(one) for one in results if isinstance(one, torch.Tensor)]
    if not tracer.refused and (not names or None in names):
        raise NoScript("an answer is no result of a public call")
    parts = {
        "title": f"{call.operator.name}, {transformation.name}: {_title(call)}"[:110],
        "named": named,
        "names": ", ".join(map(str, names)),
        "loose": _tolerance(call),
    }
    template = _REFUSED if tracer.refused else _ANSWERED
    begin, margin = "", "\n    "
    if within := transformation.around(call):
        begin, margin = f"with {within}:{margin}    ", f"{margin}    "
    if "@autocast" in call.levels:
        template = _CAST
        parts["dtypes"] = ", ".join(map(str, transformation.dtypes(call, bench, truth, results)))
    for lines in (tracer.lines, _packed(tracer.lines)):
        text = template.format(lines=begin + margin.join(lines), **parts)
        if len(text.splitlines()) <= _MOST_LINES:
            return text
    raise NoScript(f"it takes more than {_MOST_LINES} lines")


def _packed(lines: list[str]) -> list[str]:
    """Return the same statements, several short ones in a line."""
    found: list[str] = []
    for line in lines:
        if found and len(found[-1]) + len(line) < _LINE:
            found[-1] += f"; {line}"
        else:
            found.append(line)
    return found


_BEGIN = """\
# {title}
import sys, torch
from math import inf, nan

"""
_RUN = """\
def run(device):
    {lines}
    return [{names}]
"""
_TRY = """
device = sys.argv[1] if len(sys.argv) > 1 else "{named}"
try:
    torch.ones(1, device=device)
except Exception as raised:
    sys.exit(print("not tried:", raised) or 2)
"""
_COMPARE = """\
try:
    want = run("cpu")
except Exception as raised:
    sys.exit(print("no reference:", raised) or 3)
try:
    for one, two in zip(run(device), want):
        one, two = (x.detach().cpu() for x in (one, two))
        print(device + ":", one, "cpu:", two, sep="\\n")
        loose = {loose} if one.is_floating_point() or one.is_complex() else {{}}
        torch.testing.assert_close(one, two, equal_nan=True, **loose)
except Exception as raised:
    sys.exit(print("wrong:", raised) or 1)
print("right")
"""
_COMPARE_REFUSED = """\
try:
    sys.exit(print("no reference: the CPU answers:", run("cpu")) or 3)
except Exception as raised:
    print("cpu:", raised)
try:
    sys.exit(print("wrong: answered, the CPU refuses it:", run(device)) or 1)
except Exception as raised:
    print("right:", raised)
"""
_ANSWERED = _BEGIN + _RUN + _TRY + _COMPARE
_REFUSED = _BEGIN + _RUN + _TRY + _COMPARE_REFUSED
# The CPU's answer is that of float32; which dtypes autocast gives, the lists of the device say.
_CAST = (
    _BEGIN
    + _RUN.replace("(device)", "(device, cast=True)")
    + _TRY
    + _COMPARE.replace('run("cpu")', 'run("cpu", cast=False)')
    .replace("zip(run(device), want)", "zip(run(device), want, [{dtypes}])")
    .replace("for one, two in", "for one, two, dtype in")
    .replace("assert_close(one, two,", "assert_close(one, two.to(dtype),")
)


def _tolerance(call: Call) -> str:
    low = call.levels["@dtype"] in (torch.float16, torch.bfloat16) or "@autocast" in call.levels
    return "dict(rtol=2e-2, atol=1e-2)" if low else "dict(rtol=1e-4, atol=1e-5)"


def _title(call: Call) -> str:
    levels = ((name.lstrip("@"), level) for name, level in call.levels.items() if name[0] == "@")
    return ", ".join(f"{name}={str(level).replace('torch.', '')}" for name, level in levels)


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

    def numbered(self, number: int) -> Call:
        return self._like(super().numbered(number))

    def _like(self, call: Call) -> Call:
        other = _DrawnApart(call.operator, call.row)
        object.__setattr__(other, "tracer", self.tracer)
        return other


class _Tracer:
    """Writes public calls down: a name for each tensor, a line for each call.

    Attributes:
        lost: why something cannot be written, empty as long as all can.
        refused: the last call was raised in.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.lost, self.refused = "", False
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
        given = [self.text(one) for one in args if not _is_read(name)]
        given += [f"{key}={self.text(one)}" for key, one in kwargs.items() if not _says_nothing(func, key, one)]
        try:
            answer = func(*args, **kwargs)
        except Exception:
            self.refused = True
            self.lines.append(self._spelled(func, args, given))
            raise
        first = args[0] if args else None
        made = any(
            isinstance(one, torch.Tensor) for one in (answer if isinstance(answer, (tuple, list)) else (answer,))
        )
        if not made and name not in ("__setitem__", "__set__"):
            return answer
        if answer is first and name == "to" and id(first) in self._literals:  # it is written as moved
            return answer
        if name == "__setitem__":
            self.lines.append(f"{given[0]}[{self._index(args[1])}] = {given[2]}")
        elif name == "__getitem__":
            self._write(answer, f"{given[0]}[{self._index(args[1])}]")
        elif _is_read(name):  # an attribute that is a tensor: .T, .real
            self._write(answer, f"{self.text(first)}.{getattr(getattr(func, '__self__', None), '__name__', '')}")
        else:
            self._write(answer, self._spelled(func, args, given))
        return answer

    def _spelled(self, func: Any, args: Any, given: list[str]) -> str:
        """Return a call by the public name of its function."""
        name = getattr(func, "__name__", "")
        for path, home in _HOMES:
            short = name[len(prefix) :] if name.startswith(prefix := f"{path.rpartition('.')[2]}_") else name
            found = next((one for one in (name, short) if getattr(home, one, None) is func), None)
            if found is not None and home is not torch.Tensor:
                return f"{path}.{found}({', '.join(given)})"
        if not (args and isinstance(args[0], torch.Tensor) and hasattr(torch.Tensor, name)):
            self.lost = self.lost or f"{name or func} is no public function"
        return f"{given[0] if given else ''}.{name}({', '.join(given[1:])})"

    def _index(self, index: Any) -> str:
        if isinstance(index, tuple):
            return ", ".join(map(self._index, index)) or "()"
        if isinstance(index, slice):
            start, stop, step = ("" if one is None else self.text(one) for one in (index.start, index.stop, index.step))
            return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"
        return self.text(index)

    def _literal(self, value: torch.Tensor) -> str:
        """Return a tensor by its numbers, or where they are many by the formula that they are drawn by."""
        shape, formula = tuple(value.shape), getattr(value, "formula", None)
        if value.numel() <= _LITERAL and not value.requires_grad:
            return f"torch.tensor({value.detach().reshape(-1).tolist()}, dtype={value.dtype}).reshape({shape})"
        if formula is None:
            self.lost = self.lost or "an operand is too large to be written out"
            return ""
        start, text = formula
        self.lines.append(f"i = torch.arange({start}, {start + value.numel()})")
        return f"({text}).to({value.dtype}).reshape({shape})"

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
                self._write(value, f"{self._literal(value)}.to(device)")
                self._literals.add(id(value))
            return self._names[id(value)]
        if isinstance(value, tuple):
            return f"({''.join(f'{self.text(one)}, ' for one in value)})"
        if isinstance(value, list):
            return f"[{', '.join(self.text(one) for one in value)}]"
        if isinstance(value, torch.device):
            return "device"
        return "..." if value is Ellipsis else repr(value)


def _says_nothing(func: Any, key: str, value: Any) -> bool:
    """Say whether an argument is one that torch itself passes to this function on its way, at its default."""
    return func is torch.autograd.grad and (value is None or value is False or key == "only_inputs")


def _is_read(name: str) -> bool:
    return name == "__get__"
