"""Attention: scaled dot products, masks, groups of heads, and the module around them."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import backward, leaf

cases = Cases("regressions")
HALVES = (torch.float16, torch.bfloat16)


def _triple(*shape: int, dtype: torch.dtype = torch.float32) -> Any:
    """Three bases of (batch, length, heads, width); the length grows in another shape."""
    b, s, h, w = shape
    return lambda d: tuple(d.normal(b, s + d.k, h, w, dtype=dtype) for _ in range(3))


def _heads_first(*bases: Any) -> Any:
    return tuple(base.transpose(1, 2) for base in bases)


def _strided_attention(q: Any, k: Any, v: Any) -> Any:
    query, key, value = _heads_first(q, k, v)
    length = q.shape[1]
    mask = torch.ones(length, length, dtype=torch.bool, device=q.device).tril(2)
    return (
        F.scaled_dot_product_attention(query, key, value),
        F.scaled_dot_product_attention(query, key, value, attn_mask=mask),
        F.scaled_dot_product_attention(query, key, value, is_causal=True),
        F.scaled_dot_product_attention(query, key.contiguous(), value),
    )


# https://github.com/pytorch/pytorch/issues/163597: SDPA fast path wrong for non-contiguous q/k/v (2.8.0 regression;
# breaks sentence-transformers embeddings)
for _dtype in (torch.float32, torch.float16):
    cases.add(
        f"issue-163597-{str(_dtype)[6:]}",
        _strided_attention,
        issue="163597",
        make=_triple(2, 10, 4, 64, dtype=_dtype),
        terms=64,
        since="2.0",
    )


@cases.case("issue-163597-backward", issue="163597", make=_triple(2, 10, 4, 64), terms=256, since="2.0")
def _strided_attention_backward(q: Any, k: Any, v: Any) -> Any:
    starts = [leaf(base) for base in (q, k, v)]
    return backward(F.scaled_dot_product_attention(*_heads_first(*starts)), *starts)


def _grouped(heads: int, groups: int, keys: int, width: int, dtype: torch.dtype) -> Any:
    return lambda d: (
        d.normal(1, heads, 1 + d.k, width, dtype=dtype),
        d.normal(1, groups, keys, width, dtype=dtype),
        d.normal(1, groups, keys, width, dtype=dtype),
    )


def _grouped_attention(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


# https://github.com/pytorch/pytorch/issues/174861: 2-pass SDPA kernel: out-of-bounds memory and wrong values for long
# keys
for _dtype in HALVES:
    cases.add(
        f"issue-174861-{str(_dtype)[6:]}",
        _grouped_attention,
        issue="174861",
        make=_grouped(32, 2, 1024, 128, _dtype),
        terms=1024,
        since="2.5",
    )


def _causal_attention(q: Any, k: Any, v: Any) -> Any:
    """The answers, and those for a future that was changed: earlier rows must not see it."""
    plain = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    kept = []
    for row in (0, 1, 6, 30):
        key, value = k.clone(), v.clone()
        key[..., row + 1 :, :] += 100
        value[..., row + 1 :, :] += 100
        changed = F.scaled_dot_product_attention(q, key, value, is_causal=True)
        kept.append(changed[..., : row + 1, :])
    return plain, kept


# https://github.com/pytorch/pytorch/issues/195910: SDPA is_causal=True leaks future tokens in fp16/bf16
for _dtype in (torch.float32, *HALVES):
    cases.add(
        f"issue-195910-{str(_dtype)[6:]}",
        _causal_attention,
        issue="195910",
        terms=64,
        since="2.0",
        make=lambda d, dtype=_dtype: tuple(d.normal(1, 4, 64 + d.k, 64, dtype=dtype) for _ in range(3)),
    )

_MASKS = ((2, 1, 8, 8), (1, 1, 8, 8), (2, 1, 1, 8), (2, 4, 8, 8), (8, 8))


def _masked(d: Any) -> Any:
    qkv = tuple(d.normal(2, 4, 8, 64 + 8 * d.k) for _ in range(3))
    kept = [d.uniform(0, 1, *shape) > 0.4 for shape in _MASKS]
    for one in kept:
        one[..., 0] = True  # a row without any key has no answer
    return (*qkv, kept)


# https://github.com/pytorch/pytorch/issues/184180: SDPA vector kernel mis-indexes a broadcast mask
@cases.case("issue-184180", issue="184180", make=_masked, terms=64, since="2.0")
def _broadcast_masks(q: Any, k: Any, v: Any, kept: Any) -> Any:
    answers = []
    for mask in kept:
        weights = torch.zeros(mask.shape, dtype=q.dtype, device=q.device).masked_fill(~mask, float("-inf"))
        answers += [F.scaled_dot_product_attention(q, k, v, attn_mask=one) for one in (mask, weights)]
    return answers


# https://github.com/pytorch/pytorch/issues/184122: SDPA ignores scale= because the cached graph omits it from the key
@cases.case("issue-184122", issue="184122", make=_triple(2, 9, 4, 32), terms=32, since="2.1")
def _scale_changes_between_calls(q: Any, k: Any, v: Any) -> Any:
    scales = (None, 2.0, 0.5, None)
    return [F.scaled_dot_product_attention(q, k, v, scale=scale) for scale in scales]


def _narrow_value(dtype: torch.dtype) -> Any:
    return lambda d: (
        d.normal(1, 1, 16 + d.k, 32, dtype=dtype),
        d.normal(1, 1, 16 + d.k, 32, dtype=dtype),
        d.normal(1, 1, 16 + d.k, 24, dtype=dtype),
    )


# https://github.com/pytorch/pytorch/issues/176767: SDPA with value dim != query dim returns wrong shape/uninitialised
# rows
for _dtype in (torch.float32, *HALVES):
    cases.add(
        f"issue-176767-{str(_dtype)[6:]}",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        issue="176767",
        make=_narrow_value(_dtype),
        terms=32,
        since="2.0",
    )


# https://github.com/pytorch/pytorch/issues/149132: SDPA with enable_gqa and a float mask aborts the process
@cases.case(
    "issue-149132",
    issue="149132",
    terms=16,
    since="2.5",
    make=lambda d: (
        d.normal(1, 4, 5 + d.k, 16),
        d.normal(1, 2, 5 + d.k, 16),
        d.normal(1, 2, 5 + d.k, 16),
        d.normal(5 + d.k, 5 + d.k),
    ),
)
def _grouped_with_float_mask(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


def _autocast(dtype: torch.dtype) -> Any:
    def check(bench: Any) -> None:
        host = [bench.draw("issue-141774").normal(1, 2, 6, 16) for _ in range(2)]
        with bench.device_run() as run:
            q, k = run.bring(host)
            with torch.autocast(run.device.type, dtype=dtype):
                y = F.scaled_dot_product_attention(q, k, k.to(dtype))
                product = torch.matmul(q, k.transpose(-1, -2).to(dtype))
            answer = y.float().cpu()
            product_dtype = product.dtype
        want = F.scaled_dot_product_attention(host[0].double(), host[1].double(), host[1].double())
        assert product_dtype == dtype, f"matmul under autocast gave {product_dtype}"
        assert y.dtype == dtype, f"attention under autocast gave {y.dtype}"
        off = float((answer.double() - want).abs().max())
        bound = 16 * torch.finfo(dtype).eps * float(want.abs().max())
        assert off <= bound, f"attention under autocast is off by {off:.3g}, allowed {bound:.3g}"

    return check


# https://github.com/pytorch/pytorch/issues/141774: autocast does not cover scaled_dot_product_attention
for _dtype in HALVES:
    # The CPU knows float16 autocast since 2.4; MPS has autocast since 2.5.
    cases.add(f"issue-141774-{str(_dtype)[6:]}", _autocast(_dtype), issue="141774", check=True, since="2.5")


def _multi_head(d: Any) -> Any:
    x = d.normal(3, 7 + d.k, 64)
    padding = torch.zeros(3, 7 + d.k, dtype=torch.bool)
    padding[0, 5:], padding[2, 2:] = True, True
    mask = d.bools(7 + d.k, 7 + d.k).triu(1)
    return x, padding, mask, d.normal(192, 64, scale=0.3), d.normal(192), d.normal(64, 64, scale=0.3), d.normal(64)


# https://github.com/pytorch/pytorch/issues/111479: multi_head_attention_forward does not match cpu (upstream xfail
# for fp32/fp16/bf16 up to 2.14)
@cases.case("issue-111479", issue="111479", make=_multi_head, terms=64 * 64)
def _multi_head_attention(
    run: Any, x: Any, padding: Any, mask: Any, w_in: Any, b_in: Any, w_out: Any, b_out: Any
) -> Any:
    module = torch.nn.MultiheadAttention(64, 4, batch_first=True).to(run.device, run.cast(x.dtype)).eval()
    with torch.no_grad():
        for parameter, value in ((module.in_proj_weight, w_in), (module.in_proj_bias, b_in)):
            parameter.copy_(value)
        module.out_proj.weight.copy_(w_out)
        module.out_proj.bias.copy_(b_out)
    answers = [
        module(x, x, x, key_padding_mask=padding, attn_mask=mask, need_weights=True),
        module(x, x, x, key_padding_mask=padding, attn_mask=mask, need_weights=False)[0],
        module(x, x, x, key_padding_mask=padding, need_weights=False)[0],
        module(x, x[:, 1:], x[:, 1:], need_weights=False)[0],
    ]
    start = leaf(x)
    y = module.train()(start, start, start, key_padding_mask=padding, need_weights=False)[0]
    answers.append(backward(y, start, *module.parameters()))
    return answers


WIDTH = 16


def _heads(d: Any, *, queries: int = 9, keys: int = 9, heads: int = 4, groups: int = 4, rows: int = 2) -> Any:
    """Return q, k, v as a projection leaves them, (rows, length, heads, width): the cases permute on the device."""
    return tuple(
        d.normal(rows + d.k, length, count, WIDTH)
        for length, count in ((queries, heads), (keys, groups), (keys, groups))
    )


def _permuted(*bases: Any) -> Any:
    return tuple(base.permute(0, 2, 1, 3) for base in bases)


# https://github.com/pytorch/pytorch/issues/82707: BERT fine-tuning on GLUE MRPC learns far worse on mps than on cpu
# https://github.com/pytorch/pytorch/issues/78511: attention-score matmul wrong when K is permute()d then transpose()d
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


for _dtype in (torch.float32, torch.bfloat16):
    for _kind in (
        ("none", "bool", "float", "broadcast", "causal", "scale") if _dtype == torch.float32 else ("broadcast",)
    ):

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
