"""Sizes, counts and numbers that no int64, no memory or no dtype holds: each is refused, and ends no process."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.limits import ENDS
from device_suite.refusals import add_refused

cases = Cases("conditions")
_HALF, _MOST = 2**62, 2**63 - 1

# x has a shape of (3, 4). n and m: the product of the sizes, of their bytes, or their sum is beyond int64.
_SIZES: dict[str, Callable[[torch.Tensor, int, int], Any]] = {
    **{
        name: lambda x, n, m, name=name: getattr(torch, name)((n, m), device=x.device)
        for name in ("zeros", "ones", "empty", "rand", "randn")
    },
    "full": lambda x, n, m: torch.full((n, m), 1.5, device=x.device),
    "randint": lambda x, n, m: torch.randint(0, 5, (n, m), device=x.device),
    "normal": lambda x, n, m: torch.normal(0.0, 1.0, (n, m), device=x.device),
    "empty_strided": lambda x, n, m: torch.empty_strided((n, m), (m, 1), device=x.device),
    "new_zeros": lambda x, n, m: x.new_zeros(n, m),
    "new_full": lambda x, n, m: x.new_full((n, m), 2.0),
    "new_empty": lambda x, n, m: x.new_empty((n, m)),
    "bytes": lambda x, n, m: torch.zeros(n, m, dtype=torch.uint8, device=x.device),
    "complex": lambda x, n, m: torch.zeros(n, m, dtype=torch.complex64, device=x.device),
    "eye": lambda x, n, m: torch.eye(n, m, device=x.device),
    "expand-clone": lambda x, n, m: x[0, 0].expand(n, m).clone(),
    "expand-add": lambda x, n, m: x[0, 0].expand(n, m) + 1,
    "repeat": lambda x, n, m: x.repeat(n, m),
    "tile": lambda x, n, m: x.tile((n, m)),
    "resize": lambda x, n, m: x.clone().resize_(n, m),
    "set": lambda x, n, m: x.clone().set_(x.untyped_storage(), 0, (n, m), (m, 1)),
    "as_strided": lambda x, n, m: x.as_strided((n, m), (m, 1)) + 1,
    "view": lambda x, n, m: x.view(n, m),
    "reshape": lambda x, n, m: x.reshape(n, m),
    "pad": lambda x, n, m: F.pad(x, (n, m)),
    "pad-two": lambda x, n, m: F.pad(x, (n, 0, m, 0)),
    "pad-value": lambda x, n, m: F.pad(x, (0, n, 0, m), value=2.0),
    "pad-images": lambda x, n, m: F.pad(x[None, None], (0, n, m, 0)),
    "pad-replicate": lambda x, n, m: F.pad(x[None, None], (n, 0, m, 0), mode="replicate"),
    "pad-replicate-line": lambda x, n, m: F.pad(x[None], (n, m), mode="replicate"),
    "pad-reflect": lambda x, n, m: F.pad(x[None], (n, m), mode="reflect"),
    "pad-circular": lambda x, n, m: F.pad(x[None], (n, m), mode="circular"),
    "pad-less": lambda x, n, m: F.pad(x, (-n, -m)),
    "unflatten": lambda x, n, m: x.unflatten(1, (n, m)),
    "broadcast": lambda x, n, m: torch.broadcast_to(x[0, 0], (n, m)) * 2,
    "grid": lambda x, n, m: F.affine_grid(x[None, :2, :3], [1, 1, n, m]),
    "indices": lambda x, n, m: torch.tril_indices(n, m, device=x.device),
}
_COUNTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "arange": lambda x: torch.arange(0, _MOST, device=x.device),
    "arange-float": lambda x: torch.arange(0.0, 1e30, device=x.device),
    "arange-step": lambda x: torch.arange(0.0, 1.0, 1e-30, device=x.device),
    "linspace": lambda x: torch.linspace(0, 1, _HALF, device=x.device),
    "logspace": lambda x: torch.logspace(0, 1, _HALF, device=x.device),
    "hann": lambda x: torch.hann_window(_HALF, device=x.device),
    "repeat_interleave": lambda x: x.repeat_interleave(_HALF, 0),
    "one_hot": lambda x: F.one_hot((x[0] * 0).long(), _HALF),
    "bincount": lambda x: torch.bincount((x[0] * 0).long(), minlength=_HALF),
    "multinomial": lambda x: torch.multinomial(x.abs() + 1, _HALF),
    "topk": lambda x: x.topk(_HALF),
    "narrow": lambda x: x.narrow(0, 1, _MOST),
    "narrow-end": lambda x: x.narrow(0, _MOST, 1),
    "unfold": lambda x: x.unfold(0, _MOST, 1),
    "select": lambda x: x.select(0, _MOST),
    "select-below": lambda x: x.select(0, -_MOST - 1),
    "split": lambda x: x.split([_MOST, 1]),
    "storage": lambda x: x.as_strided((2,), (1,), _MOST) + 1,
    "stride": lambda x: x.as_strided((3, 2), (_MOST, 1)) + 1,
    "stride-negative": lambda x: x.as_strided((3, 2), (-1, 1)) + 1,
    "offset-negative": lambda x: x.as_strided((3, 2), (1, 1), -1) + 1,
    "index": lambda x: x[_MOST],
    "index-below": lambda x: x[-_MOST],
    "beyond": lambda x: x.narrow(0, 2**63, 1),
    "beyond-size": lambda x: torch.zeros(2**63, device=x.device),
    "beyond-dimension": lambda x: x.sum(2**63),
    "beyond-view": lambda x: x.view(2**64, -1),
    "randint": lambda x: torch.randint(0, 2**64 + 1, (2,), device=x.device),
    "randperm": lambda x: torch.randperm(_HALF, device=x.device),
    "dimension": lambda x: x.unsqueeze(2**40),
    "seed": lambda x: torch.Generator().manual_seed(2**70),
}
# What is beyond int64 with two numbers alone: with 2**32 each of these would only be large.
_SUMS = ("pad", "pad-replicate-line", "pad-reflect", "pad-circular", "pad-less", "indices")
for _name, _n, _m in (("square", 2**32, 2**32), ("bytes", _HALF, 2), ("most", _MOST, 3)):
    add_refused(
        cases,
        f"vast-{_name}",
        lambda d: (d.normal(3, 4),),
        {
            name: lambda x, form=form, n=_n, m=_m: form(x, n, m)
            for name, form in _SIZES.items()
            if _name != "square" or name not in _SUMS
        },
        since="2.6",
        devices=("mps", "cpu"),
    )
add_refused(cases, "vast-counts", lambda d: (d.normal(3, 4),), _COUNTS, since="2.6", devices=("mps", "cpu"))

# Numbers that an integer dtype does not hold, written into it.
_WRITTEN: dict[str, Callable[[torch.Tensor, Any], Any]] = {
    "tensor": lambda x, n: torch.tensor(n, dtype=x.dtype, device=x.device),
    "tensor-list": lambda x, n: torch.tensor([1, n], dtype=x.dtype, device=x.device),
    "new_tensor": lambda x, n: x.new_tensor([[n]]),
    "full": lambda x, n: torch.full((2, 3), n, dtype=x.dtype, device=x.device),
    "full_like": lambda x, n: torch.full_like(x, n),
    "new_full": lambda x, n: x.new_full((2,), n),
    "fill_": lambda x, n: x.fill_(n),
    "fill-view": lambda x, n: x.t()[1:].fill_(n),
    "fill": lambda x, n: torch.fill(x, n),
    "masked_fill": lambda x, n: x.masked_fill(x > 0, n),
    "index_fill": lambda x, n: x.index_fill(0, torch.tensor([1], device=x.device), n),
    "scatter": lambda x, n: x.scatter(0, torch.zeros_like(x, dtype=torch.int64), n),
    "setitem": lambda x, n: x.__setitem__(0, n),
    "setitem-places": lambda x, n: x.__setitem__(torch.tensor([1], device=x.device), n),
    "scalar_tensor": lambda x, n: torch.scalar_tensor(n, dtype=x.dtype, device=x.device),
}
for _dtype, _ends in ENDS.items():
    add_refused(
        cases,
        f"beyond-{str(_dtype)[6:]}",
        lambda d, dtype=_dtype: (d.integers(0, 5, 3, 4, dtype=dtype),),
        {
            f"{name}-{n}": lambda x, form=form, n=n: form(x, n)
            for name, form in _WRITTEN.items()
            for n in (_ends.max + 1, *((_ends.min - 1, -2 * _ends.max) if _ends.min else ()), 4 * _ends.max, 1e30)
        },
        since="2.1",
    )
