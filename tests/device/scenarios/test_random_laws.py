"""Random numbers: each generator judged by its statistics; parameters at their ends; what comes once in millions."""

from __future__ import annotations

from typing import Any, Callable

import torch

from engine import Cases
from engine.layouts import short
from engine.random_numbers import (
    DEEP,
    GENERATORS,
    LARGE,
    SHAPES,
    Generator,
    add_random_check,
    check_all,
    demand,
    demand_same_numbers,
)
from engine.runs import seed_numbers

cases = Cases("scenarios")


def like_the_host(name: str, bench: Any, drawn: list[torch.Tensor], again: Any) -> None:
    """Where the device is the CPU, its numbers are the host's: the rehearsal sees what statistics cannot."""
    if bench.device.type == "cpu":
        demand_same_numbers(name, drawn, again(bench.device))


def _draws(generator: Generator, shapes: Any, dtype: torch.dtype, seed: int) -> Any:
    def draw(device: torch.device) -> list[torch.Tensor]:
        seed_numbers(device, seed)
        return [generator.draw(shape, device, dtype).cpu().clone() for shape in shapes for _ in range(2)]

    return draw


def _judged(generator: Generator, shapes: Any, dtype: torch.dtype) -> Any:
    draw = _draws(generator, shapes, dtype, 17)

    def check(bench: Any) -> None:
        name = f"{generator.name} {short(dtype)}"
        with bench.device_run() as run:
            drawn = draw(run.device)
        like_the_host(name, bench, drawn, draw)
        eps = torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
        high = generator.high * (1 + (5 * eps if generator.computed else 0))
        for one, two, shape in zip(drawn[::2], drawn[1::2], shapes):
            where = f"{name} {shape}"
            assert tuple(one.shape) == shape, f"{where}: shape {tuple(one.shape)}"
            assert not torch.equal(one, two), f"{where}: two draws are equal"
            for each in (one, two):
                assert float(each.min()) >= generator.low, f"{where}: {float(each.min())} is below the range"
                assert float(each.max()) <= high, f"{where}: {float(each.max())} is above the range"
                check_all(where, each, generator, step=eps * 4 if eps > 1e-4 else 0.0)

    return check


for _generator in GENERATORS:
    for _dtype in _generator.dtypes[:2]:
        cases.add(
            f"random-{_generator.name}-{short(_dtype)}",
            _judged(_generator, SHAPES[4:5], _dtype),
            check=True,
            may_be_missing=True,
            since="2.0",
            devices=_generator.devices,
        )
    if _generator.name in ("randn", "rand", "uniform_", "normal_", "bernoulli_", "randint", "dropout"):
        for _label, _shape in (("large", LARGE), ("deep", DEEP)):
            cases.add(
                f"random-{_generator.name}-{_label}",
                _judged(_generator, (_shape,), _generator.dtypes[0]),
                check=True,
                since="2.0",
            )


_COUNT = 4096
Judge = Callable[[torch.Tensor], None]


def _full(device: Any, value: float) -> torch.Tensor:
    return torch.full((_COUNT,), value, device=device, dtype=torch.float32)


def _between(least: float, most: float, mean: tuple[float, float]) -> Judge:
    """Return a judge: every number lies between two, and their mean between two others."""

    def judge(x: torch.Tensor) -> None:
        low, high = float(x.min()), float(x.max())
        assert least <= low and high <= most, f"{low} to {high}, not in [{least}, {most}]"
        found = float(x.double().mean())
        assert mean[0] <= found <= mean[1], f"a mean of {found}, not in {mean}"

    return judge


def _corners(x: torch.Tensor) -> None:
    """Demand points of a simplex that nearly all lie near a corner, each corner as often as the others."""
    assert bool(x.isfinite().all()), "a draw is not finite"
    assert bool(((x.sum(-1) - 1).abs() < 1e-3).all()), "a point does not sum to 1"
    near = float((x.amax(-1) > 0.9).double().mean())
    assert near > 0.75, f"only {near} of the points lie near a corner"
    shares = (x > 0.9).double().mean(0)
    assert bool((shares > 0.2).all()), f"corners are met by {shares.tolist()}"


