"""Random numbers, rule 7: a draw is as random as ever, whatever was drawn before it, and fills its own row alone.

A generator hands out blocks of numbers; one that is spent by a single number repeats the rest of its block:
https://github.com/torch/torch7/issues/167; two draws of 512 x 512 with one noise: https://github.com/pytorch/pytorch/issues/136750
"""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.answers import says_missing
from device_suite.random_checks import add_random_check
from device_suite.runs import seed_numbers

cases = Cases("random")
Draw = Callable[[torch.device, int], torch.Tensor]
_SIGMAS = 8


class Law(NamedTuple):
    """What is drawn: its ends, mean and deviation, and how probable its commonest number is (0: it has no such)."""

    draw: Draw
    low: float
    high: float
    mean: float
    deviation: float
    commonest: float = 0.0


def _filled(name: str, *args: Any, dtype: torch.dtype = torch.float32) -> Draw:
    return lambda d, n: getattr(torch.zeros(n, device=d, dtype=dtype), name)(*args)


def _half_open(d: torch.device, n: int) -> torch.Tensor:
    """Cauchy numbers have no mean: their angles are uniform."""
    return torch.zeros(n, device=d).cauchy_(0.5, 2).sub(0.5).div(2).atan() / math.pi + 0.5


_FLAT = 12**-0.5
_LAWS: dict[str, Law] = {
    "rand": Law(lambda d, n: torch.rand(n, device=d), 0, 1, 0.5, _FLAT),
    "randn": Law(lambda d, n: torch.randn(n, device=d), -9, 9, 0, 1),
    "randint": Law(lambda d, n: torch.randint(-7, 10**6, (n,), device=d), -7, 1e6, 5e5, 1e6 * _FLAT, 1e-6),
    "randperm": Law(lambda d, n: torch.randperm(n, device=d), 0, math.inf, math.nan, math.nan),
    "normal": Law(lambda d, n: torch.normal(3.0, 0.5, (n,), device=d), -2, 8, 3, 0.5),
    "bernoulli": Law(lambda d, n: torch.bernoulli(torch.full((n,), 0.3, device=d)), 0, 1, 0.3, 0.4583, 0.7),
    "poisson": Law(lambda d, n: torch.poisson(torch.full((n,), 9.0, device=d)), 0, 60, 9, 3, 0.132),
    "binomial": Law(
        lambda d, n: torch.binomial(torch.full((n,), 40.0, device=d), torch.full((n,), 0.25, device=d)),
        *(0, 40, 10, 2.7387, 0.1445),
    ),
    "gamma": Law(lambda d, n: torch._standard_gamma(torch.full((n,), 4.0, device=d)), 0, 60, 4, 2),
    "multinomial": Law(lambda d, n: torch.multinomial(torch.ones(97, device=d), n, True), 0, 96, 48, 28, 1 / 97),
    "dropout": Law(lambda d, n: F.dropout(torch.ones(n, device=d), 0.25), 0, 1.3334, 1, 0.5774, 0.75),
    "uniform_": Law(_filled("uniform_", -1, 3), -1, 3, 1, 4 * _FLAT),
    "normal_": Law(_filled("normal_", 1, 2), -17, 19, 1, 2),
    "exponential_": Law(_filled("exponential_", 0.5), 0, 60, 2, 2),
    "log_normal_": Law(_filled("log_normal_", 0, 0.25), 0, 9, 1.0317, 0.262),
    "cauchy_": Law(_half_open, -1e-6, 1 + 1e-6, 0.5, _FLAT),
    "geometric_": Law(_filled("geometric_", 0.5), 1, 60, 2, 1.4142, 0.5),
    "random_": Law(_filled("random_", dtype=torch.int32), 0, 2.0**31, 2.0**30, 2.0**31 * _FLAT, 2.0**-31),
}
# Of which five numbers are drawn before, not only one, and right after a seed.
_BLOCKS = ("rand", "uniform_", "normal_")
# As many numbers may be equal by the steps of a float32: between 0.5 and 1 it has 2**23, a normal number has fewer.
_STEPS = 2.0**-21


def _demand(law: Law, name: str, y: torch.Tensor) -> None:
    _demand_its_law(law, name, y)
    count = y.numel()
    numbers, counts = y.unique(return_counts=True)
    if math.isnan(law.mean):
        assert len(numbers) == count == int(y.max()) + 1, f"{name}: no permutation"
        return
    likely = count * max(law.commonest, _STEPS)
    assert int(counts.max()) <= likely + _SIGMAS * math.sqrt(likely) + 4, (
        f"{name}: one number {int(counts.max())} times"
    )
    if law.commonest < 1e-4:
        chance = count * count * max(law.commonest, _STEPS) / 2
        assert count - len(numbers) <= chance + _SIGMAS * math.sqrt(chance) + 3, f"{name}: equal numbers"


def _demand_its_law(law: Law, name: str, y: torch.Tensor) -> None:
    assert law.low <= float(y.min()) and float(y.max()) <= law.high, f"{name}: outside of its range"
    off = abs(float(y.double().mean()) - law.mean) * math.sqrt(y.numel()) / law.deviation
    assert math.isnan(off) or off < _SIGMAS, f"{name}: its mean is {off:.1f} deviations off"


