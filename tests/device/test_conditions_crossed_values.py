"""Conditions of values: a factor of zero beside NaN, numbers of another dtype, NaN that is written, ends of ranges."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.answers import Host, attempt
from device_suite.limits import assigned

cases = Cases("conditions")
ONCE = ("fresh",)
HALVES = (torch.float16, torch.bfloat16)
INF, NAN = float("inf"), float("nan")


def short(dtype: torch.dtype) -> str:
    """Return a dtype's name without its module."""
    return str(dtype)[6:]


def spoiled(x: torch.Tensor) -> torch.Tensor:
    """Return the values with NaN and both infinities among them, each more than once where there is room."""
    flat = x.clone().view(-1)
    for start, value in ((1, NAN), (3, INF), (4, -INF)):
        flat[start::11] = value
    return flat.view(x.shape)


# A factor of zero: what is multiplied still tells its NaN; what is documented as ignored tells nothing.
_TOLD = {
    "addcmul": lambda a, b, c: torch.addcmul(a, b, c, value=0),
    "addcdiv": lambda a, b, c: torch.addcdiv(a, b, c, value=0),
    "add": lambda a, b, c: torch.add(a, b, alpha=0),
    "sub": lambda a, b, c: torch.sub(a, b, alpha=0),
    "add_": lambda a, b, c: a.clone().add_(b, alpha=0),
    "addcmul_": lambda a, b, c: a.clone().addcmul_(b, c, value=0),
    "foreach": lambda a, b, c: [*torch._foreach_addcmul([a], [b], [c], 0), *torch._foreach_add([a], [b], alpha=0)],
}
_IGNORED = {
    "addmm": lambda a, b, c: torch.addmm(a, b, c, beta=0),
    "addmv": lambda a, b, c: torch.addmv(a[0], b, c[0], beta=0),
    "addr": lambda a, b, c: torch.addr(a, b[0], c[0], beta=0),
    "baddbmm": lambda a, b, c: torch.baddbmm(a[None], b[None], c[None], beta=0, alpha=2),
    "addbmm": lambda a, b, c: torch.addbmm(a, b[None], c[None], beta=0),
}


def _zero_factors(forms: Any, operands: tuple[int, ...]) -> Any:
    def act(*bases: Any) -> Any:
        found = []
        for place in operands:
            given = list(bases[:3])
            given[place] = bases[3 + place]
            found.append({name: attempt(lambda form=form, given=given: form(*given)) for name, form in forms.items()})
        return found

    return act


def _clean_and_spoiled(d: Any, dtype: torch.dtype) -> Any:
    clean = [d.of(dtype, 5, 5) for _ in range(3)]
    return *clean, *(spoiled(one) for one in clean)


for _dtype in (torch.float32, *HALVES, torch.complex64):
    if not _dtype.is_complex:
        cases.add(
            f"condition-crossed-zero-factor-{short(_dtype)}",
            _zero_factors(_TOLD, (0, 1, 2)),
            make=lambda d, dtype=_dtype: _clean_and_spoiled(d, dtype),
            states=ONCE,
        )
    cases.add(
        f"condition-crossed-ignored-{short(_dtype)}",
        _zero_factors(_IGNORED, (0,)),
        make=lambda d, dtype=_dtype: _clean_and_spoiled(d, dtype),
        terms=16,
        states=ONCE,
    )


# NaN and infinity in what is written to places, also where several meet.
_WRITERS: dict[str, Any] = {
    "index_add": lambda x, i, y: x.index_add(0, i, y),
    "index_copy": lambda x, i, y: x.index_copy(0, i.unique(), y[: len(i.unique())]),
    "index_put": lambda x, i, y: [x.index_put((i,), y, True), x.index_put((i.unique(),), y[0])],
    "scatter_add": lambda x, i, y: x.scatter_add(0, i[:, None].expand_as(y), y),
    "masked_scatter": lambda x, i, y: x.masked_scatter(x > 0, y),
    "put": lambda x, i, y: x.put(i, y[:, 0].contiguous(), True),
}
for _how in ("amax", "amin", "mean", "prod"):
    for _own in (True, False):
        _WRITERS[f"index_reduce-{_how}-{_own}"] = lambda x, i, y, how=_how, own=_own: x.clone().index_reduce_(
            0, i, y, how, include_self=own
        )
        _WRITERS[f"scatter_reduce-{_how}-{_own}"] = lambda x, i, y, how=_how, own=_own: x.scatter_reduce(
            0, i[:, None].expand_as(y), y, how, include_self=own
        )
