"""Rules 1 and 3: attention whose operands and mask lie otherwise, crossed with sizes of heads and few keys, causal too.

Permuted operands of three keys and a head of 64, https://github.com/pytorch/pytorch/issues/181133; a mask whose last
dimension has a stride, https://github.com/pytorch/pytorch/issues/112577 and
https://github.com/pytorch/pytorch/issues/109607
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf, uneven
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Way = Callable[[torch.Tensor], torch.Tensor]

# How (batch, heads, length, size) lies.
_LIES: dict[str, Way] = {
    "plain": lambda x: x,
    "heads": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "turned": lambda x: x.mT.contiguous().mT,
    "joined": lambda x: torch.stack([x, x + 1, x - 1], 2)[:, :, 0],
    "packed": lambda x: torch.cat([x - 1, x, x + 1], -1)[..., x.shape[-1] : 2 * x.shape[-1]],
    "first": lambda x: x.movedim(2, 0).contiguous().movedim(0, 2),
    "spread": lambda x: x[:, :1].expand_as(x),
    "steps": lambda x: torch.stack([x, x + 1], 3)[..., 0, :],
}
# The mask of (queries, keys), from numbers of (2, 2, queries, keys).
_MASKS: dict[str, Callable[[torch.Tensor], dict[str, Any]]] = {
    "none": lambda m: {},
    "causal": lambda m: {"is_causal": True},
    "added": lambda m: {"attn_mask": m},
    "added-turned": lambda m: {"attn_mask": m.mT.contiguous().mT},
    "added-steps": lambda m: {"attn_mask": torch.stack([m, m + 1], -1)[..., 0]},
    "added-column": lambda m: {"attn_mask": m[..., :1].expand_as(m)},
    "added-row": lambda m: {"attn_mask": m[0, 0, :1].expand(m.shape[-2:])},
    "added-one": lambda m: {"attn_mask": m[:1, :1]},
    "added-slice": lambda m: {"attn_mask": torch.cat([m, m], -1)[..., : m.shape[-1]]},
    "chosen": lambda m: {"attn_mask": (m > 0) | (torch.arange(m.shape[-1], device=m.device) == 0)},
    "chosen-turned": lambda m: {"attn_mask": ((m > 0).mT.contiguous().mT | (m.abs() >= 0)[..., :1, :1])},
    "chosen-row": lambda m: {"attn_mask": (torch.arange(m.shape[-1], device=m.device) != 1)[None, None, None]},
    "chosen-heads": lambda m: {"attn_mask": (m[:, :1] > -9).expand_as(m)},
    "scaled": lambda m: {"scale": 0.25},
}


def _numbers(x: torch.Tensor, start: int, *shape: int) -> torch.Tensor:
    count = int(torch.Size(shape).numel())
    return x.roll(-start).repeat(-(-count // len(x)))[:count].view(shape)


def _attended(queries: int, keys: int, size: int, lies: tuple[str, str, str], mask: str, x: torch.Tensor) -> Any:
    starts = [
        leaf(_numbers(x, 3, 2, 2, queries, size)),
        leaf(_numbers(x, 41, 2, 2, keys, size)),
        leaf(_numbers(x, 77, 2, 2, keys, size)),
    ]
    q, k, v = (_LIES[one](start) for one, start in zip(lies, starts))
    y = F.scaled_dot_product_attention(q, k, v, **_MASKS[mask](_numbers(x, 9, 2, 2, queries, keys)))
    y.backward(uneven(y))
    return [y.detach(), *(one.grad for one in starts)]


_SIZES = ((5, 5), (1, 9), (9, 3), (3, 3), (8, 17))
_HEADS = (8, 64, 72, 128, 5)
_ROWS = {
    f"{queries}-{keys}-{size}-{'-'.join(lies)}-{mask}": (
        lambda x, row=(queries, keys, size, lies, mask): _attended(*row, x)
    )
    for place, ((queries, keys), size, mask, (number, one)) in enumerate(
        itertools.product(_SIZES, _HEADS, _MASKS, enumerate(_LIES))
    )
    # Of one way all three, or the values and keys in others.
    for lies in (((one,) * 3,) if place % 3 else ((one, list(_LIES)[(number + 3) % 8], list(_LIES)[(number + 5) % 8]),))
    if (place * 5 + place // 112) % 29 == 0
}
for _dtype in (torch.float32, *HALVES):
    _half = _dtype in HALVES
    add_table(
        cases,
        f"attention-laid-{str(_dtype)[6:]}",
        dict(list(_ROWS.items())[_half :: 4 if _half else 1]),
        lambda d, dtype=_dtype: ((d.distinct(997) / 300).to(dtype),),
        terms=256 if not _half else 64,
        factor=16.0,
        deterministic=False,
        since="2.1",
    )

# Operands and masks that do not go together.
_WRONG: dict[str, Callable[..., Any]] = {
    "keys": lambda q, m: F.scaled_dot_product_attention(q, q[..., :4], q),
    "heads": lambda q, m: F.scaled_dot_product_attention(q[:, :1].expand(2, 3, 5, 8), q, q),
    "mask-queries": lambda q, m: F.scaled_dot_product_attention(q, q, q, m[..., :4, :]),
    "mask-keys": lambda q, m: F.scaled_dot_product_attention(q, q, q, m[..., :4]),
    "mask-heads": lambda q, m: F.scaled_dot_product_attention(q, q, q, m[:, :1].expand(2, 3, 5, 5)),
    "mask-rank": lambda q, m: F.scaled_dot_product_attention(q, q, q, m.view(-1)),
    "mask-whole": lambda q, m: F.scaled_dot_product_attention(q, q, q, m.long()),
    "dtypes": lambda q, m: F.scaled_dot_product_attention(q, q.half(), q),
    "dtypes-value": lambda q, m: F.scaled_dot_product_attention(q, q, q.half()),
    "one": lambda q, m: F.scaled_dot_product_attention(q[0, 0, 0], q[0, 0, 0], q[0, 0, 0]),
    "groups": lambda q, m: F.scaled_dot_product_attention(q.repeat(1, 3, 1, 1)[:, :3], q, q, enable_gqa=True),
    "heads-module": lambda q, m: torch.nn.MultiheadAttention(8, 3),
    "size-module": lambda q, m: torch.nn.MultiheadAttention(6, 2).to(q.device)(q[0], q[0], q[0]),
    "keys-module": lambda q, m: torch.nn.MultiheadAttention(8, 2).to(q.device)(q[0], q[0], q[0][:, :4]),
    "mask-module": lambda q, m: torch.nn.MultiheadAttention(8, 2).to(q.device)(q[0], q[0], q[0], attn_mask=m[0]),
    "padding-module": lambda q, m: torch.nn.MultiheadAttention(8, 2).to(q.device)(
        q[0], q[0], q[0], key_padding_mask=m[0, 0] > 0
    ),
}
add_refused(cases, "attention-laid", lambda d: (d.normal(2, 2, 5, 8), d.normal(2, 2, 5, 5)), _WRONG, since="2.13")