def _draw_if_there(name: str, device: torch.device, count: int) -> None:
    """Draw, unless the back end lacks it: what comes next is asked all the same."""
    try:
        _LAWS[name].draw(device, count)
    except Exception as raised:
        if not says_missing(raised):
            raise


def _after(
    second: str, firsts: tuple[str, ...], count: int
) -> tuple[Callable[[torch.device], Any], Callable[[Any], None]]:
    """Return what draws a law right after a few numbers of each other one, and what judges it."""
    turns = [(first, few) for first in firsts for few in ((1, 5) if first in _BLOCKS and count < 1000 else (1,))]

    def act(device: torch.device) -> Any:
        found = []
        seed_numbers(device, len(turns))
        for number, (first, few) in enumerate(turns):
            if first in _BLOCKS:  # what is drawn by blocks: from the begin of one, by the name that everybody uses
                torch.manual_seed(number)
            _draw_if_there(first, device, few)
            found.append(_LAWS[second].draw(device, count))
        return found

    def judged(drawn: Any) -> None:
        for (first, few), y in zip(turns, drawn):
            _demand(_LAWS[second], f"{second} after {few} of {first}", y)

    return act, judged


for _name in _LAWS:
    add_random_check(cases, f"random-in-turn-{_name}", *_after(_name, tuple(_LAWS), 257))
for _name in ("rand", "randn", "uniform_"):
    add_random_check(cases, f"random-in-turn-{_name}-many", *_after(_name, ("rand", "uniform_"), 100_000))


def _uncorrelated(name: str, one: torch.Tensor, two: torch.Tensor) -> None:
    one, two = ((y.float() - y.float().mean()).flatten() for y in (one, two))
    found = float(one @ two / (one.norm() * two.norm()).clamp(min=1e-9)) * math.sqrt(len(one))
    assert abs(found) < _SIGMAS, f"{name}: a correlation {abs(found):.1f} times that of chance"


def _twice(name: str) -> tuple[Callable[[torch.device], Any], Callable[[Any], None]]:
    def act(device: torch.device) -> Any:
        seed_numbers(device, 1)
        draw = _SQUARES.get(name, lambda device: _LAWS[name].draw(device, 1 << 14))
        return draw(device), draw(device)

    def judged(drawn: Any) -> None:
        for y in drawn:
            _demand_its_law(_LAWS[name], name, y)
            _uncorrelated(f"{name}, its halves", *y.flatten().tensor_split(2))
        _uncorrelated(f"two draws of {name}", *drawn)

    return act, judged


_SIDES = (512, 512)
# Of a square where the call takes one.
_SQUARES: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "rand": lambda d: torch.rand(_SIDES, device=d),
    "randn": lambda d: torch.randn(_SIDES, device=d),
    "bernoulli": lambda d: torch.bernoulli(torch.full(_SIDES, 0.3, device=d)),
    "poisson": lambda d: torch.poisson(torch.full(_SIDES, 9.0, device=d)),
    "dropout": lambda d: F.dropout(torch.ones(_SIDES, device=d), 0.25),
    "uniform_": lambda d: torch.zeros(_SIDES, device=d).uniform_(-1, 3),
    "normal_": lambda d: torch.zeros(_SIDES, device=d).normal_(1, 2),
}
for _name in _LAWS:
    add_random_check(cases, f"random-in-turn-{_name}-twice", *_twice(_name))

# What fills a row: of numbers that none of them draws.
_FILLERS: dict[str, tuple[torch.dtype, Callable[[torch.Tensor], Any]]] = {
    **{
        name: (torch.float32, lambda row, name=name, args=args: getattr(row, name)(*args))
        for name, args in (
            *(("uniform_", ()), ("normal_", ()), ("exponential_", ()), ("log_normal_", ()), ("cauchy_", ())),
            *(("geometric_", (0.5,)), ("bernoulli_", (0.5,))),
        )
    },
    "random_": (torch.int32, lambda row: row.random_(0, 99)),
    "rand": (torch.float32, lambda row: torch.rand(row.shape, out=row)),
    "randn": (torch.float32, lambda row: torch.randn(row.shape, out=row)),
    "randint": (torch.int64, lambda row: torch.randint(0, 99, row.shape, out=row)),
    "randperm": (torch.int64, lambda row: torch.randperm(len(row), out=row)),
    "normal": (torch.float32, lambda row: torch.normal(0.0, 1.0, row.shape, out=row)),
    "bernoulli": (torch.float32, lambda row: torch.bernoulli(torch.full_like(row, 0.5), out=row)),
}
_KEPT = -12345


def _row(name: str, columns: int) -> Callable[[torch.device], Any]:
    def act(device: torch.device) -> Any:
        seed_numbers(device, columns)
        dtype, fill = _FILLERS[name]
        rows = torch.full((3, columns), _KEPT, dtype=dtype, device=device)
        fill(rows[1])
        return (rows,)

    return act


def _alone(drawn: Any) -> None:
    (rows,) = drawn
    assert bool((rows[::2] == _KEPT).all()), "a row beside the drawn one is not what it was"
    assert bool((rows[1] != _KEPT).all()), "a part of the row was not drawn"


for _name in _FILLERS:
    for _columns in (257, *((65_541, 1 << 20) if _name in ("uniform_", "normal_", "bernoulli_") else ())):
        _id = f"random-in-turn-row-{_name}-{_columns}"
        add_random_check(cases, _id, _row(_name, _columns), _alone, full=_columns == 1 << 20)
