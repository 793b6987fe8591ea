"""Statistics of drawn numbers, in the suite's own arithmetic: moments, distribution, independence, repeated blocks.

Bounds are at five standard errors and more: with a fixed seed a healthy generator is beyond one in a million.
"""

from __future__ import annotations

import math
from typing import Any, Callable

import torch

Distribution = Callable[[torch.Tensor], torch.Tensor]  # from values to the probability of being no larger


def normal(mean: float = 0.0, deviation: float = 1.0) -> Distribution:
    """Return the distribution function of normal numbers."""
    return lambda x: 0.5 * (1 + torch.erf((x - mean) / (deviation * math.sqrt(2.0))))


def uniform(low: float = 0.0, high: float = 1.0) -> Distribution:
    """Return the distribution function of uniform numbers."""
    return lambda x: ((x - low) / (high - low)).clamp(0, 1)


def whole(low: int, high: int) -> Distribution:
    """Return the distribution function of integers from `low` up to, not including, `high`."""
    return lambda x: ((x.floor() - low + 1) / (high - low)).clamp(0, 1)


def exponential(rate: float = 1.0) -> Distribution:
    """Return the distribution function of exponential numbers."""
    return lambda x: 1 - torch.exp(-rate * x.clamp(min=0))


def check_distribution(name: str, drawn: torch.Tensor, distribution: Distribution, step: float = 0.0) -> None:
    """Raise AssertionError where the Kolmogorov-Smirnov distance is too large; `step`: between neighbouring values."""
    values = drawn.double().flatten().sort().values
    count = values.numel()
    # Equal values make a step: it is compared at its end, and half precision has steps everywhere.
    last = torch.cat([values[1:] != values[:-1], torch.tensor([True])])
    reached = (torch.arange(count, dtype=torch.float64) + 1) / count
    gap = (reached - distribution(values))[last].abs().max()
    slack = (distribution(values + step) - distribution(values - step)).abs().max() if step else 0.0
    assert float(gap) <= 2.7 / math.sqrt(count) + float(slack), f"{name}: Kolmogorov-Smirnov distance {float(gap):.4f}"


def check_moments(name: str, drawn: torch.Tensor, mean: float, deviation: float) -> None:
    """Raise AssertionError where mean or deviation are off by more than chance allows."""
    values = drawn.double()
    count = values.numel()
    off = abs(float(values.mean()) - mean)
    assert off <= 5.5 * deviation / math.sqrt(count) + 1e-3 * deviation, f"{name}: mean off by {off:.4f}"
    spread = float(values.std())
    assert abs(spread - deviation) <= (8 / math.sqrt(count) + 0.01) * deviation, f"{name}: deviation {spread:.4f}"


def check_independence(name: str, drawn: torch.Tensor) -> None:
    """Raise AssertionError where neighbours along a dimension, or at a lag in memory, hang together."""
    values = drawn.double()
    values = (values - values.mean()) / values.std().clamp(min=1e-12)
    for dim in range(values.dim()):
        side = values.shape[dim]
        for lag in {1, side // 2} - {0}:
            pairs = values.narrow(dim, 0, side - lag) * values.narrow(dim, lag, side - lag)
            _check_product(f"{name}: dimension {dim}, lag {lag}", pairs)
    flat = values.flatten()
    for lag in (1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256, 512, 1024, 2048):
        if lag <= flat.numel() // 2:
            _check_product(f"{name}: lag {lag}", flat[lag:] * flat[:-lag])


def _check_product(name: str, pairs: torch.Tensor) -> None:
    # Products of independent standard values have variance 1; heavy tails get room by their own spread.
    count = pairs.numel()
    if count < 200:
        return
    together = abs(float(pairs.mean()))
    allowed = 6.5 * max(1.0, float(pairs.std())) / math.sqrt(count)
    assert together <= allowed, f"{name}: correlation {together:.3f}, allowed {allowed:.3f}"


def check_no_repeats(name: str, drawn: torch.Tensor) -> None:
    """Raise AssertionError where two slices along any dimension are equal, or most values occur twice."""
    for dim in range(drawn.dim()):
        slices = drawn.movedim(dim, 0).reshape(drawn.shape[dim], -1)
        if slices.shape[1] >= 24:
            different = torch.unique(slices.double(), dim=0).shape[0]
            assert different == slices.shape[0], f"{name}: slices of dimension {dim} are equal"


def check_all(name: str, drawn: torch.Tensor, facts: Any, step: float = 0.0) -> None:
    """Ask everything of one draw; `facts` has mean, deviation, distribution."""
    check_moments(name, drawn, facts.mean, facts.deviation)
    if facts.distribution is not None:
        check_distribution(name, drawn, facts.distribution, step)
    check_independence(name, drawn)
    check_no_repeats(name, drawn)
