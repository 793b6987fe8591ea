"""Promotion at the limits: half precision against numbers it cannot hold, integers that float32 loses, NaN, inf.

Truth is the CPU in the case's own dtypes.
"""

from __future__ import annotations

import math

import torch

from device_suite import Cases
from device_suite.answers import Host, attempt
from device_suite.host_views import short

cases = Cases("promotion")
_HALVES = (torch.float16, torch.bfloat16)
# Beyond what float16 holds at both ends, and what it rounds.
_NUMBERS = (1e5, -1e5, 7e4, 1e-8, 1e-6, 0.1, 1 / 3, 65504.0, 65519.0, 2049.0, 1e38, math.inf, -math.inf)
# A number past float16 may be rounded first or last: the CPU does the one here and CUDA the other (issue 98691).
_BY_DEVICE = ("add", "sub", "where", "element", "host_element", "alpha", "addcmul")
_UNSETTLED = tuple(number for number in _NUMBERS if abs(number) < 6e4 or math.isinf(number))
# A number in a 0-d tensor of the device may be rounded to the half dtype first: CUDA does.
_HELD = tuple(number for number in _UNSETTLED if abs(number) > 1e-4)
_HALF_FORMS = {
    "add": lambda x, s: x + s,
    "sub": lambda x, s: s - x,
    "mul": lambda x, s: x * s,
    "div": lambda x, s: x / s,
    "divided": lambda x, s: s / x,
    "greater": lambda x, s: x > s,
    "least": lambda x, s: x <= s,
    "clamp": lambda x, s: x.clamp(max=s),
    "clamp_min": lambda x, s: torch.clamp(x, min=s),
    "maximum": lambda x, s: torch.maximum(x, torch.tensor(s, device=x.device, dtype=x.dtype)),
    "where": lambda x, s: torch.where(x > 0, x, s),
    "alpha": lambda x, s: torch.add(x, x[0, 0], alpha=s),
    "addcmul": lambda x, s: torch.addcmul(x, x, x.sign(), value=s),
    "lerp": lambda x, s: torch.lerp(x, x.flip(0), s),
    "wide": lambda x, s: x + torch.tensor([s], device=x.device),
    "element": lambda x, s: x * torch.tensor(s, device=x.device),
    "host_element": lambda x, s: x * torch.tensor(s),
    "in_place": lambda x, s: x.clone().mul_(s),
    "masked_fill": lambda x, s: x.masked_fill(x > 0, s),
    "full": lambda x, s: torch.full((2,), s, dtype=x.dtype, device=x.device),
    "fill": lambda x, s: torch.zeros_like(x).fill_(s),
    "cast": lambda x, s: torch.full((2,), s, device=x.device).to(x.dtype),
}


def _numbers(name: str) -> tuple[float, ...]:
    """Return the numbers for which every back end has the same answer in mind."""
    return _HELD if name == "element" else _UNSETTLED if name in _BY_DEVICE else _NUMBERS


for _dtype in _HALVES:
    for _name, _form in _HALF_FORMS.items():
        _asked = _numbers(_name)
        cases.add(
            f"promotion-limit-{_name}-{short(_dtype)}",
            lambda run, host, form=_form, numbers=_asked: [
                attempt(lambda number=number: form(host.view.to(run.device), number)) for number in numbers
            ],
            make=lambda d, dtype=_dtype: (Host(d.uniform(0.5, 4, 4, 6, dtype=dtype) * 2 ** d.integers(-6, 12, 4, 6)),),
            states=("fresh",),
            since="1.13",
        )