for _name, _form in _WRITERS.items():
    cases.add(
        f"condition-crossed-written-{_name}",
        _form,
        make=lambda d: (d.normal(6, 4), d.permutation(12)[:9] % 5, spoiled(d.normal(9, 4))),
        terms=16,
        states=ONCE,
        deterministic=False,
        may_be_missing=True,
    )
cases.add(
    "condition-crossed-assigned",
    lambda x, m: [
        [assigned(x, m, value), x.masked_fill(m, value), x.where(~m, torch.tensor(value, device=x.device))]
        for value in (INF, -INF, NAN, 3e38, -0.0)
    ],
    make=lambda d: (d.normal(5 + d.k, 7), d.bools(5 + d.k, 7)),
)


# Python numbers at their ends, as the second operand and as the first.
_SCALARS = (-2.0, -0.5, -0.0, 0.0, 3)
_TAKE_SCALARS = {
    "copysign": torch.copysign,
    "sub": torch.sub,
    "rsub": torch.rsub,
    "mul": torch.mul,
    "pow": lambda x, s: torch.pow(x.abs() + 0.5, s),
    "base": lambda x, s: torch.pow(abs(s) + 0.5, x),
    "div": lambda x, s: x / (s or 1),
    "over": lambda x, s: s / (x.abs() + 0.5),
    "fmod": lambda x, s: torch.fmod(x, s or -1.5),
    "remainder": lambda x, s: torch.remainder(x, s or -1.5),
    "floor": lambda x, s: torch.div(x, s or -1.5, rounding_mode="floor"),
    "trunc": lambda x, s: torch.div(x, s or -1.5, rounding_mode="trunc"),
    "xlogy": lambda x, s: torch.xlogy(s, x.abs() + 0.5),
    "heaviside": lambda x, s: torch.heaviside(x, torch.tensor(s, dtype=x.dtype, device=x.device)),
    "compared": lambda x, s: [x > s, x <= s, x == s, x != s],
    "least": lambda x, s: [x.clamp_min(s), x.clamp_max(s), x.clamp(s, 1), x.clamp(1, s), F.threshold(x, s, -s)],
}
for _dtype in (torch.float32, *HALVES):
    for _name, _form in _TAKE_SCALARS.items():
        cases.add(
            f"condition-crossed-scalar-{_name}-{short(_dtype)}",
            lambda x, form=_form: [form(x, number) for number in _SCALARS],
            # Quarters: no quotient lies so near to a whole number that rounding decides.
            make=lambda d, dtype=_dtype: (d.integers(-9, 10, 5 + d.k, 7).to(dtype) / 4,),
            factor=32.0,
            states=ONCE,
        )


# A number without dimensions of another dtype, on the host and on the device.
_WEIGHED = {
    "lerp": lambda x, y, w: [torch.lerp(x, y, w), x.clone().lerp_(y, w)],
    "clamp": lambda x, y, w: [x.clamp(min=w), x.clamp(max=w)],
    "where": lambda x, y, w: torch.where(x > y, x, w),
    "fill": lambda x, y, w: [x.clone().fill_(w), x.masked_fill(x > y, w)],
    "arithmetic": lambda x, y, w: [x + w, w - x, x * w, x / w, torch.maximum(x, w.to(x.dtype)), x.clone().mul_(w)],
    "ternary": lambda x, y, w: [torch.addcmul(x, y, w), torch.addcdiv(x, y, w)],
    "compared": lambda x, y, w: [x > w, w >= x, torch.isclose(x, w.to(x.dtype))],
}
for _dtype in HALVES:
    for _number in (torch.float32, torch.int64):
        cases.add(
            f"condition-crossed-number-{short(_dtype)}-{short(_number)}",
            lambda x, y, host, w: {
                name: [attempt(lambda form=form, one=one: form(x, y, one), gap="xpected") for one in (host.view, w[1])]
                for name, form in _WEIGHED.items()
                if name != "lerp" or not one_is_whole(host.view)
            },
            make=lambda d, dtype=_dtype, number=_number: (
                *(d.of(dtype, 5 + d.k, 7) for _ in range(2)),
                Host(torch.tensor([3.0, 0.25, 5.0]).mul(4 if number == torch.int64 else 1).to(number), lambda b: b[1]),
                torch.tensor([3.0, 0.25, 5.0]).mul(4 if number == torch.int64 else 1).to(number),
            ),
            factor=16.0,
            states=ONCE,
        )


