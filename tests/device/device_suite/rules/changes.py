"""A stored call with some things changed, each by a short list: what is refused, or where a special value stands.

["side", T, D, N]       side D of tensor T is N longer       ["rank", T, N]     N dimensions more, or the first gone
["dtype", T, NAME]      tensor T alone                       ["kind", OLD, NEW] every tensor of a dtype
["layout", T, NAME]     tensor T alone                       ["swap", A, B]     sides A and B, in every tensor
["arg", NAME, VALUE]    an argument                          ["first", NAME, N] the first number of a list
["longer", NAME]        a list with its last number twice    ["order", T]       whole numbers from large to small
["place", T, N]         N in the middle of tensor T          ["put", T, WORD]   special values, from the middle on
["shifted", T, U]       tensor T is tensor U's memory, a row before it
["call", CALL]          another call than the stored one     ["chain", MODE]    in a chain (chains.py)
["sides", T, "3x5"]     tensor T dense, of this shape        ["within", T, A, B] tensor T between two numbers
["fill", T, WORD]       special values, everywhere in T      ["derive"]         its gradients (ways.py)
["at", T, PLACE, N]     N at one place of tensor T           ["wide", T, N]     2**32, N times, to what is in the middle
["handed", KIND]        its answer is handed on (handed.py)  ["deterministic"] with its gradient (derived.py)
["sparse", T, NAME]     tensor T in a sparse layout          ["alike"]          every tensor like the first: its values
["grown", A, N]         each side of A elements has N        ["grown", A, N, 1] and so has each argument that is A
["amid", T]             NaN in the memory beside tensor T
["wanting"]             operands want a gradient (ways.py)    ["twice"]         gradients of its gradients (ways.py)
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable

import torch

from ..layouts import Layout
from ..overloads.described import VIEWS, Drawn, changed, shape_of, tensor_text, texts
from .windows import FILLS, filled, poison

_NAN, _INF = math.nan, math.inf
# What is put into a tensor, by a word. The exponential of float32 ends at 88. No infinite parts of complex numbers: C
# and the formulas differ in what they make of them.
PUT: dict[str, tuple[Any, ...]] = {
    "nan": (_NAN,),
    "inf": (_INF,),
    "-inf": (-_INF,),
    "none": (_NAN, _INF, -_INF, 0.0, -0.0),
    "zero": (0.0, -0.0),
    "far": (complex(0, 100), complex(100, 0), complex(-100, 0), complex(0, -100), complex(95, 0.5), complex(-95, -0.5)),
}
_ASKED_SO = ("free", "chain", "derive", "steps", "deterministic", "handed", "wanting", "twice")  # no change of the call
_ENDS = ("ends",)  # the dtype's largest and least number


def _inside(shape: Any) -> Any:
    return (shape[0] + 4, *shape[1:]) if shape else (3,)


# Two rows of live memory before the view, and two behind it.
VIEWS.setdefault("inside", Layout("inside", _inside, lambda base, shape: base[2:-2] if shape else base[1]))


def _stray(base: torch.Tensor, shape: Any) -> torch.Tensor:
    strides = [base.stride(dim) if side != 1 else 3 * base.numel() + 5 for dim, side in enumerate(shape)]
    return base.as_strided(shape, strides)


# A side of 1 has a stride that leads nowhere; torch calls the tensor contiguous all the same.
VIEWS.setdefault("stray", Layout("stray", tuple, _stray))


def words_of(dtype: torch.dtype) -> tuple[str, ...]:
    """Return which words of PUT a dtype can have."""
    if dtype.is_complex:
        return ("far",)
    return ("nan", "inf", "-inf", "none", "zero", "ends") if dtype.is_floating_point else ("ends",)


def put_values(word: str, dtype: torch.dtype) -> torch.Tensor:
    """Return what a word of PUT stands for."""
    if word in _ENDS:
        limits: Any = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
        return torch.tensor([limits.max, limits.min], dtype=dtype)
    return torch.tensor(PUT[word] if word in PUT else FILLS[word], dtype=dtype)


class ChangedCall(Drawn):
    """A call with changes, drawn like any other: the suite's frame asks it without knowing of them."""

    def __init__(self, func: Any, call: Any, changes: list[Any], choices: Any = None) -> None:
        self._edits: list[tuple[int, Callable[[torch.Tensor], None]]] = []
        self._shared: dict[int, int] = {}
        self._sparse: dict[int, str] = {}
        self._alike, self._amid = False, []
        self.given = call
        for change in changes:
            call = self._with(func, call, change)
        super().__init__(call, 0, choices)

    @functools.cached_property
    def bases(self) -> list[torch.Tensor]:
        """Return the tensors of which the call's are views, with the values that were put there."""
        bases: list[torch.Tensor] = super().bases
        every = texts(self.call)
        for number, edit in self._edits:
            edit(VIEWS[every[number].split(" ")[2]].cut(bases[number], shape_of(every[number])))
        if self._alike:
            for number, text in enumerate(every):
                if text.split(" ")[:3] == every[0].split(" ")[:3]:
                    bases[number].copy_(bases[0])
        for number in self._amid:
            poison(bases[number], VIEWS["amid"].cut(bases[number], shape_of(every[number])))
        if self._edits or self._alike:  # what follows from the others follows from what was put there
            self._choose(bases)
        return bases

    def arguments(self, bases: list[torch.Tensor], device: Any, cast: Any) -> tuple[Any, Any]:
        """Return (args, kwargs), some tensors lying in the memory of others."""
        args, kwargs = super().arguments(bases, device, cast)
        if self._shared or self._sparse:
            count = iter(range(len(bases)))
            args, kwargs = mapped([args, kwargs], lambda x: self._moved(next(count), x, bases))
        return args, kwargs

    def _moved(self, number: int, x: torch.Tensor, bases: list[torch.Tensor]) -> torch.Tensor:
        if number in self._sparse:
            return x.to_sparse() if self._sparse[number] == "coo" else x.to_sparse_csr()
        return bases[self._shared[number]][1:-3] if number in self._shared else x

    def _with(self, func: Any, call: Any, change: Any) -> Any:
        kind, where, *what = (*change, None)[: max(len(change), 2)]
        if kind in _ASKED_SO:
            return call
        if kind == "call":
            return where
        if kind in ("place", "put", "order", "fill", "at", "wide"):
            self._edits.append((where, _edit(kind, *what)))
            return call
        if kind == "sparse":
            self._sparse[where] = what[0]
            return call
        if kind == "amid":
            self._amid.append(where)
            return _each(call, where, lambda text: _laid(text, "amid"))
        if kind == "alike":
            self._alike = True
            return call
        if kind == "shifted":
            self._shared[where] = what[0]
            return _each(call, what[0], lambda text: _laid(text, "inside"))
        if kind in ("arg", "first", "longer"):
            return _with_argument(func, call, kind, where, *what)
        if kind == "kind":
            return changed(call, lambda text: _typed(text, what[0]) if text.startswith(f"@{where} ") else text)
        if kind == "swap":
            return _swapped(call, {where: what[0], what[0]: where})
        if kind == "grown":
            return _swapped(call, {where: what[0]}, single=what[1:] == [1])
        return _each(call, where, lambda text: _TEXTS[kind](text, *what))