_BIG = {
    torch.int64: (2**24 + 1, 2**31 - 1, -(2**31) - 3, 2**53 + 1, 2**62 + 5, -(2**63) + 1),
    torch.int32: (2**24 + 1, 2**24 + 3, -(2**30) - 1, 2**31 - 1, -(2**31)),
    torch.int16: (2**15 - 1, -(2**15), 257, -129),
    torch.int8: (127, -128, 65, -3),
    torch.uint8: (255, 128, 127, 1),
}
_BIG_FORMS = {
    "compare": lambda x, y: [x == y, x < y, x >= y, x == x.max(), x != x[0], x > int(x[-1])],
    "extremes": lambda x, y: [
        x.max(),
        x.min(),
        x.argmax(),
        x.amax(),
        x.aminmax(),
        torch.maximum(x, y),
        x.sort().values,
    ],
    "clamp": lambda x, y: [x.clamp(min=y), x.clamp(max=int(x[1])), torch.minimum(x, y), torch.where(x > y, x, y)],
    "bits": lambda x, y: [x & y, x | y, x ^ y, ~x, x >> 1, x << 1, x & 1, x | int(x[1])],
    "divide": lambda x, y: [x // 3, x % 7, torch.div(x, 3, rounding_mode="trunc"), x % -5, torch.fmod(x, 7), x // 1],
    "divide_each": lambda x, y: [torch.remainder(x, y), torch.floor_divide(x, y), torch.fmod(x, y)],
    "wrap": lambda x, y: [x + 1, x * 3, x - y, -x, x + x, x * x],
    "sum": lambda x, y: [x.sum(), x.cumsum(0), x.prod(), x[:2].sum(dtype=x.dtype), torch.cat([x, y]).sum()],
    "move": lambda x, y: [
        x.flip(0),
        x.repeat(2),
        torch.cat([x, y]),
        x[1:].clone(),
        x.unsqueeze(1).expand(-1, 2).clone(),
    ],
    "index": lambda x, y: [
        x[y.argsort()],
        x.take(y.argsort()),
        x.index_select(0, y.argsort()),
        x.gather(0, y.argsort()),
    ],
    "unique": lambda x, y: [torch.unique(torch.cat([x, y, x])), torch.isin(x, y[:2]), (x == y).any(), x.nonzero()],
    "convert": lambda x, y: [x.to(torch.int64), x.bool(), x.abs().sign(), x.to(torch.int64).to(x.dtype), x.tolist()],
    "sort": lambda x, y: [x.argsort(), x.topk(2).values, x.kthvalue(2).values, x.median(), x.cummax(0).values],
    "fill": lambda x, y: [
        torch.full_like(x, int(x[0])),
        x.masked_fill(x > y, int(x[1])),
        torch.full((2,), int(x[0]), dtype=x.dtype, device=x.device),
    ],
    "make": lambda x, y: [
        torch.arange(int(x[0]) - 3, int(x[0]), device=x.device),
        x.new_tensor(x.tolist()),
        x.item() if x.dim() == 0 else x[0].item(),
    ],
}
for _dtype, _values in _BIG.items():
    for _name, _form in _BIG_FORMS.items():
        cases.add(
            f"promotion-big-{_name}-{short(_dtype)}",
            lambda x, form=_form: form(x, x.roll(1)),
            make=lambda d, dtype=_dtype, values=_values: (torch.tensor(values, dtype=dtype),),
            states=("fresh",),
            may_be_missing=True,
        )

_SPECIAL = (0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0, 1e-40, 2.0**24 + 2, 0.5, -2.5, 3.5)
_SPECIAL_FORMS = {
    "tests": lambda x, y: [x.isnan(), x.isinf(), x.isfinite(), x.isposinf(), x.isneginf(), x.signbit(), x == y, x != y],
    "extremes": lambda x, y: [
        torch.maximum(x, y),
        torch.minimum(x, y),
        torch.fmax(x, y),
        torch.fmin(x, y),
        x.max(),
        x[3:].amin(),
    ],
    "rounding": lambda x, y: [x.round(), x.trunc(), x.floor(), x.ceil(), x.frac(), x.sign(), x.round(decimals=1)],
    "cleaned": lambda x, y: [x.nan_to_num(), x.nan_to_num(1.0, 2.0, 3.0), torch.where(x.isnan(), y, x), x.nansum()],
    "clamped": lambda x, y: [
        x.clamp(-1, 1),
        x.clamp(min=y),
        torch.nn.functional.relu(x),
        x.clamp_max(0.5),
        torch.nn.functional.hardtanh(x),
    ],
    "arithmetic": lambda x, y: [x + y, x * y, x / y, x - y, x * 0, x % 2, torch.fmod(x, 2.0), x.copysign(y)],
    "powers": lambda x, y: [x.pow(2), x.pow(3), x.pow(0), x.sqrt(), x.rsqrt(), x.reciprocal(), x.square(), x.abs()],
    "reduced": lambda x, y: [
        x.sum(),
        x[8:].prod(),
        x.any(),
        x.all(),
        x.nanmean(),
        x[:2].max(),
        torch.logsumexp(x[3:], 0),
    ],
    "soft": lambda x, y: [
        x[4:].softmax(0),
        x[4:].log_softmax(0),
        x.sigmoid(),
        x.tanh(),
        x.erf(),
        torch.logaddexp(x, y),
    ],
    "compared": lambda x, y: [
        x < y,
        x >= y,
        torch.isclose(x, y, equal_nan=True),
        torch.equal(x, x.clone()),
        x.argmax(),
        x[3:].argmin(),
    ],
    "running": lambda x, y: [
        x.cummax(0).values,
        x[3:].cumsum(0),
        x[3:].cummin(0).values,
        x[3:].flip(0).cummax(0).values,
    ],
    "sorted": lambda x, y: [
        x.sort().values,
        x.sort(descending=True).values,
        x.topk(2).values,
        x[3:].median(),
        x.nanmedian(),
    ],
    "logical": lambda x, y: [x.logical_not(), x.bool(), torch.logical_and(x, y), torch.xlogy(x, y), x.count_nonzero()],
    "filled": lambda x, y: [
        x.masked_fill(x > 0, -math.inf),
        torch.full_like(x, math.nan),
        x.index_fill(0, x.isinf().nonzero()[:, 0], 7),
    ],
}

for _dtype in (torch.float32, *_HALVES):
    for _name, _form in _SPECIAL_FORMS.items():
        cases.add(
            f"promotion-special-{_name}-{short(_dtype)}",
            lambda run, host, form=_form: form(host.view.to(run.device), host.view.flip(0).to(run.device)),
            make=lambda d, dtype=_dtype: (Host(torch.tensor(_SPECIAL).to(dtype)),),
            factor=16,
            states=("fresh",),
            may_be_missing=True,
        )
