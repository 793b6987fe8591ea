"""Sparse tensors of coordinates in every form that they may have, and what is defined of a sparse answer."""

from __future__ import annotations

from typing import Any

import torch

# (shape, sides that are sparse, places): in any order, some places several times.
_PLACES: dict[str, tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]] = {
    "alone": ((4, 6), ((3, 0, 3, 1, 0), (5, 2, 1, 4, 0))),
    "equal": ((4, 6), ((3, 0, 3, 1, 3, 0), (5, 2, 5, 4, 5, 2))),
    "one-place": ((4, 6), ((2, 2, 2), (3, 3, 3))),
    "ends": ((4, 6), ((3, 0), (5, 0))),
    "row": ((1, 6), ((0, 0, 0, 0), (4, 1, 4, 0))),
    "column": ((5, 1), ((4, 0, 4), (0, 0, 0))),
    "nothing": ((4, 6), ((), ())),
    "no-rows": ((0, 6), ((), ())),
    "no-columns": ((4, 0), ((), ())),
    "rows": ((4, 6), ((2, 0, 2, 3),)),
    "rows-nothing": ((4, 6), ((),)),
    "rows-no-columns": ((4, 0), ((2, 0, 2),)),
    "line": ((7,), ((6, 0, 6, 2),)),
    "deep": ((2, 3, 4), ((1, 0, 1, 0, 1), (2, 0, 2, 1, 0), (3, 0, 3, 2, 1))),
    "deep-rows": ((3, 2, 4), ((2, 0, 2),)),
    "deep-lines": ((3, 2, 4), ((2, 0, 2, 1), (1, 0, 1, 1))),
    "no-dimensions": ((), ()),
}
KINDS = (*_PLACES, "coalesced", "rows-coalesced", "deep-coalesced", "stepped")
_LIKE = {"coalesced": "equal", "rows-coalesced": "rows", "deep-coalesced": "deep", "stepped": "equal"}


def shape_of(kind: str) -> tuple[int, ...]:
    """Return the shape of a kind."""
    return _PLACES[_LIKE.get(kind, kind)][0]


def made(kind: str, numbers: torch.Tensor) -> torch.Tensor:
    """Return a sparse tensor of a kind, of the dtype and on the device of some numbers (72 are enough)."""
    shape, sides = _PLACES[_LIKE.get(kind, kind)]
    count = len(sides[0]) if sides else 2
    places = torch.tensor(sides, dtype=torch.int64, device=numbers.device).reshape(len(sides), count)
    rest = shape[len(sides) :]
    step = 2 if kind == "stepped" else 1
    length = count * int(torch.Size(rest).numel())
    values = numbers[: length * step : step].reshape(count, *rest)
    if kind == "stepped":  # neither the places nor the values lie one after another
        places = places.t().contiguous().t()
    found = torch.sparse_coo_tensor(places, values, shape)
    return found.coalesce() if kind.endswith("coalesced") else found


def told(answer: Any) -> Any:
    """Return what is defined of an answer: of a sparse one its numbers, its form, and its order where it says so."""
    if isinstance(answer, (list, tuple)):
        return [told(one) for one in answer]
    if not isinstance(answer, torch.Tensor) or answer.layout == torch.strided:
        return answer
    if answer.layout != torch.sparse_coo:
        return [answer.to_dense(), str((answer.layout, tuple(answer.shape)))]
    form = (
        tuple(answer.shape),
        answer.sparse_dim(),
        answer.dense_dim(),
        not answer.is_coalesced() or _in_order(answer),
    )
    return [answer.to_dense(), str(form)]


def _in_order(one: torch.Tensor) -> bool:
    """Say whether the places of a tensor that is coalesced come in order, each of them once."""
    places = one._indices().t().tolist()
    return all(first < second for first, second in zip(places, places[1:]))
