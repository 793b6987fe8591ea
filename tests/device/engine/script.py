"""What is wrong as a script that needs torch alone: the public calls of one run, written down as they are made.

A script ends with 0 where the device's answer is right, 1 where it is wrong, 2 where it cannot be tried here, 3 where
the script itself is at fault.
"""

from __future__ import annotations

import contextlib
from typing import Any

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
    ("torch.Tensor", torch.Tensor),
)


def script(call: Call, transformation: Transformation, bench: Any, truth: Any) -> str | None:
    """Return a script that makes the call on a device named by its argument and on the CPU; None where none is known.

    It is None where a call is not made through public functions alone, or takes more lines or larger operands.
    """
    tracer = _Tracer()
    run = _Named(bench.same())
    try:
        with tracer:
            results = transformation.perform(call, run, truth)
    except Exception:
        return None
    names = [tracer.name(one) for one in results]
    if tracer.lost or any(name is None for name in names):
        return None
    lines = [
        f"# {call.row.digits}: {_told(call)}",
        "import sys",
        "import torch",
        "from math import inf, nan",
        "",
        "",
        "def run(device):",
        *(f"    {line}" for line in tracer.lines),
        f"    return [{', '.join(map(str, names))}]",
        "",
        "",
        "device = sys.argv[1] if len(sys.argv) > 1 else 'mps'",
        "try:",
        "    torch.ones(1, device=device)",
        "except Exception as raised:",
        "    sys.exit(print(f'not tried: {raised}') or 2)",
        "want, wrong = run('cpu'), False",
        "try:",
        "    got = run(device)",
        "except Exception as raised:",
        "    sys.exit(print(f'wrong: {type(raised).__name__}: {raised}') or 1)",
        "for one, two in zip(got, want):",
        "    one, two = (x.detach().cpu() if isinstance(x, torch.Tensor) else torch.tensor(x) for x in (one, two))",
        f"    close = one.shape == two.shape and torch.allclose(one, two, {_tolerance(call)}, equal_nan=True)",
        "    wrong |= not close or one.dtype != two.dtype",
        "    print(f'{device}: {one}\\ncpu: {two}')",
        "sys.exit(print('wrong' if wrong else 'right') or int(wrong))",
    ]
    return "\n".join(lines) + "\n" if len(lines) <= _MOST_LINES else None


def _tolerance(call: Call) -> str:
    low = call.levels.get("@autocast") or call.levels["@dtype"]
    return "rtol=2e-2, atol=1e-2" if low in (torch.float16, torch.bfloat16) else "rtol=1e-4, atol=1e-5"


def _told(call: Call) -> str:
    told = ((name.lstrip("@"), level) for name, level in call.levels.items() if name[0] == "@")
    return ", ".join(f"{name}={str(level).replace('torch.', '')}" for name, level in told)


class _Named:
    """A run whose device is written as `device`."""

    def __init__(self, run: Any) -> None:
        self.device, self.precise, self.cast = run.device, False, run.cast


class _Tracer:
    """Writes the public calls down: a name for each tensor, a line for each call."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.lost = False
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []
        self._stack = contextlib.ExitStack()

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

    def traced(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Make a call and write it down, unless it only reads what a tensor is."""
        with (
            torch._C.DisableTorchFunctionSubclass()
            if hasattr(torch._C, "DisableTorchFunctionSubclass")
            else (contextlib.nullcontext())
        ):
            answer = func(*args, **kwargs)
        kept = [one for one in (answer if isinstance(answer, (tuple, list)) else (answer,))]
        if not any(isinstance(one, torch.Tensor) for one in kept):
            return answer
        told = [self.text(one) for one in args] + [f"{key}={self.text(one)}" for key, one in kwargs.items()]
        name = getattr(func, "__name__", "")
        number = len(self._kept)
        if name == "__get__":  # an attribute: .T, .real
            owner = getattr(getattr(func, "__self__", None), "__name__", "")
            self._keep(answer, f"v{number}", f"v{number} = {self.text(args[0])}.{owner}")
            return answer
        home = next((path for path, home in _HOMES if getattr(home, name, None) is func), None)
        if home is None:
            method = hasattr(torch.Tensor, name) and bool(args) and isinstance(args[0], torch.Tensor)
            home, self.lost = "torch.Tensor", self.lost or not method
        self._keep(answer, f"v{number}", f"v{number} = {home}.{name}({', '.join(told)})")
        return answer

    def _keep(self, answer: Any, name: str, line: str) -> None:
        self.lines.append(line)
        self._kept.append(answer)
        if isinstance(answer, (tuple, list)):
            for place, one in enumerate(answer):
                if isinstance(one, torch.Tensor):
                    self._names[id(one)] = f"{name}[{place}]"
                    self._kept[-1] = answer
        else:
            self._names[id(answer)] = name

    def name(self, value: Any) -> str | None:
        """Return how a result is written."""
        return self._names.get(id(value)) if isinstance(value, torch.Tensor) else repr(value)

    def text(self, value: Any) -> str:
        """Return how an argument is written; a tensor that no call made is a literal."""
        if isinstance(value, torch.Tensor):
            known = self._names.get(id(value))
            if known is None:
                known = f"v{len(self._kept)}"
                self.lines.append(f"{known} = {self._literal(value)}")
                self._kept.append(value)
                self._names[id(value)] = known
            return known
        if isinstance(value, (tuple, list)):
            inner = ", ".join(self.text(one) for one in value)
            return f"({inner},)" if isinstance(value, tuple) else f"[{inner}]"
        if isinstance(value, torch.device):
            return "device"
        if value is Ellipsis:
            return "..."
        return repr(value)

    def _literal(self, value: torch.Tensor) -> str:
        if value.numel() > _LITERAL or value.requires_grad:
            self.lost = True
        flat = value.detach().reshape(-1).tolist() if value.numel() <= _LITERAL else []
        return f"torch.tensor({flat}, dtype={value.dtype}).reshape({tuple(value.shape)}).to(device)"