def _dirichlet(device: Any, concentration: float) -> torch.Tensor:
    return torch._sample_dirichlet(torch.full((_COUNT, 3), concentration, device=device))


_DRAWS: dict[str, tuple[Callable[[Any], torch.Tensor], Judge]] = {
    "dirichlet-0.01": (lambda d: _dirichlet(d, 0.01), _corners),
    "dirichlet-0.05": (lambda d: _dirichlet(d, 0.05), _corners),
    "dirichlet-1000": (lambda d: _dirichlet(d, 1e3), _between(0.2, 0.5, (0.333, 0.334))),
    "gamma-0.01": (lambda d: torch._standard_gamma(_full(d, 0.01)), _between(0.0, 20.0, (0.002, 0.03))),
    "gamma-1000": (lambda d: torch._standard_gamma(_full(d, 1e3)), _between(800, 1200, (997, 1003))),
    "poisson-0": (lambda d: torch.poisson(_full(d, 0.0)), _between(0, 0, (0, 0))),
    "poisson-0.001": (lambda d: torch.poisson(_full(d, 1e-3)), _between(0, 2, (0, 0.004))),
    "poisson-10000": (lambda d: torch.poisson(_full(d, 1e4)), _between(9400, 10600, (9992, 10008))),
    "binomial-0": (lambda d: torch.binomial(_full(d, 9), _full(d, 0.0)), _between(0, 0, (0, 0))),
    "binomial-1": (lambda d: torch.binomial(_full(d, 9), _full(d, 1.0)), _between(9, 9, (9, 9))),
    "binomial-small": (lambda d: torch.binomial(_full(d, 900), _full(d, 1e-4)), _between(0, 5, (0.07, 0.11))),
    "bernoulli-0": (lambda d: torch.bernoulli(_full(d, 0.0)), _between(0, 0, (0, 0))),
    "bernoulli-1": (lambda d: torch.bernoulli(_full(d, 1.0)), _between(1, 1, (1, 1))),
    "bernoulli-p-1": (lambda d: _full(d, 0.0).bernoulli_(1.0), _between(1, 1, (1, 1))),
    "exponential-small": (lambda d: _full(d, 0.0).exponential_(1e-6), _between(0, 3e7, (9e5, 1.1e6))),
    "exponential-large": (lambda d: _full(d, 0.0).exponential_(1e6), _between(0, 3e-5, (9e-7, 1.1e-6))),
    "geometric-small": (lambda d: _full(d, 0.0).geometric_(0.001), _between(1, 20000, (900, 1100))),
    "geometric-large": (lambda d: _full(d, 0.0).geometric_(0.999), _between(1, 4, (1.0, 1.01))),
    "normal-0": (lambda d: torch.normal(_full(d, 2.0), 0.0), _between(2, 2, (2, 2))),
    "normal-large": (lambda d: _full(d, 0.0).normal_(1e6, 1.0), _between(999_990, 1_000_010, (999_999.8, 1_000_000.2))),
    "log_normal-0": (lambda d: _full(d, 0.0).log_normal_(0.0, 1e-6), _between(0.999, 1.001, (0.9999, 1.0001))),
    "uniform-narrow": (lambda d: _full(d, 0.0).uniform_(1.0, 1.0), _between(1, 1, (1, 1))),
    "multinomial-sure": (
        lambda d: torch.tensor([0.0, 0.0, 3.0, 0.0], device=d).multinomial(_COUNT, True).float(),
        _between(2, 2, (2, 2)),
    ),
    "multinomial-rare": (
        lambda d: torch.tensor([1e-6, 1.0, 0.0], device=d).multinomial(_COUNT, True).float(),
        _between(0, 1, (0.999, 1)),
    ),
}


def _drawn_once(form: Any) -> Any:
    def act(device: torch.device) -> Any:
        seed_numbers(device, 97)
        return [form(device)]

    return act


for _name, (_form, _judge) in _DRAWS.items():
    add_random_check(cases, f"random-extreme-{_name}", _drawn_once(_form), lambda drawn, judge=_judge: judge(drawn[0]))


_MANY = 1 << 23
_FULL = 1 << 17  # the last step below 1 comes 32 times in float16, 256 times in bfloat16


