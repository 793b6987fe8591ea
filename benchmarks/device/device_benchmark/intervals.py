"""What a handful of noisy blocks tells: a median with its interval, and whether the times drift."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from statistics import median
from typing import Sequence

CONFIDENCE = 0.99
# Two copies of one computation on one CPU differ by about this much, by where their memory happens to lie.
RESOLUTION = 0.02
_DRAWS = 4000
# Student's t over the normal quantile, both at 99 %, by degrees of freedom: a bootstrap of few values is too narrow by
# about this and by sqrt(n / (n - 1)); see Hesterberg, "What Teachers Should Know about the Bootstrap", section 5.
_FACTORS = (24.7, 3.85, 2.27, 1.79, 1.57, 1.44, 1.36, 1.30, 1.26, 1.23, 1.21, 1.19, 1.17, 1.16, 1.14)
_DRIFT_CHANCE = 0.005
_DRIFT_LEAST = 0.10


@dataclass(frozen=True)
class Interval:
    """A median and the interval that holds the true one with 99 % confidence."""

    median: float
    low: float
    high: float

    def document(self) -> dict[str, float]:
        return {"median": round(self.median, 4), "low": round(self.low, 4), "high": round(self.high, 4)}


def bootstrap_median(values: Sequence[float], *, seed: int = 0) -> Interval:
    """Return the median of positive ratios with its bootstrap interval, never narrower than the meter's resolution.

    >>> bootstrap_median([2.0, 2.0, 2.0])
    Interval(median=2.0, low=1.96..., high=2.04)
    """
    logs = [math.log(value) for value in values]
    middle = median(logs)
    draw = random.Random(seed)
    medians = sorted(median(draw.choices(logs, k=len(logs))) for _ in range(_DRAWS))
    count = len(logs)
    factor = _FACTORS[min(count - 2, len(_FACTORS) - 1)] * math.sqrt(count / (count - 1)) if count > 1 else math.inf
    low, high = medians[int(_DRAWS * (1 - CONFIDENCE) / 2)], medians[int(_DRAWS * (1 + CONFIDENCE) / 2) - 1]
    least = math.log(1 + RESOLUTION)
    return Interval(
        median=math.exp(middle),
        low=math.exp(middle - max((middle - low) * factor, least)),
        high=math.exp(middle + max((high - middle) * factor, least)),
    )


def growth(seconds: Sequence[float]) -> float:
    """Return by what share times grow from the first to the last, along their Theil-Sen line.

    >>> growth([1.0, 1.1, 1.2, 1.3])
    0.3
    """
    slopes = [
        (later - earlier) / (j - i) for i, earlier in enumerate(seconds) for j, later in enumerate(seconds) if j > i
    ]
    if not slopes:
        return 0.0
    slope, last = median(slopes), len(seconds) - 1
    begin = median([value - slope * place for place, value in enumerate(seconds)])
    return round(slope * last / begin, 4) if begin > 0 else 0.0


def is_drift(seconds: Sequence[float]) -> bool:
    """True if times grow by a tenth or more, in an order that chance gives once in 200 times (Mann-Kendall).

    >>> is_drift([1.0, 1.05, 1.1, 1.15, 1.2, 1.3]), is_drift([1.0, 1.3, 1.05, 1.2, 1.1, 1.15])
    (True, False)
    """
    count = len(seconds)
    score = sum(
        (seconds[j] > seconds[i]) - (seconds[j] < seconds[i]) for i in range(count) for j in range(i + 1, count)
    )
    return growth(seconds) >= _DRIFT_LEAST and _chance_of(score, count) <= _DRIFT_CHANCE


def _chance_of(score: int, count: int) -> float:
    """Return the chance that an order drawn at random has at least this many rises above falls."""
    pairs = count * (count - 1) // 2
    ways = [1]  # how many orders of so many values have so many falls
    for size in range(2, count + 1):
        longer = [0] * (len(ways) + size - 1)
        for falls, number in enumerate(ways):
            for more in range(size):
                longer[falls + more] += number
        ways = longer
    most_falls = (pairs - score) // 2
    return sum(ways[: most_falls + 1]) / math.factorial(count)
