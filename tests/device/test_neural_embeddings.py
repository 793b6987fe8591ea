"""Embeddings and bags: every argument by threes, indices of both dtypes and every layout, with the table's gradient."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.covering import covering, label

cases = Cases("neural")
FLOATS = (torch.float32, torch.float16, torch.bfloat16)


_TABLE: dict[str, tuple[Any, ...]] = {
    "padding": (None, 0, 3, -1),
    "max_norm": (None, 1.0),
    "norm_type": (2.0, 1.0),
    "by_frequency": (False, True),
    "shape": ((7,), (3, 5), (), (0,), (2, 3, 2), (1, 1)),
    "index": (torch.int64, torch.int32),
    "layout": ("plain", "transposed", "sliced", "expanded", "repeated"),
    "table": ("plain", "transposed", "sliced"),
    "gradient": ("plain", "transposed", "expanded"),
    "dtype": FLOATS,
}


def _indices(index: torch.Tensor, layout: str) -> torch.Tensor:
    if layout == "repeated":
        return index % 2
    if index.dim() == 0 or index.numel() == 0:
        return index
    if layout == "transposed":
        return index.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "sliced":
        return torch.stack([index, index + 1], -1)[..., 0]
    return index[:1].expand(index.shape) if layout == "expanded" else index


def _embedded(row: Any) -> Any:
    def act(table: Any, index: Any, grad: Any) -> Any:
        start = leaf(table)
        weight = {
            "plain": lambda x: x[:6, :4].contiguous(),
            "transposed": lambda x: x[:4, :6].t(),
            "sliced": lambda x: x[1:7, 2:6],
        }
        base = weight[row["table"]](start)
        if row["max_norm"] is not None:  # it writes into the table: of its own copy
            base = base.detach().clone()
        places = _indices(index.to(row["index"]), row["layout"])
        options = {"padding_idx": row["padding"], "max_norm": row["max_norm"], "norm_type": row["norm_type"]}
        y = F.embedding(places, base, scale_grad_by_freq=row["by_frequency"], **options)
        if row["max_norm"] is not None:
            return y, base
        given = {
            "plain": grad,
            "transposed": grad.transpose(0, -1).contiguous().transpose(0, -1),
            "expanded": grad[..., :1].expand(grad.shape),
        }
        y.backward(given[row["gradient"]])
        return y, start.grad

    return act


for _number, _row in enumerate(
    covering("embedding", _TABLE, lambda row: row["max_norm"] is None or row["dtype"] == torch.float32)
):
    cases.add(
        f"neural-embedding-{_number}-" + label(_row),
        _embedded(_row),
        make=lambda d, row=_row: (
            d.normal(8, 8, dtype=row["dtype"]),
            d.integers(0, 6, *row["shape"]),
            d.normal(*row["shape"], 4, dtype=row["dtype"]),
        ),
        terms=64 if _row["dtype"] == torch.float32 else 16,
        since="2.0",
        states=("fresh", "polluted"),
        deterministic=False,
        may_be_missing=True,
    )

_BAGS: dict[str, tuple[Any, ...]] = {
    "mode": ("sum", "mean", "max"),
    "offsets": ("given", "rows", "last", "empty_bag"),
    "padding": (None, 1),
    "weights": (False, True),
    "by_frequency": (False, True),
    "index": (torch.int64, torch.int32),
    "max_norm": (None, 1.0),
}


def _bags_allowed(row: Any) -> bool:
    if row["weights"] and (row["mode"] != "sum" or row["by_frequency"]):
        return False
    return not (row["mode"] == "max" and row["by_frequency"])


def _bagged(row: Any) -> Any:
    def act(table: Any, index: Any, weights: Any) -> Any:
        start, factors = leaf(table), leaf(weights)
        base = start if row["max_norm"] is None else start.detach().clone()
        places = index.to(row["index"])
        offsets = {"given": [0, 2, 7], "last": [0, 2, 7, 12], "empty_bag": [0, 4, 4]}.get(row["offsets"])
        y = F.embedding_bag(
            places.reshape(3, 4) if offsets is None else places,
            base,
            None if offsets is None else torch.tensor(offsets, device=table.device, dtype=row["index"]),
            mode=row["mode"],
            padding_idx=row["padding"],
            scale_grad_by_freq=row["by_frequency"],
            include_last_offset=row["offsets"] == "last",
            max_norm=row["max_norm"],
            per_sample_weights=(factors.reshape(3, 4) if offsets is None else factors) if row["weights"] else None,
        )
        if row["max_norm"] is not None:
            return y, base
        (y * torch.arange(1, 5, device=table.device)).sum().backward()
        return y, start.grad, factors.grad if row["weights"] else 0

    return act


for _number, _row in enumerate(covering("bags", _BAGS, _bags_allowed)):
    cases.add(
        f"neural-bag-{_number}-" + label(_row),
        _bagged(_row),
        make=lambda d: (d.normal(6, 4), d.integers(0, 6, 12), d.normal(12)),
        terms=64,
        since="2.0",
        states=("fresh",),
        deterministic=False,
        may_be_missing=True,
    )


for _dtype in (torch.int64, torch.int32, torch.uint8):
    cases.add(
        f"neural-one-hot-{str(_dtype)[6:]}",
        lambda index: [F.one_hot(index.long()), F.one_hot(index.long().t(), 9), F.one_hot(index.long()[:, 1:3], 8)],
        make=lambda d, dtype=_dtype: (d.integers(0, 6, 4, 5).to(dtype),),
        states=("fresh",),
    )
