"""Attention: each argument with each of its values, by twos; rows wholly masked; with and without gradients."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import covering, derived, label, leaf
from engine.answers import attempt

cases = Cases("scenarios")
_GQA = "enable_gqa" in str(getattr(getattr(F, "scaled_dot_product_attention", None), "__doc__", ""))


# Queries, keys, width of queries and values, heads of queries and of keys and values.
SIZES = {
    "square": (7, 7, 8, 8, 4, 4),
    "odd": (5, 6, 7, 7, 3, 3),
    "grouped": (6, 6, 8, 8, 4, 2),
    "narrow_values": (5, 6, 16, 4, 2, 2),
}
MASKS = ("none", "causal", "float_rows", "keys", "expanded", "all_rows")


def _mask(kind: str, draws: torch.Tensor, dtype: torch.dtype) -> Any:
    """Return attn_mask of (batch, heads, queries, keys), or a shape that broadcasts to it."""
    allowed = draws > -0.4
    allowed[..., 0] = True
    if kind in ("none", "causal"):
        return None
    if kind == "bool":
        return allowed
    if kind in ("bool_rows", "float_rows"):
        allowed[:, :, 0] = False  # a query that sees nothing
        return allowed if kind == "bool_rows" else torch.zeros_like(draws).masked_fill(~allowed, float("-inf"))
    if kind == "all_rows":
        return torch.zeros_like(allowed)
    if kind == "keys":
        return allowed[:, :1, :1]
    if kind == "heads":
        return draws[:1, :, :1]
    if kind == "plain":
        return allowed[0, 0]
    if kind == "expanded":
        return draws[:, :1].expand(draws.shape)
    return draws.mT.contiguous().mT if kind == "transposed" else draws


def _laid(x: torch.Tensor, layout: str) -> torch.Tensor:
    """Return (batch, heads, length, width) of (batch, length, heads, width), or of a part of a fused projection."""
    if layout == "dense":
        return x.transpose(1, 2).contiguous()
    if layout == "fused":
        return torch.cat([x * 2, x, x + 1], dim=-1)[..., x.shape[-1] : 2 * x.shape[-1]].transpose(1, 2)
    return x.transpose(1, 2)


def _asked(row: Any) -> Any:
    def act(q: Any, k: Any, v: Any, draws: Any, grad: Any) -> Any:
        starts = [leaf(one) if row["gradients"] else one for one in (q, k, v)]
        options: dict[str, Any] = {} if row["scale"] is None else {"scale": row["scale"]}
        if SIZES[row["size"]][4] != SIZES[row["size"]][5]:
            options["enable_gqa"] = True
        mask = _mask(row["mask"], draws, q.dtype)
        parts = [_laid(one, row["layout"]) for one in starts]
        y = F.scaled_dot_product_attention(*parts, attn_mask=mask, is_causal=row["mask"] == "causal", **options)
        if not row["gradients"]:
            return y
        y.backward(grad.transpose(1, 2))
        return y, [one.grad for one in starts]

    return act


def _make(row: Any) -> Any:
    queries, keys, width, values, heads, groups = SIZES[row["size"]]

    def make(d: Any) -> Any:
        dtype = row["dtype"]
        return (
            d.normal(2, queries, heads, width, dtype=dtype),
            d.normal(2, keys, groups, width, dtype=dtype),
            d.normal(2, keys, groups, values, dtype=dtype),
            d.normal(2, heads, queries, keys, dtype=dtype),
            d.normal(2, queries, heads, values, dtype=dtype),
        )

    return make


_FACTORS: dict[str, tuple[Any, ...]] = {
    "size": tuple(SIZES),
    "mask": MASKS,
    "layout": ("heads_second", "fused"),
    "dtype": (torch.float32,),
    "scale": (None, 0.3),
    "gradients": (False, True),
}


def _is_allowed(row: Any) -> bool:
    # Where one key is seen its weight is one: what is left of a gradient is rounding.
    if row["gradients"] and row["size"] == "one_key":
        return False
    is_alone = SIZES[row["size"]][0] == 1 and row["mask"] == "causal"
    if row["gradients"] and is_alone and row["dtype"] != torch.float32:
        return False
    return row["scale"] is None or row["dtype"] == torch.float32


for _row in covering(_FACTORS, _is_allowed):
    _grouped = SIZES[_row["size"]][4] != SIZES[_row["size"]][5]
    if _grouped and not _GQA:
        continue
    cases.add(
        "neural-attention-" + label(_row),
        _asked(_row),
        make=_make(_row),
        terms=1024 if _row["dtype"] == torch.float32 else 16,
        floor=0.25 if _row["dtype"] == torch.float32 else 0.0,
        since="2.5" if _grouped or "rows" in _row["mask"] else "2.1",
        states=("fresh", "polluted"),
        deterministic=False,
    )


# Other ranks, and what one sees of dropout: with p = 0 nothing, in training the mean.
@cases.case(
    "neural-attention-ranks", make=lambda d: (d.normal(2, 3, 2, 5, 8), d.normal(2, 3, 2, 6, 8)), terms=1024, since="2.1"
)
def _ranks(q: Any, k: Any) -> Any:
    ask = F.scaled_dot_product_attention
    return [
        ask(q, k, k),
        ask(q[0], k[0], k[0]),
        ask(q[0, 0], k[0, 0], k[0, 0]),
        ask(q[0, :, 0], k[0, :, 0], k[0, :, 1]),
    ]


# Sizes of batches and heads that broadcast: of queries, of keys, of values.
_BROADCAST = {
    "keys": ((2, 3, 5, 8), (1, 3, 6, 8), (1, 3, 6, 8)),
    "values": ((2, 3, 5, 8), (2, 3, 6, 8), (1, 1, 6, 8)),
    "queries": ((1, 1, 5, 8), (2, 3, 6, 8), (2, 3, 6, 8)),
    "ranks": ((2, 3, 5, 8), (3, 6, 8), (6, 8)),
    "deep": ((2, 1, 3, 5, 8), (1, 2, 3, 6, 8), (2, 2, 1, 6, 8)),
}
_MASKED: dict[str, Any] = {
    "causal": lambda q: {"is_causal": True},
    "bool": lambda q: {"attn_mask": torch.ones(5, 6, dtype=torch.bool, device=q.device).tril(1)},
}


def _spread_out(q: Any, k: Any, v: Any) -> Any:
    return {
        f"{name}-{kind}": attempt(
            lambda shapes=shapes, mask=mask: derived(
                lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **mask(q)),
                *(one.flatten()[: prod(shape)].view(shape) for one, shape in zip((q, k, v), shapes)),
            )
        )
        for name, shapes in _BROADCAST.items()
        for kind, mask in _MASKED.items()
    }


cases.add(
    "neural-attention-broadcast",
    _spread_out,
    make=lambda d: (d.normal(2, 2, 3, 6, 8), d.normal(2, 2, 3, 6, 8), d.normal(2, 2, 3, 6, 8)),
    terms=1024,
    floor=0.25,
    since="2.1",
    states=("fresh",),
    may_be_missing=True,
    deterministic=False,
)


@cases.check("neural-attention-dropout", since="2.1", may_be_missing=True)
def _dropout(bench: Any) -> None:
    with bench.device_run() as run:
        torch.manual_seed(3)
        q = torch.zeros(4, 8, 64, 16, device=run.device)
        v = torch.ones(4, 8, 64, 16, device=run.device)
        y = F.scaled_dot_product_attention(q, q, v, dropout_p=0.25).cpu().clone()
        still = F.scaled_dot_product_attention(q, q, v, dropout_p=0.0).cpu().clone()
    assert torch.allclose(still, torch.ones_like(still), atol=1e-5), "without dropout the weights do not sum to one"
    assert abs(float(y.mean()) - 1) < 0.02, f"mean {float(y.mean()):.3f}: what is kept is not scaled"
    assert 0.04 < float(y[..., 0].std()) < 0.12, (
        f"deviation {float(y[..., 0].std()):.3f}: weights are not dropped one by one"
    )


# The module: every argument of its constructor and of its call.
_MODULE: dict[str, tuple[Any, ...]] = {
    "batch_first": (True, False),
    "bias": (True, False),
    "add_bias_kv": (False, True),
    "add_zero_attn": (False, True),
    "own_widths": (False, True),
    "padding": ("none", "bool", "rows"),
    "mask": ("none", "bool", "float", "causal"),
    "weights": ("averaged", "none"),
    "training": (True, False),
    "itself": (False, True),
}


def _module_allowed(row: Any) -> bool:
    if row["itself"] and row["own_widths"]:
        return False
    return not (row["padding"] == "float" and row["mask"] in ("bool", "causal")) and not (
        row["padding"] in ("bool", "rows") and row["mask"] in ("float",)
    )


def _weights_of(d: Any, row: Any) -> dict[str, Any]:
    module = _build(row, torch.device("cpu"), torch.float32)
    return {name: d.normal(*one.shape, scale=0.4) for name, one in module.named_parameters()}


def _build(row: Any, device: Any, dtype: Any) -> torch.nn.MultiheadAttention:
    widths = {"kdim": 6, "vdim": 10} if row["own_widths"] else {}
    options = {name: row[name] for name in ("batch_first", "bias", "add_bias_kv", "add_zero_attn")}
    return torch.nn.MultiheadAttention(8, 2, device=device, dtype=dtype, **options, **widths).train(row["training"])


def _module_masks(row: Any, draws: torch.Tensor, dtype: torch.dtype) -> Any:
    blocked = draws > 0.5
    blocked[..., 0] = False
    padding = blocked[:, 0, 0]
    if row["padding"] == "rows":
        padding = padding.clone()
        padding[1] = True
    if row["padding"] == "float":
        padding = draws[:, 0, 0].contiguous()
    mask: Any = {"bool": blocked[0, 0], "float": draws[0, 0], "heads": blocked.reshape(-1, *blocked.shape[2:])}.get(
        row["mask"]
    )
    if row["mask"] == "causal":
        mask = torch.ones(blocked.shape[2:], dtype=torch.bool, device=draws.device).triu(1)
    return None if row["padding"] == "none" else padding, mask


def _called(row: Any) -> Any:
    def act(run: Any, q: Any, k: Any, v: Any, draws: Any, weights: Any) -> Any:
        module = _build(row, run.device, q.dtype)
        module.load_state_dict(weights)
        start = leaf(q)
        keys, values = (start, start) if row["itself"] else (k, v)
        order = (lambda x: x) if row["batch_first"] else (lambda x: x.transpose(0, 1))
        draws = draws[..., : keys.shape[1]]
        padding, mask = _module_masks(row, draws, q.dtype)
        y, seen = module(
            *(order(one) for one in (start, keys, values)),
            key_padding_mask=padding,
            attn_mask=mask,
            need_weights=row["weights"] != "none",
            average_attn_weights=row["weights"] == "averaged",
            is_causal=row["mask"] == "causal" and row["weights"] == "none",
        )
        if row["training"]:
            (y * torch.arange(8, device=q.device)).sum().backward()
        return y, seen, start.grad, [one.grad for one in module.parameters()]

    return act


for _number, _row in enumerate(covering(_MODULE, _module_allowed)):
    cases.add(
        f"neural-heads-{_number}-" + label(_row),
        _called(_row),
        make=lambda d, row=_row: (
            d.normal(3, 5, 8),
            d.normal(3, 5, 6 if row["own_widths"] else 8),
            d.normal(3, 5, 10 if row["own_widths"] else 8),
            d.normal(3, 2, 5, 5),
            _weights_of(d, row),
        ),
        terms=4096,
        floor=0.25,
        since="2.1",
        states=("fresh",),
        deterministic=False,
    )
