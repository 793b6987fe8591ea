"""Rule 2: true that is stored as another byte than 1, as a view of bytes has it, is true and counts once.

masked_select took 255 for 255 elements, https://github.com/pytorch/pytorch/issues/87206; as an integer it was no 1,
https://github.com/openxla/xla/issues/37159
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases

cases = Cases("conditions")
Form = Callable[..., Any]

# m: 24 bools, x and y: as many numbers.
_FORMS: dict[str, Form] = {
    "selected": lambda m, x, y: [x.masked_select(m), x[m], x.view(4, 6)[m.view(4, 6)], x.view(4, 6)[:, m[:6]]],
    "places": lambda m, x, y: [m.nonzero(), torch.where(m)[0], m.view(4, 6).nonzero()],
    "chosen": lambda m, x, y: [
        torch.where(m, x, y),
        torch.where(m, x, 3.0),
        torch.where(m.view(4, 6), x.view(4, 6), y[:6]),
    ],
    "filled": lambda m, x, y: [x.masked_fill(m, 9), x.masked_scatter(m, y), x.index_put((m,), y[:1])],
    "logic": lambda m, x, y: [
        ~m,
        m & m.flip(0),
        m | m.flip(0),
        m ^ m.flip(0),
        m.logical_not(),
        m.logical_xor(m.flip(0)),
    ],
    "compared": lambda m, x, y: [m == m.flip(0), m != m.flip(0), m == True, m > m.flip(0), m.eq(1)],  # noqa: E712
    "converted": lambda m, x, y: [
        m.to(one) for one in (torch.int64, torch.int32, torch.uint8, torch.float32, torch.float16)
    ],
    "summed": lambda m, x, y: [m.sum(), m.view(4, 6).sum(1), m.count_nonzero(), m.cumsum(0), m.float().mean()],
    "sorted": lambda m, x, y: [*torch.sort(m, stable=True), *torch.sort(m, stable=True, descending=True), m.unique()],
    "ends": lambda m, x, y: [m.any(), m.all(), m[2:4].all(), m.view(4, 6).any(1), m.view(4, 6).all(0)],
    "arithmetic": lambda m, x, y: [x * m, x + m, m * 3, m + m.flip(0), x.mul(m.view(4, 6)[:, 0].repeat(6))],
    "copied": lambda m, x, y: [m.clone().long(), torch.cat([m, m]).sum(), m.flip(0).long(), m.expand(2, 24).sum(1)],
    "assigned": lambda m, x, y: [
        torch.zeros_like(x).copy_(m),
        torch.zeros(24, dtype=torch.int64, device=x.device).copy_(m),
    ],
    "read": lambda m, x, y: [torch.tensor(m.tolist()), torch.tensor([bool(one) for one in m[:6]])],
    "attended": lambda m, x, y: F.scaled_dot_product_attention(
        x.view(1, 6, 4) / 8,
        y.view(1, 6, 4) / 8,
        x.view(1, 6, 4),
        m[:6].logical_or(m[6:12]).view(1, 1, 6) | m[3:9].view(6, 1),
    ),
    "counted": lambda m, x, y: [torch.bincount(m.long()), m.long().unique(return_counts=True)],
}
for _name, _form in _FORMS.items():
    cases.add(
        f"condition-stored-bools-{_name}",
        lambda b, x, y, form=_form: form(b.view(torch.bool), x, y),
        make=lambda d: (
            torch.tensor([0, 1, 2, 255, 0, 128, 1, 0, 3, 0, 254, 1] * 2, dtype=torch.uint8),
            d.distinct(24) / 4 + 0.125,
            d.distinct(24) / 4 - 0.125,
        ),
        terms=8,
        floor=1.0,
        states=("fresh",),
        may_be_missing=True,
        anywhere=_name == "read",
    )