def _edit(kind: str, *what: Any) -> Callable[[torch.Tensor], None]:
    def edit(view: torch.Tensor) -> None:
        if kind == "order":
            view.copy_(view.reshape(-1).sort(descending=True)[0].reshape(view.shape))
            return
        if kind == "fill":
            view.copy_(filled(what[0], view))
            return
        if kind in ("at", "wide"):
            flat = view.reshape(-1).clone()
            place, value = what if kind == "at" else (flat.numel() // 2, (what[0] << 32) + int(flat[flat.numel() // 2]))
            flat[place] = value
            view.copy_(flat.reshape(view.shape))
            return
        values = torch.tensor(what, dtype=view.dtype) if kind == "place" else put_values(what[0], view.dtype)
        flat = view.reshape(-1).clone()
        places = (flat.numel() // 2 + torch.arange(min(len(values), flat.numel()))) % max(flat.numel(), 1)
        flat[places] = values[: len(places)]
        view.copy_(flat.reshape(view.shape))

    return edit


def _each(call: Any, number: int, change: Callable[[str], str]) -> Any:
    count = iter(range(10_000))
    return changed(call, lambda text: change(text) if next(count) == number else text)


def _typed(text: str, dtype: str) -> str:
    return f"@{dtype} " + text.partition(" ")[2]


def _laid(text: str, layout: str) -> str:
    dtype, sides, _, low, high = text.split(" ")
    return " ".join((dtype, sides, layout, low, high))


def _shaped(text: str, shape: Any) -> str:
    dtype, _, layout, low, high = text.split(" ")
    return tensor_text(dtype[1:], shape, layout if shape and 0 not in shape else "dense", float(low), float(high))


def _with_side(text: str, dim: int, more: int) -> str:
    shape = list(shape_of(text))
    shape[dim] += more
    return _shaped(text, shape)


def _with_rank(text: str, more: int) -> str:
    shape = shape_of(text)
    return _shaped(text, (*(2,) * more, *shape) if more > 0 else shape[1:])


def _with_sides(text: str, sides: str) -> str:
    dtype, _, _, *ends = text.split(" ")
    return " ".join((dtype, sides, "dense", *ends))


def _within(text: str, low: float, high: float) -> str:
    dtype, _, layout, *_ = text.split(" ")
    return tensor_text(dtype[1:], shape_of(text), layout, low, high)


_TEXTS: dict[str, Callable[..., str]] = {
    "side": _with_side,
    "rank": _with_rank,
    "dtype": _typed,
    "layout": _laid,
    "sides": _with_sides,
    "within": _within,
}


def _swapped(value: Any, sides: dict[int, int], *, single: bool = False) -> Any:
    """Return a call with other sides, in lists of sizes too; `single`: in numbers by themselves as well."""
    value = changed(value, lambda text: _shaped(text, [sides.get(one, one) for one in shape_of(text)]))

    def listed(value: Any) -> Any:
        if isinstance(value, list):
            whole = single or (len(value) > 1 and all(type(one) is int for one in value))
            return [sides.get(one, one) if whole and type(one) is int else listed(one) for one in value]
        return {key: listed(one) for key, one in value.items()} if isinstance(value, dict) else value

    return listed(value)


def _with_argument(func: Any, call: Any, kind: str, name: str, *what: Any) -> Any:
    args, kwargs = list(call[0]), dict(call[1])
    for place, argument in enumerate(func._schema.arguments):
        if argument.name != name:
            continue
        given = args[place] if place < len(args) and not argument.kwarg_only else kwargs.get(name)
        value = what[0] if kind == "arg" else [*given, given[-1]] if kind == "longer" else [what[0], *given[1:]]
        if place < len(args) and not argument.kwarg_only:
            args[place] = value
        else:
            kwargs[name] = value
    return [args, kwargs]


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Return arguments in lists and dicts with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list):
        return [mapped(one, change) for one in value]
    return {key: mapped(one, change) for key, one in value.items()} if isinstance(value, dict) else value