def one_is_whole(x: torch.Tensor) -> bool:
    """Say whether a tensor holds integers."""
    return not x.is_floating_point()


# Elements from one dtype to another, one at a time, into views with an offset.
_DTYPES = (torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool)


def _element_by_element(*bases: Any) -> Any:
    found = []
    for target in bases:
        for source in bases:
            written = torch.zeros_like(target)
            for place in range(len(source)):
                written[place] = source[len(source) - 1 - place]
            found.append(written)
    return found


cases.add(
    "condition-crossed-elements",
    _element_by_element,
    make=lambda d: tuple(d.integers(0, 9, 4 + d.k).to(dtype) for dtype in _DTYPES),
    states=ONCE,
)


# One step away from zero and from one: exactly the next number, so asked in the dtype itself and compared by its bits.
def _steps(bench: Any) -> None:
    starts, ends = [0.0, -0.0, 0.0, -0.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0, 2.0, 2.0]
    for dtype in HALVES:
        with bench.device_run() as run:
            given = [torch.tensor(values).to(dtype).to(run.device) for values in (starts, ends)]
            stepped = attempt(lambda given=given: torch.nextafter(*given).cpu().clone())
        if isinstance(stepped, torch.Tensor):
            least, eps = torch.tensor(1, dtype=torch.int16), torch.finfo(dtype).eps
            low = float(least.view(dtype))
            wanted = torch.tensor([low, low, -low, -low, 1 + eps, -1 + eps / 2]).to(dtype)
            assert torch.equal(stepped.view(torch.int16), wanted.view(torch.int16)), f"{dtype}: {stepped.tolist()}"


cases.add("condition-crossed-steps-from-zero", _steps, check=True, since="2.4")


# Numbers at the ends of a distribution, and complex ones.
def _ends(bench: Any) -> None:
    run = bench.device_run()
    run.seed(bench.seed + 1)
    with run:
        drawn = torch.empty(1 << 22, device=run.device)
        waits = float(drawn.exponential_().min().cpu())
        shares = float(drawn.uniform_().max().cpu())
        sizes = float(drawn.normal_().abs().max().cpu())
    assert waits > 0, "exponential_ drew zero: its logarithm is not finite"
    assert shares < 1, "uniform_ drew its upper end"
    assert math.isfinite(sizes), "normal_ drew a number that is not finite"


def _complex(bench: Any) -> None:
    run = bench.device_run()
    run.seed(bench.seed + 2)
    at = {"dtype": torch.complex64}
    with run:
        forms = {
            "randn": lambda: torch.randn(20_000, device=run.device, **at),
            "randn_like": lambda: torch.randn_like(torch.zeros(20_000, device=run.device, **at)),
            "normal_": lambda: torch.zeros(20_000, device=run.device, **at).normal_(),
        }
        found = {name: attempt(form) for name, form in forms.items()}
        parts = {name: torch.view_as_real(x.cpu().clone()) for name, x in found.items() if isinstance(x, torch.Tensor)}
    for name, x in parts.items():
        spread, tie = x.std(0), float(torch.corrcoef(x.T)[0, 1])
        assert bool((spread - math.sqrt(0.5)).abs().max() < 0.02), f"{name}: parts have deviations {spread.tolist()}"
        assert abs(tie) < 0.05, f"{name}: the parts are correlated by {tie:.3f}"


# Choices out of a vocabulary, most of it impossible.
def _vocabulary(bench: Any) -> None:
    chances = bench.draw("vocabulary").normal(151_936).mul(60).softmax(0)
    run = bench.device_run()
    run.seed(bench.seed + 3)
    with run:
        rows = chances.to(run.device).expand(48, -1)
        drawn = torch.multinomial(rows, 1).cpu().flatten()
    assert bool((chances[drawn] > 0).all()), "a choice of chance zero was drawn"


cases.add("condition-crossed-drawn-ends", _ends, check=True, since="2.0")
cases.add("condition-crossed-drawn-vocabulary", _vocabulary, check=True, since="2.0")
cases.add("condition-crossed-drawn-complex", _complex, check=True, since="2.4")
