"""Dtypes that few operators have: unsigned integers of other widths, 8-bit floats, complex halves."""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import ONCE, each

cases = Cases("transfers")


_NAMES = ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "complex32")


def _forms(dtype: torch.dtype) -> dict[str, Callable[[Any], Any]]:
    """Return what is asked of one dtype; x of (6, 7) is of float32, small and whole."""
    back = torch.complex64 if dtype.is_complex else torch.float32
    return {
        "converted": lambda x: x.to(dtype).to(back),
        "from_integers": lambda x: x.long().to(dtype).to(back),
        "to_integers": lambda x: x.to(dtype).to(torch.int64),
        "brought": lambda x: x.cpu().to(dtype).to(x.device).to(back),
        "fetched": lambda x: x.to(dtype).cpu().to(back),
        "made": lambda x: torch.tensor([[1, 2], [3, 0]], dtype=dtype, device=x.device).to(back),
        "filled": lambda x: torch.full((3,), 2, dtype=dtype, device=x.device).to(back),
        "zeros": lambda x: x.new_zeros(2, dtype=dtype).to(back),
        "transposed": lambda x: x.to(dtype).t().contiguous().to(back),
        "stepped": lambda x: x.to(dtype)[1::2, ::3].clone().to(back),
        "copied": lambda x: torch.zeros(6, 7, dtype=dtype, device=x.device).copy_(x).to(back),
        "into": lambda x: x.clone().to(back).copy_(x.to(dtype)),
        "joined": lambda x: torch.cat([x.to(dtype), x.to(dtype)]).to(back),
        "picked": lambda x: x.to(dtype)[[3, 0, 3]].to(back),
        "bytes": lambda x: x.to(dtype).view(torch.uint8) + 0,
        "equal": lambda x: x.to(dtype) == x.to(dtype).t().contiguous().t(),
        "item": lambda x: x.to(dtype)[2, 3].item(),
        "listed": lambda x: x.to(dtype).flatten()[:4].tolist(),
        "added": lambda x: (x.to(dtype) + x.to(dtype)).to(back),
    }


for _name in _NAMES:
    if hasattr(torch, _name):
        cases.add(
            f"transfer-dtypes-{_name}",
            lambda x, name=_name: each(_forms(getattr(torch, name)), x),
            make=lambda d: (d.integers(0, 15, 6, 7).float(),),
            states=ONCE,
            anywhere=True,
            may_be_missing=True,
        )
