"""Rules 1 and 3: places spelled in every way that Python has: bools, lists of them, ranges, tuples, arrays, numbers.

A list of bools was read as ones and zeros, https://github.com/pytorch/pytorch/issues/12156; a nested one was refused
below 32 rows, https://github.com/pytorch/pytorch/issues/121274; x[True] adds a dimension, it is not x[1].
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table, assigned
from device_suite.refusals import add_refused

cases = Cases("conditions")
ALL = slice(None)
_GRID = [[True, False, True, True], [False, False, True, False], [True, True, False, False]]


def _on(x: torch.Tensor, value: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    return torch.tensor(value, dtype=dtype, device=x.device)


def _array(value: Any) -> Any:
    return torch.tensor(value).numpy()


# Of x of (3, 4, 2).
_BOOLS: dict[str, Callable[[torch.Tensor], Any]] = {
    **{
        f"{name}-{flag}": lambda x, form=form, flag=flag: form(x, flag)
        for flag in (True, False)
        for name, form in {
            "bare": lambda x, b: b,
            "tuple": lambda x, b: (b,),
            "number": lambda x, b: (b, 0),
            "number-first": lambda x, b: (0, b),
            "ellipsis": lambda x, b: (..., b),
            "ellipsis-last": lambda x, b: (b, ...),
            "new": lambda x, b: (None, b),
            "new-last": lambda x, b: (b, None),
            "slice": lambda x, b: (b, slice(1, 3)),
            "slice-first": lambda x, b: (slice(1, 3), b),
            "twice": lambda x, b: (b, b),
            "mixed": lambda x, b: (b, True),
            "mask": lambda x, b: (_on(x, [True, b, False]), True),
            "tensor": lambda x, b: _on(x, b),
            "tensor-tuple": lambda x, b: (_on(x, b),),
            "tensor-number": lambda x, b: (_on(x, b), 1),
            "tensor-number-first": lambda x, b: (1, _on(x, b)),
            "tensor-slice": lambda x, b: (_on(x, b), slice(0, 2)),
            "tensor-ellipsis": lambda x, b: (..., _on(x, b)),
            "host-tensor": lambda x, b: torch.tensor(b),
            "byte": lambda x, b: _on(x, int(b), torch.uint8),
            "array": lambda x, b: _array(b),
        }.items()
    },
    "true-list": lambda x: (True, [0, 2]),
    "list-true": lambda x: ([0, 2], True),
    "places-true": lambda x: (_on(x, [2, 0]), True),
    "tensor-places-true": lambda x: (_on(x, True), _on(x, [2, 0])),
    "list": lambda x: [True, False, True],
    "list-none": lambda x: [False, False, False],
    "list-all": lambda x: [True, True, True],
    "list-slice": lambda x: ([True, False, True], slice(1, 3)),
    "list-second": lambda x: (ALL, [True, False, False, True]),
    "list-last": lambda x: (..., [False, True]),
    "lists": lambda x: ([True, False, True], [True, False, False, True]),
    "list-new": lambda x: ([True, False, True], None),
    "list-number": lambda x: ([True, False, True], -1),
    "nested-tuple": lambda x: (_GRID,),
    "nested-number": lambda x: (_GRID, 1),
    "nested-new": lambda x: (_GRID, None),
    "array": lambda x: _array([True, False, True]),
    "array-grid": lambda x: _array(_GRID),
    "array-second": lambda x: (ALL, _array([True, False, False, True])),
    "bytes": lambda x: _on(x, [1, 0, 1], torch.uint8),
    "bytes-grid": lambda x: _on(x, _GRID, torch.uint8),
    "bytes-second": lambda x: (ALL, _on(x, [0, 1, 1, 0], torch.uint8)),
    "mask-host": lambda x: torch.tensor([True, False, True]),
    "mask-turned": lambda x: _on(x, _GRID).t().contiguous().t(),
    "mask-stepped": lambda x: _on(x, [True, False, False, True, True, False])[::2],
    "mask-spread": lambda x: _on(x, [True]).expand(3),
    "mixed-list": lambda x: [True, 2],
    "mixed-tuple": lambda x: (True, 2),
}
_NUMBERS: dict[str, Callable[[torch.Tensor], Any]] = {
    **{f"range-{r}": lambda x, r=r: r for r in (range(2), range(0), range(2, -1, -1), range(0, 3, 2), range(-2, 0))},
    **{f"second-{r}": lambda x, r=r: (ALL, r) for r in (range(3), range(3, 0, -2), range(-4, 0, 3))},
    "range-range": lambda x: (range(3), range(3)),
    "range-list": lambda x: (range(2), [3, 0]),
    "range-number": lambda x: (range(2), 1),
    **{f"list-{places}": lambda x, places=places: places for places in ([0], [[0]], [[0, 1], [1, 2]], [-1, 0], [-3])},
    "list-in-tuple": lambda x: ([0, 2],),
    "tuple-in-tuple": lambda x: ((0, 2),),
    "tuples-in-tuple": lambda x: ((0, 2), (1, 3)),
    "tuples-in-list": lambda x: [(0, 1), (2, 1)],
    "tuples-negative": lambda x: ((-1, -2), (-4, 3)),
    "list-of-slice": lambda x: [slice(0, 2)],
    "list-of-slices": lambda x: [slice(0, 2), 1],
    "list-of-none": lambda x: [None],
    "list-of-ellipsis": lambda x: [..., 0],
    "list-none-number": lambda x: [0, None],
    "list-of-tensors": lambda x: [_on(x, 0), _on(x, 2)],
    "list-of-rows": lambda x: [_on(x, [0, 1]), _on(x, [1, 2])],
    "list-of-tensor-number": lambda x: [_on(x, 1), 2],
    "tuple-of-tensors": lambda x: (_on(x, 0), _on(x, [1, 3])),
    "tuple-of-host": lambda x: (torch.tensor([0, 2]), torch.tensor([1, 3])),
    "host": lambda x: torch.tensor([2, 0]),
    "host-second": lambda x: (ALL, torch.tensor([3, -4])),
    "host-and-device": lambda x: (torch.tensor([0, 2]), _on(x, [1, 3])),
    "host-none-dimensions": lambda x: torch.tensor(-1),
    "size": lambda x: torch.Size([1, 2]),
    "array": lambda x: _array([0, 2]),
    "array-negative": lambda x: (ALL, _array([-1, 0])),
    "array-small": lambda x: _array([2, 0]).astype("int32"),
    "array-number": lambda x: _array([1])[0],
    "array-none-dimensions": lambda x: _array(1),
    "array-and-list": lambda x: (_array([0, 2]), [3, 1]),
    **{
        f"none-dimensions-{value}-{str(dtype)[6:]}": lambda x, value=value, dtype=dtype: _on(x, value, dtype)
        for value in (0, 2)
        for dtype in (torch.int64, torch.int32, torch.int16, torch.int8)
    },
    "none-dimensions-negative": lambda x: (_on(x, -1), _on(x, -2)),
    "none-dimensions-slice": lambda x: (_on(x, 1), slice(1, 3)),
    "slice-none-dimensions": lambda x: (slice(0, 2), _on(x, 1)),
    "small": lambda x: _on(x, [2, -1], torch.int32),
    "nothing": lambda x: (),
    "nothing-tuple": lambda x: ((),),
    "nothing-list": lambda x: [],
    "nothing-nested": lambda x: [[]],
    "nothing-second": lambda x: (ALL, []),
    "nothing-places": lambda x: _on(x, [], torch.int64),
    "news": lambda x: (None, None, 1, None),
    "new-ellipsis": lambda x: (None, ..., None),
    "ellipsis-only": lambda x: ...,
    "slice-of-tensors": lambda x: slice(torch.tensor(0), torch.tensor(2)),
    "slice-of-device": lambda x: (ALL, slice(_on(x, 1), _on(x, 4), _on(x, 2))),
    "slice-of-bools": lambda x: slice(False, True),
    **{
        f"slice-{at}-{dim}": lambda x, at=at, dim=dim: (*(ALL,) * dim, slice(*at))
        for dim in (0, 1, 2)
        for at in ((-100, 100), (2, 1), (0, 0), (-2, None), (None, -1), (None, None, 5), (1, None, 2), (-1, None, 3))
    },
}
# None of these is an index: the answer is a refusal, before any work.
_NONE: dict[str, Callable[[torch.Tensor], Any]] = {
    "mask-one": lambda x: (_on(x, [True]), 0),
    "mask-none": lambda x: _on(x, [], torch.bool),
    "nested-short": lambda x: _GRID,
    "false-list": lambda x: (False, [0, 2]),
    "false-places": lambda x: (_on(x, False), _on(x, [2, 0])),
    "float": lambda x: 1.0,
    "floats": lambda x: [0.0, 1.0],
    "float-tensor": lambda x: _on(x, [0.0, 1.0]),
    "float-none-dimensions": lambda x: _on(x, 1.0),
    "half": lambda x: _on(x, [1.0], torch.float16),
    "complex": lambda x: 1j,
    "text": lambda x: "0",
    "step-zero": lambda x: slice(None, None, 0),
    "step-back": lambda x: slice(None, None, -1),
    "beyond": lambda x: 3,
    "beyond-negative": lambda x: -4,
    "beyond-second": lambda x: (ALL, 4),
    "many": lambda x: (0, 0, 0, 0),
    "many-slices": lambda x: (ALL, ALL, ALL, ALL),
    "ellipses": lambda x: (..., 0, ...),
    "mask-short": lambda x: _on(x, [True, False]),
    "mask-long": lambda x: _on(x, [True, False, True, True]),
    "mask-grid": lambda x: _on(x, _GRID).t(),
    "mask-list-short": lambda x: [True, False],
    "mask-bytes-short": lambda x: _on(x, [1, 0], torch.uint8),
    "shapes": lambda x: ([0, 1], [0, 1, 2]),
    "shapes-mask": lambda x: ([True, True, True], [0, 1]),
    "ragged": lambda x: [[0], [1, 2]],
    "slice-float": lambda x: slice(0.0, 2.0),
    "slice-many": lambda x: slice(_on(x, [0, 1]), 2),
}
_EVERY = {f"bools-{name}": at for name, at in _BOOLS.items()} | _NUMBERS
_USES: dict[str, Callable[[torch.Tensor, Any], Any]] = {
    "read": lambda x, at: x[at],
    "number": lambda x, at: assigned(x, at, 2),
    "cell": lambda x, at: assigned(x, at, x[-1, -1, -1]),
    "whole": lambda x, at: assigned(x, at, x.flip(0)[at]),
    "doubled": lambda x, at: _doubled(x, at),
    "view": lambda x, at: x.permute(2, 1, 0).contiguous().permute(2, 1, 0)[at],
}


def _doubled(x: torch.Tensor, at: Any) -> torch.Tensor:
    target = x.clone()
    target[at] += target[at]
    return target


for _dtype in (torch.float32, torch.int64, torch.bool, torch.float16):
    for _use, _form in _USES.items():
        if _use in {torch.float32: _USES, torch.int64: ("read", "number", "whole")}.get(_dtype, ("read",)):
            add_table(
                cases,
                f"spelled-places-{_use}-{str(_dtype)[6:]}",
                {
                    name: lambda x, form=_form, at=at: form(x, at(x))
                    for name, at in [*_EVERY.items()][:: 4 if _use in ("cell", "view", "doubled") else 1]
                    if "bytes" not in name or _use in ("read", "view")  # a number is not written to a mask of bytes
                },
                lambda d, dtype=_dtype: (d.of(dtype, 3, 4, 2),),
            )
add_table(
    cases,
    "spelled-places-derived",
    {
        f"{use}-{name}": lambda x, form=form, at=at: derived(lambda y: form(y, at(y)), x)
        for use, form in {
            "read": lambda y, at: y[at] * 2,
            "written": lambda y, at: assigned(y * 2, at, 3.0),
            "moved": lambda y, at: assigned(y * 1, at, y.flip(0)[at] * 2),
        }.items()
        for name, at in [*_EVERY.items()][len(use) % 2 :: 2 if use == "read" else 5]
        if "bytes" not in name
    },
    lambda d: (d.normal(3, 4, 2),),
    deterministic=False,
)
# Bools, None and the rest beside other shapes: of no dimensions, of one place, of none.
_SHAPES = ((), (1,), (0,), (1, 1), (3, 1))
_ANYWHERE: dict[str, Callable[[torch.Tensor], Any]] = {
    **{
        name: at
        for name, at in _BOOLS.items()
        if name.split("-")[0] in ("bare", "tensor", "twice") and not any(part in name for part in ("number", "places"))
    },
    **{name: _NUMBERS[name] for name in ("nothing", "nothing-list", "news", "new-ellipsis", "ellipsis-only")},
    "first": lambda x: 0,
    "last": lambda x: -1,
    "first-list": lambda x: [0],
    "compared": lambda x: x > 0,
    "compared-none": lambda x: x > 99,
    "compared-all": lambda x: x < 99,
    "compared-new": lambda x: (x > 0, None),
    "compared-first": lambda x: (None, x > 0),
    "ellipsis-new": lambda x: (..., None),
}
for _dtype in (torch.float32,):
    add_table(
        cases,
        f"spelled-places-shapes-{str(_dtype)[6:]}",
        {
            f"{use}-{name}-{shape}": lambda x, form=form, at=at, shape=shape: form(
                y := x[: torch.Size(shape).numel()].reshape(shape), at(y)
            )
            for use, form in {
                "read": lambda x, at: x[at],
                "written": lambda x, at: assigned(x, at, 2),
                "whole": lambda x, at: assigned(x, at, x[at] * 2),
            }.items()
            for name, at in _ANYWHERE.items()
            for shape in _SHAPES
        },
        lambda d, dtype=_dtype: ((d.distinct(3) * 2 + 1).to(dtype),),
    )
add_refused(
    cases,
    "spelled-places",
    lambda d: (d.normal(3, 4, 2),),
    {
        f"{use}-{name}": lambda x, form=_USES[use], at=at: form(x, at(x))
        for use in ("read", "number", "whole")
        for name, at in _NONE.items()
    },
)
