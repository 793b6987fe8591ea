"""Integers beside a number that their dtype does not hold: what is computed wraps around, as the dtype stays."""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import ENDS, add_table

cases = Cases("conditions")
_FORMS: dict[str, Callable[[torch.Tensor, int], Any]] = {
    "add": lambda x, n: [x + n, n + x, torch.add(x, n), x.add(n)],
    "sub": lambda x, n: [x - n, n - x, torch.sub(x, n)],
    "mul": lambda x, n: [x * n, n * x],
    "alpha": lambda x, n: [torch.add(x, x, alpha=3), x.sub(x.flip(0), alpha=5)],
    "in-place": lambda x, n: [x.clone().add_(n), x.clone().sub_(n), x.clone().mul_(n)],
    "views": lambda x, n: [x.t() + n, x[1:, ::2] * n, x[:0] + n, x[0, 0] - n, x[:1].expand(3, 6) + n],
    "beside-number": lambda x, n: [x + torch.tensor(n), torch.tensor(n) - x, x * torch.tensor(n)],
    "beside-number-here": lambda x, n: [x + torch.tensor(n, device=x.device), x * torch.tensor(n, device=x.device)],
    "out": lambda x, n: torch.add(x, n, out=torch.empty_like(x)),
    "converted": lambda x, n: [
        torch.tensor([n, 1], device=x.device).to(x.dtype),
        torch.full((2,), n, dtype=torch.int64, device=x.device).type_as(x),
        x.clone().copy_(torch.full_like(x, n, dtype=torch.int64)),
        torch.arange(n - 2, n + 2, device=x.device).to(x.dtype),
    ],
}
for _dtype, _ends in ENDS.items():
    if _dtype != torch.int64:
        add_table(
            cases,
            f"wrapped-{str(_dtype)[6:]}",
            {
                f"{name}-{n}": lambda x, form=form, n=n: form(x, n)
                for name, form in _FORMS.items()
                for n in (_ends.max + 1, _ends.min - 1, 3 * _ends.max, -2 * _ends.max - 5)
            },
            lambda d, dtype=_dtype: (d.of(dtype, 4, 6),),
            since="2.1",
        )