# What is drawn, its least value, the bound that it stays below, and whether it is a whole number.
_RANGES: dict[str, tuple[Callable[[Any, Any], torch.Tensor], float, float, bool]] = {
    "rand": (lambda d, t: torch.rand(_FULL, device=d, dtype=t), 0, 1, False),
    "rand_like": (lambda d, t: torch.rand_like(torch.empty(_FULL // 8, 8, device=d, dtype=t)), 0, 1, False),
    "uniform": (lambda d, t: torch.empty(_FULL, device=d, dtype=t).uniform_(), 0, 1, False),
    "uniform-wide": (lambda d, t: torch.empty(_FULL, device=d, dtype=t).uniform_(-4, 12), -4, 12, False),
    "uniform-view": (lambda d, t: torch.empty(2 * _FULL, device=d, dtype=t)[::2].uniform_(2, 3), 2, 3, False),
    "random": (lambda d, t: torch.empty(_FULL, device=d, dtype=t).random_(3, 50), 3, 50, True),
    "random-to": (lambda d, t: torch.empty(_FULL, device=d, dtype=t).random_(7), 0, 7, True),
    "randint": (lambda d, t: torch.randint(-2, 5, (_FULL,), device=d, dtype=t), -2, 5, True),
}
_RANGE_FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def _drawn_of(form: Any, dtype: torch.dtype) -> Any:
    def act(device: torch.device) -> Any:
        seed_numbers(device, 83)
        return [form(device, dtype)]

    return act


def _judge_range(name: str, least: float, bound: float, is_whole: bool) -> Any:
    """Return a judge: every value is in the range, and the ends are reached (a whole number's exactly)."""
    near = 1.0 if is_whole else (bound - least) / 16

    def judge(drawn: Any) -> None:
        low, high = float(drawn[0].min()), float(drawn[0].max())
        assert least <= low and high < bound, f"{name}: {low} to {high}, not in [{least}, {bound})"
        assert low < least + near and high >= bound - near, f"{name}: only {low} to {high} of [{least}, {bound})"

    return judge


for _name, (_form, _least, _bound, _is_whole) in _RANGES.items():
    for _dtype in (*_RANGE_FLOATS, torch.int64, torch.int32) if _is_whole else _RANGE_FLOATS:
        add_random_check(
            cases,
            f"random-range-{_name}-{str(_dtype)[6:]}",
            _drawn_of(_form, _dtype),
            _judge_range(_name, _least, _bound, _is_whole),
        )

# What comes once in millions: a NaN, an infinite number, the upper end. In 2**23 draws each lies between these.
_LONG: dict[str, tuple[Callable[[Any], torch.Tensor], tuple[float, float], tuple[float, float]]] = {
    "rand": (lambda d: torch.rand(_MANY, device=d), (0.0, 1e-5), (1 - 1e-5, 1 - 2**-25)),
    "rand-half": (lambda d: torch.rand(_MANY, device=d, dtype=torch.float16), (0.0, 1e-3), (1 - 1e-3, 1 - 2**-12)),
    "randn": (lambda d: torch.randn(_MANY, device=d), (-7.0, -4.5), (4.5, 7.0)),
    "normal": (lambda d: torch.empty(_MANY, device=d).normal_(), (-7.0, -4.5), (4.5, 7.0)),
    "exponential": (lambda d: torch.empty(_MANY, device=d).exponential_(), (0.0, 1e-4), (11.0, 30.0)),
    # Of these 2**17 draws: each costs more, and an index of 16 bits shows in them too.
    "normal-sized": (lambda d: torch.normal(0.0, 1.0, (_FULL,), device=d), (-7.0, -3.5), (3.5, 7.0)),
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
    "multinomial": (lambda d: torch.ones(9, device=d).multinomial(_FULL, True).float(), (0.0, 0.0), (8.0, 8.0)),
    "randperm": (lambda d: torch.randperm(_FULL, device=d).float(), (0.0, 0.0), (_FULL - 1, _FULL - 1)),
}


def _line(device: Any) -> torch.Tensor:
    return torch.zeros(_FULL, device=device)


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
