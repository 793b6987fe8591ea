"""A row as a program of five lines, with the values that the row had: what a reporter needs."""

from __future__ import annotations

from typing import Any

import torch

from engine.description import DRAWN, Operator, Row, spellings
from engine.drawing import Context
from engine.pools import LENGTH

_LITERAL = 40


def program(spec: Operator, row: Row) -> str:
    """Return a program that prints what the device answers beside what float64 on the CPU answers."""
    operands = [_operand(base, layout, shape) for base, layout, shape in Context(spec, row).bases()]
    args = row.args(lambda dtype: dtype)
    for key in DRAWN:
        args.pop(key, None)
    passed = [_literal(args.pop(key)) for key in list(args) if key[0] == "_"]
    passed += [f"{key}={_literal(value)}" for key, value in args.items()]
    form = row.levels["@form"]
    names = [f"x[{number}]" for number in range(len(operands))]
    call = f"{_name(spec, row)}({', '.join([*names, *passed])})"
    after = {"inplace": "x[0]", "grad": "the gradients", "out": "out=a view"}.get(form, "the answer")
    conditions = ", ".join(f"{key.lstrip('@')}={_short(value)}" for key, value in row.levels.items() if key[0] == "@")
    return "\n".join(
        (
            f"import torch; from math import inf, nan; i = torch.arange({LENGTH})  # {conditions}; compared: {after}",
            f"host = [{', '.join(text for text, _ in operands)}]",
            f"cut = [{', '.join(f'lambda b: {text}' for _, text in operands)}]",
            f"f = lambda x: {call}{_explained(spec)}",
            "print(f([c(b.to('mps')) for c, b in zip(cut, host)]), f([c(b) for c, b in zip(cut, host)]))",
        )
    )


def _explained(spec: Operator) -> str:
    """Return where a name is explained that is none of torch's: the suite's own, for what no single function is."""
    return "" if spec.act is None else f"  # {spec.name}: `act` of that name in operators/*.py"


def _operand(base: Any, layout: Any, shape: Any) -> tuple[str, str]:
    """Return how a base is made on the host, and how its view is cut."""
    if not isinstance(base, torch.Tensor):
        return repr(base), "b"
    if base.numel() <= _LITERAL:
        made = f"torch.tensor({base.tolist()}, dtype={base.dtype}).reshape{_sides(base.shape)}"
    else:
        made = f"(i[:{base.numel()}] * 7919 % 65551 / 8192 - 4).to({base.dtype}).reshape{_sides(base.shape)}"
    view = layout.cut(base, shape)
    if view is base:
        return made, "b"
    return made, f"b.as_strided({tuple(view.shape)}, {tuple(view.stride())}, {view.storage_offset()})"


def _literal(value: Any) -> str:
    return f"torch.{value!r}" if isinstance(value, torch.Tensor) else repr(value)


def _sides(shape: Any) -> str:
    return f"({', '.join(map(str, shape))},)" if len(shape) else "(())"


def _name(spec: Operator, row: Row) -> str:
    every = spellings(spec.name, spec.paths)
    if spec.act is not None or not every:
        return spec.name
    home, name = every[row.number % len(every)]
    ending = "_" if row.levels["@form"] == "inplace" else ""
    homes = {"torch": "torch", "F": "torch.nn.functional", "aten": "torch.ops.aten", "Tensor": "torch.Tensor"}
    return f"{homes.get(home, 'torch.' + home)}.{name}{ending}"


def _short(value: Any) -> str:
    return str(value)[6:] if isinstance(value, torch.dtype) else str(value)
