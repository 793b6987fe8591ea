"""Every index of one to three parts over a tensor of four dimensions, read and written; of four, any three kinds read.

Which parts are views, which are gathered and where their dimensions go follows from all parts at once: [mask, None]
wrote along another dimension, https://github.com/pytorch/pytorch/issues/158413
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import add_table, assigned

cases = Cases("conditions")
_SIDES = (4, 5, 6, 4)  # a mask of the first dimension fits the last one too
_PLAIN: dict[str, Any] = {
    "all": slice(None),
    "part": slice(1, 3),
    "stepped": slice(None, None, 2),
    "number": 1,
    "negative": -2,
    "list": [2, 0],
    "new": None,
    "rest": ...,
}
# A square of four places and a mask of two are tensors, on the device. No index names a place twice.
_KINDS = (*_PLAIN, "square", "mask")


def _every(kinds: Any, counts: Any) -> list[Any]:
    return [parts for count in counts for parts in itertools.product(kinds, repeat=count)]


# Ten kinds in each of three places, the fourth follows from them: so any three places hold any three kinds.
_FOURS = [(*three, _KINDS[sum(map(_KINDS.index, three)) % len(_KINDS)]) for three in _every(_KINDS, (3,))]
_INDICES = [parts for parts in (*_every(_KINDS, (1, 2, 3)), *_FOURS) if parts.count("rest") < 2]


def _dimension(parts: Any, at: int) -> int:
    """Return which dimension of the tensor a part takes: behind an ellipsis they count from the last."""
    before, after = (sum(kind != "new" for kind in some) for some in (parts[:at], parts[at:]))
    return len(_SIDES) - after if "rest" in parts[:at] else before


def _index(parts: Any, square: torch.Tensor, masks: Any) -> Any:
    """Return the index of some kinds of parts."""
    found = tuple(
        square if kind == "square" else masks[_dimension(parts, at)] if kind == "mask" else _PLAIN[kind]
        for at, kind in enumerate(parts)
    )
    return found if len(found) > 1 else found[0]


def _operands(d: Any, dtype: torch.dtype) -> Any:
    masks = [(torch.arange(side) + 1) % (side - 1) == 0 for side in _SIDES]
    masks = [mask | (torch.arange(len(mask)) == 0) for mask in masks]
    return d.of(dtype, *_SIDES), d.of(dtype, *_SIDES), torch.tensor([[-1, 0], [1, 2]]), masks


def _row(y: torch.Tensor) -> torch.Tensor:
    """Return the first row: written to a place of as many columns it is spread over all rows."""
    return y[(0,) * (y.dim() - 1)] if y.dim() else y


_USES: dict[str, Callable[[torch.Tensor, torch.Tensor, Any], Any]] = {
    "read": lambda x, y, at: x[at],
    "number": lambda x, y, at: assigned(x, at, 3),
    "whole": lambda x, y, at: assigned(x, at, y[at]),
    "row": lambda x, y, at: assigned(x, at, _row(y[at])),
}
# A number that is a view, a number of the host, another dtype: at one place or two.
_VALUES: dict[str, Callable[[torch.Tensor, torch.Tensor, Any], Any]] = {
    "cell": lambda x, y, at: assigned(x, at, y[1, 2, 3, 0]),
    "host": lambda x, y, at: assigned(x, at, torch.tensor(2, dtype=x.dtype)),
    "converted": lambda x, y, at: assigned(x, at, (y[at] > 0).to(torch.uint8)),
}
for _use, _form in _USES.items():
    for _dtype, _first in (
        *((torch.float32, kind) for kind in _KINDS),
        *((dtype, "") for dtype in (torch.int64, torch.bool, torch.float16) if _use != "row"),
    ):
        add_table(
            cases,
            f"indexed-{_use}{'-' * bool(_first)}{_first}-{str(_dtype)[6:]}",
            {
                ",".join(parts): lambda x, y, *given, form=_form, parts=parts: form(x, y, _index(parts, *given))
                for parts in (_INDICES if _first else _INDICES[len(_use) % 7 :: 7])
                if parts[0] == (_first or parts[0]) and (len(parts) < 4 or _use == "read")
            },
            lambda d, dtype=_dtype: _operands(d, dtype),
        )
for _dtype in (torch.float32, torch.int64):
    add_table(
        cases,
        f"indexed-values-{str(_dtype)[6:]}",
        {
            f"{value}-{','.join(parts)}": lambda x, y, *given, form=form, parts=parts: form(x, y, _index(parts, *given))
            for value, form in _VALUES.items()
            for parts in [some for some in _INDICES if len(some) < 3][:: 1 if _dtype == torch.float32 else 5]
        },
        lambda d, dtype=_dtype: _operands(d, dtype),
    )


def _added(x: torch.Tensor, y: torch.Tensor, square: torch.Tensor, masks: Any, parts: Any) -> Any:
    """Return x with numbers added at its places, and with one put there; None stands for a whole dimension."""
    pair = square[0] % 3
    at = tuple(
        {"all": None, "list": pair, "square": square, "mask": masks[place]}[kind] for place, kind in enumerate(parts)
    )
    whole = tuple(slice(None) if one is None else one for one in at)
    put = torch.ops.aten.index_put
    return [put(x, at, y[whole], accumulate=True), put(x, at, y[1, 2, 3, 0])]


for _dtype in (torch.float32, torch.int64, torch.bool, torch.float16):
    add_table(
        cases,
        f"indexed-added-{str(_dtype)[6:]}",
        {
            ",".join(parts): lambda x, y, square, masks, parts=parts: _added(x, y, square, masks, parts)
            for parts in _every(("all", "list", "square", "mask"), (1, 2, 3, 4))[:: 1 if _dtype == torch.float32 else 7]
            if set(parts) != {"all"}
        },
        lambda d, dtype=_dtype: _operands(d, dtype),
        since="2.9",  # before it the CPU is wrong: https://github.com/pytorch/pytorch/issues/158413
    )
