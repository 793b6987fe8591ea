"""Regressions in scaled dot-product attention and multi-head attention."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import backward, leaf

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


for _dtype in (torch.float32, *HALVES):
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


@cases.case("issue-184180", issue="184180", make=_masked, terms=64, since="2.0")
def _broadcast_masks(q: Any, k: Any, v: Any, kept: Any) -> Any:
    answers = []
    for mask in kept:
        weights = torch.zeros(mask.shape, dtype=q.dtype, device=q.device).masked_fill(~mask, float("-inf"))
        answers += [F.scaled_dot_product_attention(q, k, v, attn_mask=one) for one in (mask, weights)]
    return answers


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


for _dtype in (torch.float32, *HALVES):
    cases.add(
        f"issue-176767-{str(_dtype)[6:]}",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        issue="176767",
        make=_narrow_value(_dtype),
        terms=32,
        since="2.0",
    )


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


for _dtype in HALVES:
    # The CPU knows float16 autocast since 2.4; MPS has autocast since 2.5.
    cases.add(f"issue-141774-{str(_dtype)[6:]}", _autocast(_dtype), issue="141774", check=True, since="2.5")


def _multi_head(d: Any) -> Any:
    x = d.normal(3, 7 + d.k, 64)
    padding = torch.zeros(3, 7 + d.k, dtype=torch.bool)
    padding[0, 5:], padding[2, 2:] = True, True
    mask = d.bools(7 + d.k, 7 + d.k).triu(1)
    return x, padding, mask, d.normal(192, 64, scale=0.3), d.normal(192), d.normal(64, 64, scale=0.3), d.normal(64)


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
