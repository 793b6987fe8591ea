"""What an operator's description is: its spellings, operands, arguments with their values, sizes, dtypes, bounds."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any, Callable

import torch

from .layouts import LAYOUTS, Layout
from .pools import SINGLES

F32, HALVES = (torch.float32,), (torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
GROUPS = {
    "f": (*F32, *HALVES),
    "s": F32,
    "i": INTEGERS,
    "l": (torch.int64, torch.int32),
    "b": (torch.bool,),
    "c": (torch.complex64,),
}
# Conversions and factories are requested for each of these.
_WHOLE_NUMBERS = ("long", "int", "short", "char", "byte")
DTYPES = (*F32, *HALVES, *INTEGERS, torch.bool)
# The value of an argument that is not passed.
ABSENT: Any = "-"
# Arguments that only say how the operands are drawn: the second's shape and dtype, and the kind of the indices.
DRAWN = ("_cast", "_with", "_at")

SIZES: dict[str, tuple[int, ...]] = {
    "small": (5, 7),
    "four": (2, 3, 4, 6),
    "none": (),
    "empty": (0, 7),
    "hollow": (3, 0),
    "one": (1,),
    "line": (17,),
    "long": (3, 1031),
    "high": (1031, 3),
    "tiles": (32, 64),
    "tall": (65543,),
    "rows": (65543, 2),
    "three": (4, 3, 5),
    "five": (2, 3, 1, 4, 3),
    "six": (2, 1, 3, 2, 1, 4),
    "column": (33, 1),
    "row": (1, 33),
    "tall_column": (65543, 1),
    "wide": (2, 40009),
    "many": (40009, 2),
    "middle": (2, 32, 33),
}
POINTWISE = (
    *("small", "four", "none", "empty", "one", "line", "long", "tiles", "tall", "three", "five", "six"),
    *("column", "row", "wide"),
)
REDUCED = (
    *("small", "four", "none", "empty", "hollow", "one", "line", "long", "high", "tiles", "tall", "three", "five"),
    *("six", "row", "tall_column", "wide", "many", "middle"),
)
ANY_LAYOUT = ("dense", "transposed", "offset", "step", "expanded", "channels_last", "narrow", "reversed")


def _narrow(base: torch.Tensor, shape: Any) -> torch.Tensor:
    cut = base[1 : 1 + shape[0]]
    return cut[..., 2 : 2 + shape[-1]] if len(shape) > 1 else cut


def _only_for(least: int, layout: Layout, other: str) -> Layout:
    """Return a layout for views of so many dimensions; smaller ones have the layout of `other`."""
    return Layout(
        layout.name,
        lambda shape: (layout if len(shape) >= least else VIEWS[other]).base(shape),
        lambda base, shape: (layout if len(shape) >= least else VIEWS[other]).cut(base, shape),
        layout.writable,
    )


VIEWS: dict[str, Layout] = {
    "dense": LAYOUTS["contiguous"],
    "transposed": LAYOUTS["transposed"],
    "offset": LAYOUTS["offset"],
    "step": LAYOUTS["step2"],
    "expanded": LAYOUTS["expanded"],
}
VIEWS["channels_last"] = _only_for(4, LAYOUTS["channels_last"], "transposed")
VIEWS["narrow"] = _only_for(
    1,
    Layout(
        "narrow",
        lambda shape: (shape[0] + 2, *shape[1:-1], shape[-1] + 3) if len(shape) > 1 else (shape[0] + 2,),
        _narrow,
    ),
    "offset",
)
VIEWS["reversed"] = _only_for(
    3,
    Layout(
        "reversed", lambda shape: tuple(reversed(shape)), lambda base, shape: base.permute(*reversed(range(len(shape))))
    ),
    "transposed",
)


@dataclass(frozen=True)
class Operator:
    """One operator's description.

    Attributes:
        name: the case's name; `paths` are its public spellings, found by the name where none are given.
        operands: texts `domain` or `domain:0,2` (sides of the row's size by number), or functions of a Context.
        args: argument -> the values it takes, ABSENT for "not passed"; a name that begins with `_` is positional.
        dtypes: keys of GROUPS, a character each. sizes: names of SIZES, or sizes of its own by name.
        forms: call, inplace, out, grad: those that exist are found when the rows are made.
        terms: K of the bound: a number, or "all": the elements of the first operand.
        floor: least scale of the bound; `wide_floor`: of wide values, whose products of hundreds may cancel.
        layouts_of: the numbers of the operands that have a layout of their own; the others stay dense.
        act: stands in for the spellings. finish: makes comparable what is not unique (signs, orders).
        share: how early and how often it is drawn beside the others.
        without: names of transformations that say nothing of it, or that the CPU does not survive.
        dense_on_cpu: on the CPU what it takes has no steps: its library would write past its own memory.
    """

    name: str
    operands: tuple[Any, ...] = ("any",)
    args: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    dtypes: str = "fib"
    sizes: Any = POINTWISE
    values: tuple[str, ...] = ("plain", "wide", "special", "inf")
    forms: tuple[str, ...] = ("call", "inplace", "out", "grad")
    paths: tuple[str, ...] = ()
    terms: Any = 1
    factor: float = 16.0
    floor: float = 0.0
    wide_floor: float = 0.0
    layouts_of: tuple[int, ...] = (0, 1, 2)
    layouts: tuple[str, ...] = ANY_LAYOUT
    act: Callable[..., Any] | None = None
    finish: Callable[[Any], Any] | None = None
    share: float = 1.0
    without: tuple[str, ...] = ()
    dense_on_cpu: bool = False

    @property
    def kinds(self) -> tuple[torch.dtype, ...]:
        """Return the dtypes by their characters, in order."""
        return tuple(dtype for key in self.dtypes for dtype in GROUPS[key])

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the sizes by name."""
        return self.sizes if isinstance(self.sizes, dict) else {name: SIZES[name] for name in self.sizes}

    @property
    def layout_operands(self) -> tuple[int, ...]:
        """Return the numbers of the operands that have a layout of their own."""
        return tuple(number for number in self.layouts_of if number < len(self.operands))

    @functools.cached_property
    def factors(self) -> list[tuple[str, tuple[Any, ...]]]:
        """Return what is paired: names and levels, in the order of a row's digits."""
        found: list[tuple[str, tuple[Any, ...]]] = [
            ("@form", self.forms),
            ("@dtype", self.kinds),
            ("@size", tuple(self.shapes)),
            ("@values", self.values),
        ]
        found += [(f"@layout{number}", self.layouts) for number in self.layout_operands]
        return found + list(self.args.items())


HOMES: dict[str, Any] = {
    "torch": torch,
    "Tensor": torch.Tensor,
    "F": torch.nn.functional,
    "special": torch.special,
    "linalg": torch.linalg,
    "fft": torch.fft,
    "aten": torch.ops.aten,
}


@dataclass(frozen=True)
class Row:
    """One set of conditions: a level for each factor; its digits name it, and its number chooses the spelling."""

    digits: str
    number: int
    levels: dict[str, Any]

    def shape(self, operator: Operator) -> tuple[int, ...]:
        """Return the sides of the operands: those of its size by name, or smaller ones that a shrunk call has."""
        own = self.levels.get("@shape")
        return operator.shapes[self.levels["@size"]] if own is None else own

    def args(self, cast: Callable[[torch.dtype], torch.dtype]) -> dict[str, Any]:
        """Return the arguments that are passed, dtypes as the run wants them."""
        named = {key: value for key, value in self.levels.items() if key[0] != "@" and value is not ABSENT}
        return {key: cast(value) if isinstance(value, torch.dtype) else value for key, value in named.items()}


def undefined(row: Row) -> str:
    """Return why a row has no one answer on every back end, or an empty text."""
    levels = row.levels
    if levels["@form"] == "inplace" and levels.get("@layout0") == "expanded":
        return "several places of the destination are one element"
    if levels["@form"] == "grad" and levels["@values"] in ("special", "single"):
        return "the gradient at NaN is open"
    wanted = levels.get("dtype")
    odd = levels["@values"] in ("special", "inf", "single", "single_inf")
    if odd and levels["@dtype"].is_floating_point and wanted in INTEGERS:
        return "which whole number NaN and infinity are is open"
    if odd and levels["@dtype"].is_floating_point and levels.get("_name") in _WHOLE_NUMBERS:
        return "which whole number NaN and infinity are is open"
    if levels["@values"] == "wide" and wanted in HALVES and levels["@dtype"] in INTEGERS:
        return "half precision does not hold the numbers, and inf - inf is met or not by the order of a sum"
    if odd and isinstance(wanted, torch.dtype) and wanted.is_complex:
        return "which part of a complex product is NaN is open"
    if levels["@dtype"].is_complex and levels["@values"] in ("special", "inf", *SINGLES):
        return "which part of a complex product is NaN is open"
    return ""


@functools.lru_cache(maxsize=None)
def spellings(name: str, paths: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return (home, name) of every public spelling that this torch has."""
    if paths:
        wanted = [tuple(path.split(".", 1)) for path in paths]
    else:
        prefix, _, rest = name.partition("_")
        own = [(prefix, rest)] if prefix in ("special", "linalg", "fft") else []
        wanted = [*own, *((home, name) for home in ("torch", "Tensor", "F"))]
    found = tuple((home, name) for home, name in wanted if hasattr(HOMES[home], name))
    return found or ((("aten", name),) if hasattr(torch.ops.aten, name) and not paths else ())


class Table:
    """The descriptions of one file, by name."""

    def __init__(self) -> None:
        self.operators: dict[str, Operator] = {}

    def add(self, name: str, *operands: Any, **fields: Any) -> None:
        """Describe one operator; what is no field of Operator is an argument with its values."""
        known = {key: fields.pop(key) for key in list(fields) if key in Operator.__dataclass_fields__}
        if name in self.operators:
            raise ValueError(f"two descriptions are called {name}")
        args = {key: value if isinstance(value, tuple) else (value,) for key, value in fields.items()}
        self.operators[name] = Operator(
            name=name, operands=operands or ("any",), args={**known.pop("args", {}), **args}, **known
        )

    def each(self, names: str, *operands: Any, **fields: Any) -> None:
        """Describe several operators alike."""
        for name in names.split():
            self.add(name, *operands, **fields)
