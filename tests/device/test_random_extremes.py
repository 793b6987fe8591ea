"""Rule 2: draws whose parameters are at the ends of what they may be: none is NaN, all lie where there are any.

Small concentrations: https://github.com/numpy/numpy/issues/5851, https://github.com/jax-ml/jax/issues/9896
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.random_checks import add_random_check
from device_suite.runs import seed_numbers

cases = Cases("random")
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


def _drawn(form: Any) -> Any:
    def act(device: torch.device) -> Any:
        seed_numbers(device, 97)
        return [form(device)]

    return act


for _name, (_form, _judge) in _DRAWS.items():
    add_random_check(cases, f"random-extreme-{_name}", _drawn(_form), lambda drawn, judge=_judge: judge(drawn[0]))
