"""Rule 4: every pair of dtypes, with values inside, at the edge of, and outside of what the target holds.

Left out, since C leaves them open: floats beyond an integer's range, NaN and infinity as integers. Left out, since a
GPU may take them to be zero: float32's denormal numbers. Integers become halves by way of float32 on every back end:
their values are exact in float32. Floats are compared by their bits, NaN by its place.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from device_suite import Cases
from device_suite.answers import Host, attempt

cases = Cases("conditions")


_TARGETS = (
    *(torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    *(torch.bool, torch.complex64),
)
_BITS = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}
_MOST = {dtype: torch.iinfo(dtype).max for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)}
# Numbers that round: to even, up to infinity, down to nothing.
_ROUNDED = (
    *(1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, -1 - 2.0**-11, 2049.0, 2051.0, 257.0, 259.0),
    *(65504.0, 65519.0, 65520.0, 70000.0, -65520.0, 2.0**-14, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25, 3 * 2.0**-25),
    *(3.38e38, 3.4e38, -3.4e38, 1e-30, 0.1, -0.1, 0.0, -0.0, math.inf, -math.inf, math.nan),
)
_WHOLE = (0, 1, -1, 2, 127, 128, -128, -129, 255, 256, 257, 259, 2049, 2051, 32767, 32768, -32769, 65504, 65519, 65520)
_LONG = (
    *(65535, 65536, 70000, (1 << 24) + 1, (1 << 24) + 3, (1 << 31) - 1, 1 << 31, (1 << 32) + 5, (1 << 53) + 1),
    *((1 << 53) + 3, 1 << 62, (1 << 63) - 1, -(1 << 63), -(1 << 31), -(1 << 31) - 1, -(1 << 24) - 1),
)


def _truncated(dtype: torch.dtype) -> tuple[float, ...]:
    """Return floats that an integer dtype holds once what is behind the point is cut off."""
    least, most = torch.iinfo(dtype).min, _MOST[dtype]
    ends = (least, least - 0.9, most, most + 0.9) if most < 1 << 24 else (least, float(most + 1) * (1 - 2.0**-24))
    inside = [one for one in (-0.9, 0.4, 1.5, -1.5, 2.5, 99.99, -99.99, 0.0) if one > least - 1]
    return (*ends, *inside)


def values_for(source: torch.dtype, target: torch.dtype) -> torch.Tensor:
    """Return the values that are converted, none of which C leaves open."""
    if source == torch.bool:
        return torch.tensor([True, False, True])
    if source.is_complex:
        parts = values_for(torch.float32, target if not target.is_complex else torch.float32)
        return torch.complex(parts, parts.flip(0) if target != torch.bool else parts * 0)
    if source.is_floating_point:
        every: Any = _truncated(target) if target in _MOST else _ROUNDED
        if target == torch.bool:
            every = (0.0, -0.0, 0.4, -1e-3, 1.0, math.inf, math.nan, 2.0**-14)
        drawn = torch.tensor(every, dtype=torch.float64).to(source)
        return drawn[_is_held(drawn, target)] if target in _MOST else drawn
    limits = torch.iinfo(source)
    whole = [one for one in (*_WHOLE, *_LONG) if limits.min <= one <= limits.max]
    if target in (torch.float16, torch.bfloat16):
        whole = [one for one in whole if int(torch.tensor(one).float()) == one]
    return torch.tensor(whole, dtype=source)


def _is_held(x: torch.Tensor, target: torch.dtype) -> torch.Tensor:
    wide = x.double().trunc()
    return (wide >= float(torch.iinfo(target).min)) & (wide < float(_MOST[target]) + (_MOST[target] < 1 << 53))


def _exact(x: torch.Tensor) -> Any:
    """Return what is compared exactly: bits, and where it is NaN."""
    if x.dtype.is_complex:
        return [_exact(part) for part in torch.view_as_real(x).unbind(-1)]
    if x.dtype not in _BITS:
        return x
    none = x.isnan()
    return torch.where(none, torch.zeros_like(x), x).contiguous().view(_BITS[x.dtype]), none


def _converted(run: Any, target: torch.dtype, host: Host) -> dict[str, Any]:
    x = host.view.to(run.device)  # two columns: values, and the same from the end
    ways = {
        "dense": lambda: x.to(target),
        "column": lambda: x[:, 1].to(target),
        "turned": lambda: x.t().to(target),
        "part": lambda: x[1:].to(target),
        "copied": lambda: torch.ones(x.shape, dtype=target, device=x.device).copy_(x),
        "into-column": lambda: torch.ones(x.shape[0], 3, dtype=target, device=x.device)[:, 1].copy_(x[:, 0]),
        "fetched": lambda: x.to("cpu", target),
        "fetched-column": lambda: x[:, 1].to("cpu", target),
        "fetched-into": lambda: torch.ones(x.shape, dtype=target).copy_(x),
        "brought": lambda: host.view.to(run.device, target),
        "brought-column": lambda: host.view[:, 1].to(run.device, target),
        "brought-into": lambda: torch.ones(x.shape, dtype=target, device=x.device).copy_(host.view),
    }
    # What is exact is asked on the host: no other operator of the device comes into it.
    return {name: attempt(lambda way=way: _exact(way().cpu())) for name, way in ways.items()}


def _made(source: torch.dtype, target: torch.dtype) -> Host:
    values = values_for(source, target)
    return Host(torch.stack([values, values.flip(0)], 1))


for _source in _TARGETS:
    cases.add(
        f"conversion-{str(_source)[6:]}",
        lambda run, hosts: {name: _converted(run, getattr(torch, name), host) for name, host in hosts.items()},
        make=lambda d, source=_source: ({str(one)[6:]: _made(source, one) for one in _TARGETS if one != source},),
        states=("fresh",),
        anywhere=True,
        may_be_missing=True,
    )
