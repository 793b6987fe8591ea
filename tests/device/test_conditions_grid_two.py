"""Rule 3: functions of two numbers on a grid of magnitudes, 1e-6 to 1e30 with both signs, in each operand.

An answer that is an ordinary number must be one, near the right one: zeta(x, q) was NaN for a large x,
https://github.com/jax-ml/jax/issues/3758
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import ONCE, each

cases = Cases("conditions")
_HEIGHTS = (1e-6, 3e-4, 0.02, 0.3, 0.75, 1.0, 1.6, 2.0, 5.5, 13.0, 40.0, 170.0, 3e3, 1e5, 2e7, 1e10, 1e15, 1e22, 1e30)
_GRID = torch.tensor([sign * height for height in _HEIGHTS for sign in (1.0, -1.0)])
# The ends of what is an ordinary float32, with room for a step in between that is a little larger.
_LEAST, _MOST = 1e-34, 1e34
# Answers of a group are within so many times of each other: the bound is of the largest.
_SPAN = 8.0

_FUNCTIONS: dict[str, tuple[Any, float]] = {
    **{
        name: (getattr(torch, name), 4.0)
        for name in ("hypot", "atan2", "logaddexp", "logaddexp2", "copysign", "xlogy", "maximum", "fmin", "mul", "div")
    },
    "pow": (torch.pow, 64.0),
    "pow-whole": (lambda x, y: torch.pow(x, y.round().clamp(-9, 9)), 16.0),
    "zeta": (torch.special.zeta, 16.0),
    "xlog1py": (torch.special.xlog1py, 4.0),
    "igamma": (torch.igamma, 64.0),
    "igammac": (torch.igammac, 64.0),
    "igamma-special": (torch.special.gammainc, 64.0),
    "igammac-special": (torch.special.gammaincc, 64.0),
    "ldexp": (lambda x, y: torch.ldexp(x, y.clamp(-90, 90).to(torch.int32)), 4.0),
}


def _known(name: str, function: Callable[..., torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
    """Return the operands whose answer is an ordinary number, in the order of answers, and how many are in a group."""
    x, y = (one.flatten() for one in torch.meshgrid(_GRID, _GRID, indexing="ij"))
    if name.startswith("igamma"):  # past these its sums are long, and far in its tails it has no digits
        near = (x > 0) & (y > 0) & (x < 1e4) & (y < 1e4)
        x, y = x[near], y[near]
    z = function(x.double(), y.double()).abs()
    # A difference of what is nearly equal has no digits.
    least = (
        0.5 if name.startswith("logadd") else 1e-3 if name.startswith("igamma") else 1e-6 if name == "zeta" else _LEAST
    )
    known = (z > least) & (z < _MOST)
    x, y, z = x[known], y[known], z[known]
    order = z.argsort(stable=True)
    groups = torch.log(z[order]).div(torch.log(torch.tensor(_SPAN))).floor().unique_consecutive(return_counts=True)[1]
    return x[order].contiguous(), y[order].contiguous(), groups.tolist()


def _asked(function: Callable[..., torch.Tensor]) -> dict[str, Callable[..., Any]]:
    return {
        "pairs": lambda x, y, groups: list(function(x, y).split(groups)),
        # The same from memory with gaps.
        "gaps": lambda x, y, groups: list(
            function(torch.stack([x, y], 1)[:, 0], torch.stack([y, x], 1)[:, 0]).split(groups)
        ),
    }


for _name, (_function, _factor) in _FUNCTIONS.items():
    cases.add(
        f"condition-limit-two-{_name}",
        lambda x, y, groups, function=_function: each(_asked(function), x, y, groups),
        make=lambda d, name=_name, function=_function: _known(name, function),
        terms=16,
        factor=_factor,
        states=ONCE,
        may_be_missing=True,
    )

_BY = (3.0, 5.0, 7.0, 10.0, 12.0, -3.0, 0.75, 0.625, 1.5, 24.0)


def _whole(_: Any) -> Any:
    """Return pairs whose quotient, up to 2**22, is so far from the next whole number that float32 tells them apart."""
    whole = torch.tensor([*range(24), *(2**k + step for k in range(5, 22) for step in (-1, 0, 1)), 100_003, 3_000_001])
    found = []
    for by in _BY:
        part = abs(by) / 16 if abs(by) < 1 else 1.0
        rests = torch.arange(0.0, abs(by), part, dtype=torch.float64)
        x = (whole.double()[:, None] * abs(by) + rests).flatten()
        x = torch.cat([x, -x])
        x = x[x.abs() < 2**24]
        exact, rounded = x / by, (x.float() / torch.tensor(by)).double()
        same = (exact.floor() == rounded.floor()) & (exact.trunc() == rounded.trunc()) & (x == x.float())
        # A quotient that rounds to a whole number is one.
        same &= (exact == exact.round()) | (rounded != rounded.round())
        found.append(x[same].float())
    return tuple(found)


_RESTS: dict[str, Callable[..., Any]] = {
    "fmod": torch.fmod,
    "remainder": torch.remainder,
    "operator": lambda x, by: x % by,
    "floor_divide": torch.floor_divide,
    "floor": lambda x, by: torch.div(x, by, rounding_mode="floor"),
    # By a number a GPU may multiply with its reciprocal before it truncates.
    "trunc": lambda x, by: torch.div(x, torch.as_tensor(by, device=x.device), rounding_mode="trunc"),
    "written": lambda x, by: [x.clone().fmod_(by), x.clone().remainder_(by), x.clone().floor_divide_(by)],
}


def _rest(form: Callable[..., Any], *lines: torch.Tensor) -> Any:
    """Divide by numbers, by tensors as long, and by one without dimensions."""
    found = []
    for x, by in zip(lines, _BY):
        other = torch.tensor(by, device=x.device, dtype=x.dtype)
        found.append([form(x, by), form(x, other), form(x, torch.full_like(x, by))])
    return found


for _name, _form in _RESTS.items():
    # One is wrong by one at the least: no rounding is.
    cases.add(
        f"condition-limit-two-rest-{_name}",
        lambda *lines, form=_form: each({"": lambda *x: _rest(form, *x)}, *lines),
        make=_whole,
        terms=1,
        states=ONCE,
        may_be_missing=True,
    )

_ORDERS = (*range(7), 20, 50, 200)


def _derived(_: Any) -> Any:
    """Return for each order where polygamma is an ordinary number, or past all of them, away from its poles."""
    line = torch.tensor([0.3, 0.5, 0.9, 1.0, 1.46, 2.0, 3.25, 7.5, 20.0, 64.0, 300.0, 1e4, 1e6, 1e12])
    line = torch.cat([line, torch.tensor([-0.25, -0.75, -1.25, -1.56, -1.75, -2.375, -3.6])])
    found = []
    for order in _ORDERS:
        z = torch.polygamma(order, line)
        truth = torch.polygamma(order, line.double())
        known = z.isfinite() & (truth.abs() > _LEAST) & (truth.abs() < _MOST)
        known &= (z - truth).abs() < 1e-4 * truth.abs()
        known |= z.isinf() & (z == truth.float())
        found.append(line[known])
    return tuple(found)


cases.add(
    "condition-limit-two-polygamma",
    lambda *lines: each(
        {
            str(order): lambda *x, number=number, order=order: list(torch.polygamma(order, x[number]))
            for number, order in enumerate(_ORDERS)
        },
        *lines,
    ),
    make=_derived,
    terms=256,
    factor=512.0,  # exp(lgamma(order + 1)) in float32 has lost as much for the largest order
    states=ONCE,
    may_be_missing=True,
)
