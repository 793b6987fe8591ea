"""Rules 1 and 3: dimensions and sizes spelled in every way: numbers, tuples, lists, none, all of them, from the end.

Reductions without a dimension, https://github.com/pytorch/pytorch/issues/79525; a dimension from the end was refused,
https://github.com/pytorch/pytorch/issues/92329; of five sides the wrong one was taken,
https://github.com/pytorch/pytorch/issues/132732
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]

# The tensors whose dimensions are named: of 0 to 5, with sides of 1 and of none between.
_SHAPES = ((), (4,), (1,), (2, 3), (1, 4), (2, 1, 3), (1, 2, 1, 1, 1), (2, 0, 3), (2, 1, 2, 1, 3))


def _dims(rank: int) -> dict[str, Any]:
    """Return the ways to name dimensions of a tensor of some rank; some are refused."""
    found: dict[str, Any] = {
        "all": tuple(range(rank)),
        "all-list": list(range(rank)),
        "all-negative": tuple(range(-rank, 0)),
        "all-back": tuple(reversed(range(rank))),
        "nothing": (),
        "nothing-list": [],
        "none": None,
        "first": 0,
        "last": -1,
        "first-tuple": (0,),
        "last-list": [-1],
        "least": -rank,
        "ends": (0, -1),
        "ends-back": [-1, 0],
        "size": torch.Size(range(rank)),
        "true": True,
        "beyond": rank,
        "beyond-tuple": (0, rank),
        "beyond-negative": -rank - 1,
        "twice": (0, 0),
        "twice-negative": (0, -rank),
        "fraction": 0.5,
        "text": "0",
    }
    return found


_TAKING: dict[str, Form] = {
    **{
        name: lambda x, d, name=name: getattr(torch, name)(x, d)
        for name in "sum mean amax amin nansum any all count_nonzero logsumexp squeeze flip".split()
    },
    **{
        f"{name}-kept": lambda x, d, name=name: getattr(torch, name)(x, d, keepdim=True)
        for name in "sum mean amax any all logsumexp argmax argmin".split()
    },
    **{
        f"{name}-named": lambda x, d, name=name: getattr(x, name)(dim=d)
        for name in "sum mean amax any argmax argmin median sort cumsum unbind softmax argsort".split()
    },
    "std": lambda x, d: torch.std(x, d, correction=0),
    "var-kept": lambda x, d: torch.var(x, d, correction=0, keepdim=True),
    "norm": lambda x, d: torch.linalg.vector_norm(x, 1, d),
    "norm-kept": lambda x, d: torch.linalg.vector_norm(x, 2, d, keepdim=True),
    "old-norm": lambda x, d: torch.norm(x, 2, d),
    "max": lambda x, d: torch.max(x, d)[0],
    "prod": lambda x, d: torch.prod(x, d),
    "scan": lambda x, d: torch.cummax(x, d)[0],
    "permute": lambda x, d: x.permute(d),
    "permute-parts": lambda x, d: x.permute(*d),
    "move": lambda x, d: torch.movedim(x, d, 0),
    "move-back": lambda x, d: torch.movedim(x, d, tuple(reversed(range(x.dim())))),
    "roll": lambda x, d: torch.roll(x, 1, d),
    "roll-each": lambda x, d: torch.roll(x, (1,) * len(d), d),
    "flatten": lambda x, d: torch.flatten(x, 0, d),
    "unsqueeze": lambda x, d: x.unsqueeze(d),
    "unflatten": lambda x, d: x.unflatten(d, (1, -1)),
    "split": lambda x, d: x.split(1, d),
    "cat": lambda x, d: torch.cat([x, x], d),
    "stack": lambda x, d: torch.stack([x, x], d),
    "select": lambda x, d: x.select(d, 0),
    "index_select": lambda x, d: x.index_select(d, torch.zeros(1, dtype=torch.int64, device=x.device)),
    "repeat": lambda x, d: x.repeat_interleave(2, d),
    "diff": lambda x, d: x.diff(dim=d),
    "product": lambda x, d: torch.tensordot(x, x, (d, d)),
    "fourier": lambda x, d: torch.fft.fftn(x, dim=d).abs(),
    "shifted": lambda x, d: torch.fft.fftshift(x, d),
    "topk": lambda x, d: x.topk(1, d)[0],
    "transpose": lambda x, d: x.transpose(d, 0),
    "unique": lambda x, d: torch.unique_consecutive(x, dim=d),
}


def _cut(x: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    return x[: torch.Size(shape).numel()].reshape(shape)


# Those that take several dimensions, and which ways the rest is asked.
_SEVERAL = ("sum", "mean", "amax", "amin", "nansum", "any", "all", "count_nonzero", "logsumexp", "squeeze", "flip")
_SEVERAL = (*_SEVERAL, *(f"{name}-kept" for name in ("sum", "mean", "amax", "any", "all", "logsumexp")))
_SEVERAL = (*_SEVERAL, "sum-named", "mean-named", "amax-named", "any-named", "std", "var-kept", "norm", "norm-kept")
_SEVERAL = (*_SEVERAL, "old-norm", "fourier", "shifted")
_WHOLE = ("permute", "permute-parts", "move-back")
_PAIRED = ("roll-each", "product")
_ONE = ("first", "last", "least")
_BAD = ("true", "beyond", "beyond-tuple", "beyond-negative", "twice", "twice-negative", "fraction", "text")
# No way to say "all of them" but by leaving the dimension out.
_EMPTY = ("nothing", "nothing-list")
_NEVER_NONE = ("amax", "amin", "logsumexp", "squeeze", "flip", "amax-kept", "logsumexp-kept", "amax-named")


def _ways(name: str, shape: tuple[int, ...]) -> list[str]:
    """Return the ways to name dimensions that a function answers."""
    rank = len(shape)
    every = [way for way in _dims(rank) if way not in _BAD and (rank > 1 or "ends" not in way)]
    if name.startswith("logsumexp") or name in ("shifted", "roll-each"):
        every = [way for way in every if way not in _EMPTY]
    if name == "flip":
        every = [way for way in every if way not in _ONE]
    if name in _WHOLE:
        return [way for way in every if way.startswith(("all", "size"))]
    if name in _PAIRED:
        return [way for way in every if way not in ("none", *_ONE)]
    if name in _SEVERAL:
        return [way for way in every if way != "none" or name not in _NEVER_NONE]
    return [*_ONE] if rank or name in ("argmax-kept", "softmax-named", "cumsum-named", "unsqueeze", "max") else []


_ALL = [
    (name, f"{name}-{shape}-{way}", form, shape, _dims(len(shape))[way])
    for at, (name, form) in enumerate(_TAKING.items())
    for place, shape in enumerate(_SHAPES)
    for spot, way in enumerate(_ways(name, shape))
    if (at + place + spot) % 6 == 0 or name in ("sum", "squeeze")
    if 0 not in shape
    or name.split("-")[0] in ("sum", "nansum", "any", "all", "count_nonzero", "flip", "squeeze", "roll")
    if shape or name not in ("fourier", "shifted", "diff", "roll", "roll-each", "product", "permute-parts")
]
_OF_FRACTIONS = ("mean", "logsumexp", "softmax", "std", "var", "norm", "old", "fourier", "product")
_OF_NUMBERS = (
    "amax",
    "amin",
    "max",
    "topk",
    "median",
    "sort",
    "unique",
    "scan",
    "diff",
    "nansum",
    "prod",
    "argmax",
    "argmin",
)
for _dtype in (torch.float32, torch.float16, torch.int64, torch.bool):
    add_table(
        cases,
        f"spelled-sides-{str(_dtype)[6:]}",
        {
            key: lambda x, form=form, shape=shape, dims=dims: form(_cut(x, shape), dims)
            for at, (name, key, form, shape, dims) in enumerate(_ALL)
            if at % {torch.float32: 1, torch.int64: 5}.get(_dtype, 9) == 0
            if _dtype == torch.float32 or name.split("-")[0] not in (*_OF_FRACTIONS, "cumsum")
            if _dtype != torch.bool or name.split("-")[0] not in (*_OF_NUMBERS, "argsort")
        },
        lambda d, dtype=_dtype: ((d.permutation(12) + 1).to(dtype),),
        factor=16.0,
    )
add_table(
    cases,
    "spelled-sides-derived",
    {
        key: lambda x, form=form, shape=shape, dims=dims: derived(lambda y: form(_cut(y, shape), dims), x)
        for at, (name, key, form, shape, dims) in enumerate(_ALL)
        if name.split("-")[0]
        in ("sum", "mean", "amax", "logsumexp", "norm", "flip", "squeeze", "roll", "permute", "move")
        if at % 7 == 0 and torch.Size(shape).numel()
    },
    lambda d: (d.permutation(12) + 1.0,),
    factor=16.0,
)
add_refused(
    cases,
    "spelled-sides",
    lambda d: (d.permutation(12) + 1.0,),
    {
        f"{name}-{shape}-{way}": lambda x, form=form, shape=shape, way=way: form(_cut(x, shape), _dims(len(shape))[way])
        for at, (name, form) in enumerate(_TAKING.items())
        for place, shape in enumerate(_SHAPES)
        for spot, way in enumerate(_BAD)
        if (at + place + spot) % 11 == 0 and name not in ("fourier", "product", "shifted", "unique")
        if name != "index_select" or 0 not in shape  # a place beyond ends a GPU's process
    },
)
# Sizes, and how they are given: to what makes, views, spreads, repeats and splits.
_SIZES: dict[str, Any] = {
    "numbers": (2, 6),
    "list": [2, 6],
    "size": torch.Size([2, 6]),
    "rest": (3, -1),
    "rest-first": [-1, 4],
    "one": (12,),
    "number": 12,
    "rest-only": -1,
    "ones": (1, 12, 1),
    "nothing": (),
    "none-of": (0, 12),
    "rests": (-1, -1),
    "wrong": (5, 2),
    "negative": (-2, 6),
}
_SIZED: dict[str, Form] = {
    "view": lambda x, s: x.view(s),
    "reshape": lambda x, s: torch.reshape(x, s if isinstance(s, (tuple, list)) else (s,)),
    "view-parts": lambda x, s: x.view(*s),
    "unflatten": lambda x, s: x.unflatten(0, s),
    "new_zeros": lambda x, s: x.new_zeros(s),
    "ones": lambda x, s: torch.ones(s, device=x.device),
    "full": lambda x, s: x.new_full(s, 2.0),
    "repeat": lambda x, s: x[:2].repeat(s),
    "tile": lambda x, s: x[:2].tile(s if isinstance(s, (tuple, list)) else (s,)),
    "expand": lambda x, s: x[0].expand(s),
    "expand-line": lambda x, s: x[:6].expand(s),
    "broadcast_to": lambda x, s: torch.broadcast_to(x[0], s),
    "split": lambda x, s: x.split(s),
    "tensor_split": lambda x, s: x.tensor_split(s),
    "chunk": lambda x, s: x.chunk(s),
    "resize": lambda x, s: x.clone().resize_(s),
    "strided": lambda x, s: x.as_strided(s, (1,) * len(s)),
    "sum_to_size": lambda x, s: x.expand(2, 12).sum_to_size(s),
    "pad": lambda x, s: torch.nn.functional.pad(x, s),
}
_WRONG = ("rests", "wrong", "negative", "none-of")
_MAKING = ("new_zeros", "ones", "full", "repeat", "tile", "strided", "resize")
_PARTING = {"chunk": ("number",), "tensor_split": ("numbers", "list", "number", "size"), "split": ("number", "one")}


def _fits(name: str, way: str) -> bool:
    """Say whether a function answers sizes that are given in some way."""
    if name in _PARTING:
        return way in _PARTING[name]
    if (name, way) == ("repeat", "nothing"):
        return False
    if name in ("expand", "broadcast_to"):
        return way in ("numbers", "list", "size", "one", "ones", "none-of", "nothing")
    if name in _MAKING:
        return way in ("numbers", "list", "size", "one", "ones", "none-of", "nothing") and name != "strided"
    if name in ("expand-line", "sum_to_size", "pad"):
        return way == "one" if name == "sum_to_size" else way in ("numbers", "list", "size")
    return way not in (*_WRONG, "nothing") and (way not in ("number", "rest-only") or name in ("view", "reshape"))


_GIVEN = {
    (name, way): (form, sizes) for (name, form), (way, sizes) in itertools.product(_SIZED.items(), _SIZES.items())
}
add_table(
    cases,
    "spelled-sizes",
    {"-".join(key): lambda x, row=row: row[0](x, row[1]) for key, row in _GIVEN.items() if _fits(*key)},
    lambda d: (d.permutation(12) + 1.0,),
)
add_refused(
    cases,
    "spelled-sizes",
    lambda d: (d.permutation(12) + 1.0,),
    {"-".join(key): lambda x, row=row: row[0](x, row[1]) for key, row in [*_GIVEN.items()][::2] if not _fits(*key)},
)
