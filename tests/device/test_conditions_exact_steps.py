"""Rules 1 and 3: functions that are exact, of all pairs of numbers at the ends of each dtype, compared bit by bit.

A step from zero was zero, https://github.com/pytorch/pytorch/issues/190476; a quotient of infinity that is rounded
down, https://github.com/pytorch/pytorch/issues/189243; whole numbers past 2**24 went through float32,
https://github.com/pytorch/pytorch/issues/190052
"""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.limits import ENDS, HALVES
from device_suite.near import add_beside

cases = Cases("conditions")
_INF, _NAN = float("inf"), float("nan")


def _numbers(dtype: torch.dtype) -> torch.Tensor:
    """Return numbers of both signs that each dtype has: ends, halves, neighbours of powers of two, none too small."""
    info = torch.finfo(dtype)
    some = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0, 1 + info.eps, 1 - info.eps / 2, 1 / info.eps, 2 / info.eps]
    some += [info.tiny, info.tiny * 4, info.max, info.max / 2, _INF]
    return torch.tensor([*some, *(-one for one in some), _NAN]).to(dtype)


# x, y: all pairs, as (n, 1) and (1, n).
_PAIRS: dict[str, Any] = {
    **{
        name: lambda x, y, name=name: getattr(torch, name)(x, y)
        for name in ("nextafter", "copysign", "maximum", "minimum", "fmax", "fmin")
    },
    **{
        f"{name}-out": lambda x, y, name=name: getattr(torch, name)(x, y, out=x.new_empty(2 * len(x), y.numel())[::2])
        for name in ("nextafter", "copysign", "fmax", "fmin")
    },
    **{
        f"{name}-method": lambda x, y, name=name: getattr(x.expand(len(x), y.numel()).clone(), name)(y)
        for name in ("nextafter_", "copysign_", "eq_", "lt_", "ge_", "logical_and_")
    },
    **{
        name: lambda x, y, name=name: getattr(torch, name)(x, y)
        for name in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "isclose")
    },
    "isclose-nan": lambda x, y: torch.isclose(x, y, equal_nan=True),
    "isclose-loose": lambda x, y: torch.isclose(x, y, rtol=0.5, atol=0.25),
    "sums": lambda x, y: [x + y, x - y],
    "products": lambda x, y: [x * y, x.clone().expand(len(x), y.numel()).mul(y)],
    "heaviside": lambda x, y: torch.heaviside(x, y),
    "where": lambda x, y: [torch.where(x > y, x, y), torch.where(x == x, x, y)],
    "clamp": lambda x, y: [x.clamp(min=y), x.clamp(max=y)],
    "by-number": lambda x, y: [x * 3.141592653589793, 0.1 * x],
    "unit-steps": lambda x, y: [torch.nextafter(x, x.new_tensor(one)) for one in (0.0, -0.0, 1.0, -1.0, _INF, _NAN)],
    "stepped-back": lambda x, y: torch.nextafter(torch.nextafter(x, y), x),
}
# Numbers that divide each other, or that no rounding brings to another whole number.
_DIVIDED: dict[str, Any] = {
    f"{name}-{mode}": lambda x, y, act=act, mode=mode: act(x, y, mode) + 0.0
    for name, act in {
        "div": lambda x, y, mode: torch.div(x, y, rounding_mode=mode),
        "method": lambda x, y, mode: x.expand(len(x), y.numel()).clone().div_(y, rounding_mode=mode),
        "out": lambda x, y, mode: torch.div(x, y, rounding_mode=mode, out=x.new_empty(0)),
        "number": lambda x, y, mode: torch.stack(
            [torch.div(x, float(one), rounding_mode=mode) for one in (2.0, -2.0, 0.5, _INF, -_INF)]
        ),
    }.items()
    for mode in ("floor", "trunc")
} | {
    "floor_divide": lambda x, y: torch.floor_divide(x, y) + 0.0,
    "operator": lambda x, y: [x // y + 0.0, x // 2 + 0.0, 7 // y + 0.0, x // -0.5 + 0.0],
    "remainder": lambda x, y: [x % y + 0.0, x % 2 + 0.0, 7 % y + 0.0, torch.remainder(3, y) + 0.0],
    "fmod": lambda x, y: [torch.fmod(x, y) + 0.0, torch.fmod(x, 2) + 0.0, torch.fmod(x, -0.5) + 0.0],
    "fmod-out": lambda x, y: torch.fmod(x, y, out=x.new_empty(2 * len(x), y.numel())[::2]) + 0.0,
    "fmod_": lambda x, y: x.expand(len(x), y.numel()).clone().fmod_(y) + 0.0,
    "remainder_": lambda x, y: x.expand(len(x), y.numel()).clone().remainder_(y) + 0.0,
    "floor_divide_": lambda x, y: x.expand(len(x), y.numel()).clone().floor_divide_(y) + 0.0,
}
# Of one number each.
_EACH: dict[str, Any] = {
    **{
        name: lambda x, y, name=name: getattr(torch, name)(x)
        for name in (
            "trunc floor ceil round frac abs neg sign sgn signbit isnan isinf isfinite isposinf isneginf isreal "
            "positive relu nan_to_num logical_not square"
        ).split()
    },
    **{
        f"{name}_": lambda x, y, name=name: getattr(x.clone(), f"{name}_")()
        for name in ("trunc", "floor", "ceil", "round", "frac", "abs", "neg", "sign", "nan_to_num", "logical_not")
    },
    "frexp": lambda x, y: [(m := torch.frexp(x))[0], m[1] * x.isfinite()],
    "frexp-back": lambda x, y: torch.ldexp(*torch.frexp(x.where(x.abs() < 1e4, x.new_ones(())))),
    "ldexp": lambda x, y: [torch.ldexp(x, torch.tensor(n, device=x.device)) for n in (-3, -1, 0, 1, 5)],
    "ldexp-places": lambda x, y: torch.ldexp(x[:, None], torch.arange(4, device=x.device)),
    "exponents": lambda x, y: torch.ldexp(x.new_ones(()), torch.arange(-12, 13, device=x.device)),
    "round-half": lambda x, y: torch.round(torch.arange(-9, 10, device=x.device).to(x.dtype) / 2),
    "round-digits": lambda x, y: torch.round(torch.arange(-9, 10, device=x.device).to(x.dtype) * 5, decimals=-1),
    "nan_to_num-three": lambda x, y: [torch.nan_to_num(x, 2.0, 3.0, -4.0), torch.nan_to_num(x, posinf=1.0)],
    "extremes": lambda x, y: [x[:-1].amax(), x[:-1].amin(), x.amax(), x.nan_to_num().max(), x[:-1].aminmax()[0]],
    "sorted": lambda x, y: [x[x != 0].sort()[0], x[x != 0].sort(descending=True)[0]],
    "running": lambda x, y: [x[x != 0].cummax(0)[0], x[x != 0].cummin(0)[0]],
    "converted": lambda x, y: [x.float(), x.half().isinf(), x.bool()],
    "bits": lambda x, y: [x[:-1].view(torch.int16), x[:-1].view(torch.uint8)],
}


def _kept(x: torch.Tensor) -> torch.Tensor:
    """Return an answer without what is too small for its dtype, which is open, and with one zero."""
    if not x.is_floating_point():
        return x
    return x.where(~(x.abs() < torch.finfo(x.dtype).tiny), torch.zeros_like(x))


def _normal(form: Any) -> Any:
    def answer(x: torch.Tensor, y: torch.Tensor) -> Any:
        found = form(x, y)
        return [_kept(one) for one in found] if isinstance(found, (list, tuple)) else _kept(found)

    return answer


_STEPS = {name: form for name, form in _PAIRS.items() if "step" in name or "nextafter" in name}
_SIGNED = ("copysign", "copysign-out", "copysign_-method", "where", "neg", "trunc", "ceil", "floor", "round", "abs")
for _dtype in (torch.float32, *HALVES):
    _short = str(_dtype)[6:]
    _make = lambda d, dtype=_dtype: (_numbers(dtype)[:, None], _numbers(dtype)[None])  # noqa: E731
    _table = {name: form if name in _SIGNED else _normal(form) for name, form in _PAIRS.items()}
    add_beside(cases, f"exact-pairs-{_short}", _table, _make, since="2.4")
    # A step below the least normal number too: it is exact.
    add_beside(cases, f"exact-steps-{_short}", _STEPS, _make, since="2.4")
    add_beside(
        cases,
        f"exact-divided-{_short}",
        _DIVIDED,
        lambda d, dtype=_dtype: (
            (a := torch.tensor([0.0, 1, -1, 2, -2, 3.5, -3.5, 6, -6, 7, -7, 28, -616, _INF, -_INF, _NAN]).to(dtype))[
                :, None
            ],
            a[None],
        ),
        since="2.4",
    )
    add_beside(
        cases,
        f"exact-each-{_short}",
        {name: form if name in _SIGNED else _normal(form) for name, form in _EACH.items()},
        lambda d, dtype=_dtype: (_numbers(dtype), _numbers(dtype)),
        since="2.4",
    )

# Whole numbers at the ends of each dtype and past 2**24: no sum passes the end.
_WHOLE: dict[str, Any] = {
    **{
        name: lambda x, y, name=name: getattr(torch, name)(x)
        for name in ("abs", "neg", "sign", "sgn", "positive", "bitwise_not", "signbit", "logical_not", "isfinite")
    },
    **{
        name: lambda x, y, name=name: getattr(torch, name)(x[:, None], y[None])
        for name in (
            "eq ne lt le gt ge maximum minimum fmax fmin bitwise_and bitwise_or bitwise_xor logical_xor gcd"
        ).split()
    },
    **{
        name: lambda x, y, name=name: getattr(torch, name)(x)
        for name in ("trunc", "floor", "ceil", "round", "sort", "argsort", "unique", "amax", "amin", "argmax", "argmin")
    },
    "absolute": lambda x, y: [x.absolute(), x.clone().abs_(), torch.abs(x[::2]), torch.abs(x, out=y.clone())],
    "clamped": lambda x, y: [x.clamp(min=y[0]), x.clamp(max=y[1]), x.clamp(int(y[2]), int(y[3]))],
    "compared": lambda x, y: [[x > int(one), x == int(one), x <= int(one), x != int(one)] for one in y.cpu()[::3]],
    "picked": lambda x, y: [torch.where(x > y, x, y), x.masked_fill(x > y, int(y[0])), torch.isin(x, y)],
    "divided": lambda x, y: [x // 3, x % 7, torch.fmod(x, 5), torch.div(x, 2, rounding_mode="trunc")],
    "divided-pairs": lambda x, y: [
        (a := x[:, None] // (d := y[None] // 2 + (y[None] // 2 == 0))),
        x[:, None] % d,
        torch.fmod(x[:, None], d),
        torch.div(x[:, None], d, rounding_mode="trunc"),
        a * 0,
    ],
    "running": lambda x, y: [x.cummax(0)[0], x.cummin(0)[0], x.flip(0), x.kthvalue(2)[0], x.median()],
    "halves": lambda x, y: [x // 2 + y // 2 - y // 2, x - x, x ^ y ^ y, (x & 15) * 3],
    "counted": lambda x, y: [x.count_nonzero(), (x > y).sum(), torch.searchsorted(x.sort()[0], y)],
    "through": lambda x, y: [x.clone().copy_(y), x.long(), torch.cat([x, y]), torch.stack([x, y]).amax(0)],
}


def _whole(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    low, high = ENDS[dtype].min, ENDS[dtype].max
    some = [0, 1, 2, 3, 5, 100, 127, 2**15 - 1, 2**24 - 1, 2**24 + 1, 2**24 + 3, 2**31 - 1, 2**33 + 7, 2**53 + 1, high]
    some += [high - 1, low + 1, *(-one for one in some)]
    kept = [one for one in dict.fromkeys(some) if low < one <= high or one == 0]
    return torch.tensor(kept, dtype=dtype), torch.tensor(kept[::-1], dtype=dtype)


for _dtype in ENDS:
    add_beside(cases, f"exact-whole-{str(_dtype)[6:]}", _WHOLE, lambda d, dtype=_dtype: _whole(dtype), since="2.4")

# Shifts by as many bits as there are, and by none: each width, both sides, numbers and tensors.
_SHIFTS: dict[str, Any] = {
    "left": lambda x, n: torch.bitwise_left_shift(x[:, None] % 3, n[None] % 5),
    "right": lambda x, n: torch.bitwise_right_shift(x[:, None], n[None]),
    "operators": lambda x, n: [(x[:, None] % 3) << (n[None] % 5), x[:, None] >> n[None]],
    "numbers": lambda x, n: [[(x % 3) << int(one % 5), x >> int(one)] for one in n.cpu()],
    "of-number": lambda x, n: [1 << (n % 6), 100 >> n, torch.bitwise_left_shift(3, n % 5)],
    "in-place": lambda x, n: [x.clone().bitwise_right_shift_(n[1]), (x % 3).bitwise_left_shift_(n[1])],
    "methods": lambda x, n: [x.bitwise_right_shift(n[2]), (x % 3).bitwise_left_shift(2), x.clone().__irshift__(1)],
    "stepped": lambda x, n: [x[::2] >> n[1], (x.flip(0)[1:] % 3) << n[1]],
    "out": lambda x, n: torch.bitwise_right_shift(x, n[1], out=torch.empty_like(x)),
    "past": lambda x, n: [torch.bitwise_right_shift(x, _bits(x) + k) for k in (0, 1, 5)],
    "past-left": lambda x, n: [torch.bitwise_left_shift(x, _bits(x) + k) for k in (0, 1, 5)],
}


def _bits(x: torch.Tensor) -> int:
    return 8 * x.element_size()


for _dtype in ENDS:
    add_beside(
        cases,
        f"exact-shifts-{str(_dtype)[6:]}",
        _SHIFTS,
        lambda d, dtype=_dtype: (
            _whole(dtype)[0],
            torch.tensor([n for n in (0, 1, 2, 5, 7, 8, 15, 31, 40, 63) if n < ENDS[dtype].bits], dtype=dtype),
        ),
        since="2.4",
    )
