"""Generators of random numbers, as data: how each is called, and what its numbers must look like."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable

import torch
import torch.nn.functional as F

from .statistics import Distribution, exponential, normal, uniform, whole

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.uint8)
NOT_MPS = ("cpu", "cuda")


@dataclass(frozen=True)
class Generator:
    """One generator: `draw(shape, device, dtype)`, mean, deviation, distribution (None: not asked), dtypes, range."""

    name: str
    draw: Callable[[tuple[int, ...], torch.device, torch.dtype], torch.Tensor]
    mean: float
    deviation: float
    distribution: Distribution | None = None
    dtypes: tuple[torch.dtype, ...] = FLOATS
    low: float = -math.inf
    high: float = math.inf
    computed: bool = False  # the highest is a product, a few roundings off; else it is exact
    devices: tuple[str, ...] = ()


_FLAT = math.sqrt(1 / 12)


def _of(name: str, *args: Any, start: float = 0.0) -> Callable[..., torch.Tensor]:
    def draw(shape: Any, device: Any, dtype: Any) -> torch.Tensor:
        return getattr(torch.full(shape, start, device=device, dtype=dtype), name)(*args)

    return draw


def _discrete(low: int, high: int) -> dict[str, Any]:
    spread = math.sqrt(((high - low) ** 2 - 1) / 12)
    return {
        "mean": (low + high - 1) / 2,
        "deviation": spread,
        "distribution": whole(low, high),
        "low": low,
        "high": high - 1,
    }


def _bernoulli(p: float) -> dict[str, Any]:
    return {"mean": p, "deviation": math.sqrt(p * (1 - p)), "low": 0, "high": 1}


GENERATORS = (
    Generator("randn", lambda s, d, t: torch.randn(s, device=d, dtype=t), 0, 1, normal()),
    Generator("rand", lambda s, d, t: torch.rand(s, device=d, dtype=t), 0.5, _FLAT, uniform(), low=0, high=1),
    Generator("randn_like", lambda s, d, t: torch.randn_like(torch.zeros(s, device=d, dtype=t)), 0, 1, normal()),
    Generator(
        "rand_like",
        lambda s, d, t: torch.rand_like(torch.zeros(s, device=d), dtype=t),
        0.5,
        _FLAT,
        uniform(),
        low=0,
        high=1,
    ),
    Generator("normal", lambda s, d, t: torch.normal(2.0, 3.0, s, device=d, dtype=t), 2, 3, normal(2, 3)),
    Generator("normal_", _of("normal_", -1.0, 0.5), -1, 0.5, normal(-1, 0.5)),
    Generator(
        "normal_tensors",
        lambda s, d, t: torch.normal(torch.full(s, 4.0, device=d, dtype=t), torch.full(s, 0.5, device=d, dtype=t)),
        4,
        0.5,
        normal(4, 0.5),
    ),
    Generator("uniform_", _of("uniform_", -2.0, 3.0), 0.5, 5 * _FLAT, uniform(-2, 3), low=-2, high=3),
    Generator("exponential_", _of("exponential_", 2.0), 0.5, 0.5, exponential(2.0), low=0),
    Generator("bernoulli_", _of("bernoulli_", 0.3), dtypes=(*FLOATS, torch.bool, torch.int64), **_bernoulli(0.3)),
    Generator("bernoulli", lambda s, d, t: torch.bernoulli(torch.full(s, 0.7, device=d, dtype=t)), **_bernoulli(0.7)),
    Generator(
        "randint", lambda s, d, t: torch.randint(3, 40, s, device=d, dtype=t), dtypes=INTEGERS, **_discrete(3, 40)
    ),
    Generator(
        "randint_wide",
        lambda s, d, t: torch.randint(-(2**20), 2**20, s, device=d, dtype=t),
        dtypes=INTEGERS[:2],
        **_discrete(-(2**20), 2**20),
    ),
    Generator(
        "randint_like",
        lambda s, d, t: torch.randint_like(torch.zeros(s, device=d, dtype=t), 2, 12),
        dtypes=(torch.int64, torch.float32),
        **_discrete(2, 12),
    ),
    Generator("random_", _of("random_", 5, 25), dtypes=(*INTEGERS[:2], torch.float32), **_discrete(5, 25)),
    Generator("random_to", _of("random_", 100), dtypes=(torch.int64, torch.uint8, torch.float32), **_discrete(0, 100)),
    Generator(
        "dropout",
        lambda s, d, t: F.dropout(torch.ones(s, device=d, dtype=t), 0.25),
        1,
        math.sqrt(1 / 3),
        low=0,
        high=4 / 3,
        computed=True,
    ),
    Generator(
        "multinomial",
        lambda s, d, t: torch.multinomial(
            torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0], device=d, dtype=t), math.prod(s), replacement=True
        ).reshape(s),
        dtypes=FLOATS[:1],
        **_discrete(0, 4),
    ),
    Generator(
        "gumbel",
        lambda s, d, t: F.gumbel_softmax(torch.zeros((*s, 4), device=d, dtype=t), hard=True).argmax(-1),
        dtypes=FLOATS[:1],
        **_discrete(0, 4),
    ),
    Generator(
        "log_normal_",
        lambda s, d, t: torch.zeros(s, device=d, dtype=t).log_normal_(0, 0.5).log(),
        0,
        0.5,
        normal(0, 0.5),
        FLOATS[:1],
        devices=NOT_MPS,
    ),
    Generator("geometric_", _of("geometric_", 0.25), 4, math.sqrt(12), None, FLOATS[:1], low=1, devices=NOT_MPS),
    Generator(
        "poisson",
        lambda s, d, t: torch.poisson(torch.full(s, 4.0, device=d, dtype=t)),
        4,
        2,
        None,
        FLOATS[:1],
        low=0,
        devices=NOT_MPS,
    ),
    Generator(
        "cauchy_",
        lambda s, d, t: torch.zeros(s, device=d, dtype=t).cauchy_().atan() / math.pi,
        0,
        _FLAT,
        uniform(-0.5, 0.5),
        FLOATS[:1],
        devices=NOT_MPS,
    ),
    Generator(
        "trunc_normal",
        lambda s, d, t: torch.nn.init.trunc_normal_(torch.zeros(s, device=d, dtype=t), a=-8, b=8),
        0,
        1,
        normal(),
        FLOATS[:1],
    ),
    Generator(
        "init_uniform",
        lambda s, d, t: torch.nn.init.uniform_(torch.zeros(s, device=d, dtype=t), -1, 1),
        0,
        2 * _FLAT,
        uniform(-1, 1),
        FLOATS[:1],
    ),
)
# One to six dimensions, even and odd; a count that no thread group divides, and one past a block of 2**16.
SHAPES = ((4099,), (64, 66), (17, 12, 19), (4, 9, 10, 11), (3, 4, 5, 8, 9), (2, 3, 4, 5, 6, 7), (5, 7, 3, 8, 6))
LARGE = (3, 149, 151)
DEEP = (2, 3, 5, 47, 47)  # past 2**16 elements
