"""Layouts of the operators on lists of tensors, which optimisers and clipping are made of."""

from __future__ import annotations

from typing import Any

import torch

from engine import Cases
from engine.layouts import LAYOUTS

cases = Cases("scenarios")
SHAPES = ((5, 7), (9,), (2, 3, 4), ())
_LAYOUT = LAYOUTS["transposed"]


def _lists(count: int) -> Any:
    """Lists of dense bases, of bases for transposed views, and the shapes."""

    def make(d: Any) -> Any:
        shapes = [tuple(side + d.k for side in shape) for shape in SHAPES]
        dense = [[d.uniform(0.25, 2, *shape) for shape in shapes] for _ in range(count)]
        bases = [[d.uniform(0.25, 2, *_LAYOUT.base(shape)) for shape in shapes] for _ in range(count)]
        return dense, bases, [list(shape) for shape in shapes]

    return make


def _both(call: Any) -> Any:
    """Call on dense lists, on strided ones, and on a mix; dense lists of one form take another path."""

    def act(dense: Any, bases: Any, shapes: Any) -> Any:
        strided = [[_LAYOUT.cut(base, tuple(shape)) for base, shape in zip(line, shapes)] for line in bases]
        fresh = [[base.clone() for base in line] for line in dense]
        mixed = [fresh[0], *strided[1:]]
        answers = [call(*fresh)] if len(fresh) == 1 else [call(*mixed)]
        return answers, fresh, call(*strided), call(*dense)

    return act


def _add(name: str, count: int, *more: Any, **options: Any) -> None:
    label = options.pop("label", name)
    for suffix in ("", "_"):
        if hasattr(torch, f"_foreach_{name}{suffix}"):
            cases.add(
                f"layout-foreach-{label}{suffix}",
                _both(
                    lambda *lists, function=f"_foreach_{name}{suffix}": getattr(torch, function)(
                        *lists, *more, **options
                    )
                ),
                make=_lists(count),
                terms=16,
                factor=64,
                floor=0.25,
                may_be_missing=True,
                states=("fresh", "polluted"),
            )


_ONE = "neg sqrt reciprocal zero"
for _name in _ONE.split():
    _add(_name, 1)
for _name in ("add", "div"):
    _add(_name, 2)
    _add(_name, 1, 1.5, label=f"{_name}_number")
    _add(_name, 1, [0.5, 2.0, 1.25, 3.0], label=f"{_name}_numbers")
for _name in ("add",):
    _add(_name, 2, alpha=-0.5, label=f"{_name}_alpha")
for _name in ("addcmul", "addcdiv"):
    _add(_name, 3, label=_name)
    _add(_name, 3, 0.5, label=f"{_name}_number")
    _add(_name, 3, [0.5, 2.0, 1.25, 3.0], label=f"{_name}_numbers")
_add("lerp", 2, 0.3)
_add("lerp", 3, label="lerp_lists")
_add("copy", 2)
_add("norm", 1)
_add("norm", 1, 1.0, label="norm_1")
_add("norm", 1, float("inf"), label="norm_inf")
_add("max", 1)


@cases.case("layout-foreach-by-tensor", make=_lists(1), terms=16, since="2.1", states=("fresh", "polluted"), floor=0.25)
def _by_a_tensor(dense: Any, bases: Any, shapes: Any) -> Any:
    two = torch.full((), 2.0, dtype=dense[0][0].dtype, device=dense[0][0].device)
    answers = [
        getattr(torch, f"_foreach_{name}")(dense[0], two) for name in ("mul", "add", "div") if _takes_a_tensor(name)
    ]
    torch._foreach_mul_(dense[0], two)
    return answers


def _takes_a_tensor(name: str) -> bool:
    return "Tensor" in getattr(torch.ops.aten, f"_foreach_{name}").overloads()
