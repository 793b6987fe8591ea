"""Rule 6: attention and Transformer modules in eval() under no_grad, where they take a path of their own: every mask.

The path refused a mask for each head, https://github.com/pytorch/pytorch/issues/97409, a module without a bias, or with
an odd number of heads, https://github.com/pytorch/pytorch/issues/97128, and gave NaN for a shortened sequence,
https://github.com/pytorch/pytorch/issues/64525
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import nn

from device_suite import Cases
from device_suite.acts import filled
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")
_BATCH, _LENGTH, _WIDTH = 3, 5, 12


def _masks(x: torch.Tensor, heads: int) -> dict[str, torch.Tensor | None]:
    """Return masks that hide something, and no sequence as a whole."""
    places = torch.arange(_LENGTH, device=x.device)
    later = places[None] > places[:, None]
    near = later | (places[None] + 3 < places[:, None])
    return {
        "none": None,
        "later": later,
        "float": torch.zeros(_LENGTH, _LENGTH, dtype=x.dtype, device=x.device).masked_fill(near, -2.0),
        "heads": torch.stack([later if turn % 2 else near for turn in range(_BATCH * heads)]),
    }


def _short(x: torch.Tensor) -> torch.Tensor:
    """Return which places lie behind the end of a sequence: the last of all, and of others one and two more."""
    places = torch.arange(_LENGTH, device=x.device)
    return places[None] >= torch.tensor([4, 3, 2], device=x.device)[:, None]


def _kept(y: torch.Tensor, short: torch.Tensor | None) -> torch.Tensor:
    """Return what is not behind the end of a sequence: there a path may leave zeros."""
    return y if short is None else y.masked_fill(short[..., None], 0)


def _attended(heads: int, bias: bool, mask: str, padded: bool, seen: str, x: torch.Tensor) -> Any:
    module = filled(nn.MultiheadAttention(_WIDTH, heads, bias=bias, batch_first=True), x).eval()
    short = _short(x) if padded else None
    others = (x, x) if seen == "itself" else (x.flip(0), x.flip(1))
    options: dict[str, Any] = {"need_weights": heads % 2 == 0, "average_attn_weights": heads < 3}
    with torch.no_grad():
        given = _masks(x, heads)[mask]
        if short is not None and given is not None and given.is_floating_point():
            short = torch.zeros_like(short, dtype=x.dtype).masked_fill(short, -torch.inf)
        return module(x, *others, key_padding_mask=short, attn_mask=given, **options)


def _layer(norm_first: bool, activation: str, heads: int, bias: bool, x: torch.Tensor) -> nn.Module:
    return nn.TransformerEncoderLayer(
        _WIDTH, heads, 16, 0.0, activation, batch_first=True, norm_first=norm_first, **({} if bias else {"bias": False})
    )


def _encoded(mask: str, padded: bool, layers: int, layer: tuple[Any, ...], x: torch.Tensor) -> Any:
    one = _layer(*layer, x)
    module = filled(nn.TransformerEncoder(one, layers) if layers else one, x).eval()
    short, given = _short(x) if padded else None, _masks(x, layer[2])[mask]
    with torch.no_grad():
        if layers:
            return _kept(module(x, mask=given, src_key_padding_mask=short), short)
        return _kept(module(x, src_mask=given, src_key_padding_mask=short), short)


def _decoded(mask: str, padded: bool, layers: int, norm_first: bool, x: torch.Tensor) -> Any:
    one = nn.TransformerDecoderLayer(_WIDTH, 2, 16, 0.0, batch_first=True, norm_first=norm_first)
    module = filled(nn.TransformerDecoder(one, layers) if layers else one, x).eval()
    short = _short(x) if padded else None
    with torch.no_grad():
        return module(x, x.flip(0), tgt_mask=_masks(x, 2)[mask], memory_key_padding_mask=short)


_MASKS = ("none", "later", "float", "heads")
_PLAIN = (False, True)
_LAYERS = [
    *itertools.product(_PLAIN, ("relu", "gelu"), (2, 3), (True,)),
    (False, "relu", 2, False),
    (True, "gelu", 3, False),
]
for _dtype in (torch.float32, *HALVES):
    _few = 1 if _dtype == torch.float32 else 7
    _forms = {
        **{
            f"attention-{row}": lambda x, row=row: _attended(*row, x)
            for row in itertools.product((1, 2, 3), (True, False), _MASKS, _PLAIN, ("itself", "both"))
        },
        **{
            f"encoder-{row}": lambda x, row=row: _encoded(*row, x)
            for row in itertools.product(_MASKS, _PLAIN, (0, 1), _LAYERS)
            if row[0]
            != "float"  # the CPU's own path takes it for bools, https://github.com/pytorch/pytorch/issues/107084
            if not row[2] or row[3][1] == "relu"
        },
        **{
            f"decoder-{row}": lambda x, row=row: _decoded(*row, x)
            for row in itertools.product(_MASKS[1::2], _PLAIN, (0, 1), _PLAIN)
        },
    }
    add_table(
        cases,
        f"asked-modules-{str(_dtype)[6:]}",
        dict(list(_forms.items())[::_few]),
        lambda d, dtype=_dtype: ((d.distinct(_BATCH, _LENGTH, _WIDTH) / 128).to(dtype),),
        terms=4096 if _dtype == torch.float32 else 16,
        factor=16.0,
        since="2.1",
        deterministic=False,
    )
