"""pytorch#82707, T7: attention in every form a transformer asks for it."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf

cases = Cases("transformers")
WIDTH = 16


def _heads(d: Any, *, queries: int = 9, keys: int = 9, heads: int = 4, groups: int = 4, rows: int = 2) -> Any:
    """Return q, k, v as a projection leaves them, (rows, length, heads, width): the cases permute on the device."""
    return tuple(
        d.normal(rows + d.k, length, count, WIDTH)
        for length, count in ((queries, heads), (keys, groups), (keys, groups))
    )


def _permuted(*bases: Any) -> Any:
    return tuple(base.permute(0, 2, 1, 3) for base in bases)


@cases.case("82707-t7-eager-permuted-keys", issues=("82707", "78511"), terms=64, make=_heads)
def _scores_of_permuted_keys(q: Any, k: Any, v: Any) -> Any:
    q, k, v = _permuted(q, k, v)
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(WIDTH)
    return scores, torch.matmul(F.softmax(scores, dim=-1), v).transpose(1, 2).reshape(q.shape[0], -1, 4 * WIDTH)


def _masks(d: Any) -> Any:
    allowed = d.bools(9, 9)
    allowed[:, 0] = True
    row = d.bools(1, 1, 1, 9)
    row[..., 0] = True
    return {"bool": allowed, "float": d.normal(9, 9), "broadcast": row}


for _dtype in (torch.float32, torch.float16, torch.bfloat16):
    for _kind in ("none", "bool", "float", "broadcast", "causal", "scale"):

        def _attend(run: Any, bases: Any, masks: Any, kind: str = _kind) -> Any:
            q, k, v = (leaf(base) for base in bases)
            options = {"causal": {"is_causal": True}, "scale": {"scale": 0.7}}.get(kind, {})
            mask = masks.get(kind)
            if mask is not None and mask.is_floating_point():
                mask = mask.to(q.dtype)
            out = F.scaled_dot_product_attention(*_permuted(q, k, v), attn_mask=mask, **options)
            out.float().pow(2).sum().backward()
            return out, q.grad, k.grad, v.grad

        cases.add(
            f"82707-t7-sdpa-{_kind}-{str(_dtype)[6:]}",
            _attend,
            issues=("82707", "163597"),
            since="2.1",
            terms=256,
            deterministic=False,
            make=lambda d, dtype=_dtype: (tuple(base.to(dtype) for base in _heads(d)), _masks(d)),
        )


@cases.case(
    "82707-t7-sdpa-causality",
    issue="82707",
    since="2.0",
    terms=64,
    make=lambda d: (*_heads(d, queries=33 + d.k, keys=33 + d.k), d.normal(2 + d.k, 33 + d.k, 4, WIDTH)),
)
def _later_keys_do_not_reach_earlier_queries(q: Any, k: Any, v: Any, other: Any) -> Any:
    half = q.shape[1] // 2
    changed = torch.cat([v[:, :half], other[:, half:]], dim=1)
    first = F.scaled_dot_product_attention(*_permuted(q, k, v), is_causal=True)
    second = F.scaled_dot_product_attention(*_permuted(q, k, changed), is_causal=True)
    return first, second, (first[:, :, :half] - second[:, :, :half]).abs().amax()


@cases.case(
    "82707-t7-grouped-decode-1024",
    issue="82707",
    since="2.5",
    terms=1024,
    make=lambda d: _heads(d, queries=1, keys=1024 - 7 * d.k, heads=8, groups=2, rows=1),
)
def _one_query_meets_a_long_cache(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(*_permuted(q, k, v), enable_gqa=True)


@cases.case(
    "82707-t7-multi-head-module",
    issue="82707",
    terms=1024,
    deterministic=False,
    make=lambda d: (
        d.normal(7 + d.k, 3, 32),
        d.normal(96, 32, scale=0.4),
        d.normal(96),
        d.normal(32, 32, scale=0.4),
        d.normal(32),
    ),
)
def _multi_head_attention_forward(x: Any, inner: Any, inner_bias: Any, outer: Any, outer_bias: Any) -> Any:
    x = leaf(x)
    out, weights = F.multi_head_attention_forward(
        x, x, x, 32, 4, inner, inner_bias, None, None, False, 0.0, outer, outer_bias, training=False
    )
    out.pow(2).sum().backward()
    return out, weights, x.grad
