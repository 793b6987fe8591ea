"""Ranges of draws, to the last step of each dtype: a lower end that may come, an upper end that never does."""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.random_checks import add_random_check, demand
from device_suite.runs import seed_numbers

cases = Cases("random")
_MANY = 1 << 23
_COUNT = 1 << 17  # the last step below 1 comes 32 times in float16, 256 times in bfloat16


# What is drawn, its least value, the bound that it stays below, and whether it is a whole number.
_DRAWS: dict[str, tuple[Callable[[Any, Any], torch.Tensor], float, float, bool]] = {
    "rand": (lambda d, t: torch.rand(_COUNT, device=d, dtype=t), 0, 1, False),
    "rand_like": (lambda d, t: torch.rand_like(torch.empty(_COUNT // 8, 8, device=d, dtype=t)), 0, 1, False),
    "uniform": (lambda d, t: torch.empty(_COUNT, device=d, dtype=t).uniform_(), 0, 1, False),
    "uniform-wide": (lambda d, t: torch.empty(_COUNT, device=d, dtype=t).uniform_(-4, 12), -4, 12, False),
    "uniform-view": (lambda d, t: torch.empty(2 * _COUNT, device=d, dtype=t)[::2].uniform_(2, 3), 2, 3, False),
    "random": (lambda d, t: torch.empty(_COUNT, device=d, dtype=t).random_(3, 50), 3, 50, True),
    "random-to": (lambda d, t: torch.empty(_COUNT, device=d, dtype=t).random_(7), 0, 7, True),
    "randint": (lambda d, t: torch.randint(-2, 5, (_COUNT,), device=d, dtype=t), -2, 5, True),
}
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def _drawn(form: Any, dtype: torch.dtype) -> Any:
    def act(device: torch.device) -> Any:
        seed_numbers(device, 83)
        return [form(device, dtype)]

    return act


def _judge(name: str, least: float, bound: float, is_whole: bool) -> Any:
    """Return a judge: every value is in the range, and the ends are reached (a whole number's exactly)."""
    near = 1.0 if is_whole else (bound - least) / 16

    def judge(drawn: Any) -> None:
        low, high = float(drawn[0].min()), float(drawn[0].max())
        assert least <= low and high < bound, f"{name}: {low} to {high}, not in [{least}, {bound})"
        assert low < least + near and high >= bound - near, f"{name}: only {low} to {high} of [{least}, {bound})"

    return judge


for _name, (_form, _least, _bound, _is_whole) in _DRAWS.items():
    for _dtype in (*_FLOATS, torch.int64, torch.int32) if _is_whole else _FLOATS:
        add_random_check(
            cases,
            f"random-range-{_name}-{str(_dtype)[6:]}",
            _drawn(_form, _dtype),
            _judge(_name, _least, _bound, _is_whole),
        )

# What comes once in millions: a NaN, an infinite number, the upper end. In 2**23 draws each lies between these.
_LONG: dict[str, tuple[Callable[[Any], torch.Tensor], tuple[float, float], tuple[float, float]]] = {
    "rand": (lambda d: torch.rand(_MANY, device=d), (0.0, 1e-5), (1 - 1e-5, 1 - 2**-25)),
    "rand-half": (lambda d: torch.rand(_MANY, device=d, dtype=torch.float16), (0.0, 1e-3), (1 - 1e-3, 1 - 2**-12)),
    "randn": (lambda d: torch.randn(_MANY, device=d), (-7.0, -4.5), (4.5, 7.0)),
    "normal": (lambda d: torch.empty(_MANY, device=d).normal_(), (-7.0, -4.5), (4.5, 7.0)),
    "exponential": (lambda d: torch.empty(_MANY, device=d).exponential_(), (0.0, 1e-4), (11.0, 30.0)),
    # Of these 2**17 draws: each costs more, and an index of 16 bits shows in them too.
    "normal-sized": (lambda d: torch.normal(0.0, 1.0, (_COUNT,), device=d), (-7.0, -3.5), (3.5, 7.0)),
    "normal-means": (lambda d: torch.normal(_line(d), 1.0), (-7.0, -3.5), (3.5, 7.0)),
    "normal-spreads": (lambda d: torch.normal(0.0, _line(d) + 1), (-7.0, -3.5), (3.5, 7.0)),
    "normal-both": (lambda d: torch.normal(_line(d), _line(d) + 1), (-7.0, -3.5), (3.5, 7.0)),
    "randn_like": (lambda d: torch.randn_like(_line(d)), (-7.0, -3.5), (3.5, 7.0)),
    "log_normal": (lambda d: _line(d).log_normal_(0.0, 1.0), (0.0, 0.04), (25.0, 1100.0)),
    "cauchy": (lambda d: _line(d).cauchy_(), (-1e9, -1e3), (1e3, 1e9)),
    "geometric": (lambda d: _line(d).geometric_(0.5), (1.0, 1.0), (11.0, 40.0)),
    "gamma": (lambda d: torch._standard_gamma(_line(d) + 2), (0.0, 0.05), (11.0, 30.0)),
    "poisson": (lambda d: torch.poisson(_line(d) + 4), (0.0, 0.0), (13.0, 30.0)),
    "bernoulli": (lambda d: torch.bernoulli(_line(d) + 0.5), (0.0, 0.0), (1.0, 1.0)),
    "multinomial": (lambda d: torch.ones(9, device=d).multinomial(_COUNT, True).float(), (0.0, 0.0), (8.0, 8.0)),
    "randperm": (lambda d: torch.randperm(_COUNT, device=d).float(), (0.0, 0.0), (_COUNT - 1, _COUNT - 1)),
}


def _line(device: Any) -> torch.Tensor:
    return torch.zeros(_COUNT, device=device)


def _long(form: Any, low: tuple[float, float], high: tuple[float, float]) -> Any:
    def judge(drawn: Any) -> None:
        least, most = float(drawn[0].min()), float(drawn[0].max())  # NaN where any is NaN
        assert low[0] <= least <= low[1], f"the least is {least}, not in {low}"
        assert high[0] <= most <= high[1], f"the largest is {most}, not in {high}"

    def drawn_on(run: Any) -> Any:
        with run:
            run.seed(89)
            return [form(run.device).cpu()]

    return lambda bench: demand(judge, drawn_on(bench.device_run()), lambda: drawn_on(bench.same()))


for _name, (_form, _low, _high) in _LONG.items():
    cases.add(f"random-long-{_name}", _long(_form, _low, _high), check=True, may_be_missing=True, since="2.0")
