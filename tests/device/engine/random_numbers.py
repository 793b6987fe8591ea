"""Random numbers: generators as data, what their numbers must look like, and how a case judges them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Iterable

import torch
import torch.nn.functional as F

from .cases import Cases
from .states import Refused

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
    """Raise AssertionError where two slices along any dimension are equal, or most values occur two times."""
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


FLOATS = (torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.uint8)
NOT_MPS = ("cpu", "cuda")


@dataclass(frozen=True)
class Generator:
    """One generator: `draw(shape, device, dtype)`, mean, deviation, distribution (None: not tested), dtypes, range."""

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


# A library may compute the same numbers with another rounding at each of a few steps.
_UNITS = 8


def demand_same_numbers(name: str, drawn: Iterable[torch.Tensor], again: Iterable[torch.Tensor]) -> None:
    """Raise AssertionError where the CPU in the device's place does not draw the host's numbers, but for rounding."""
    drawn, again = list(drawn), list(again)
    assert drawn, f"{name}: nothing was drawn"
    assert len(drawn) == len(again), f"{name}: {len(drawn)} draws, the host's {len(again)}"
    for one, two in zip(drawn, again):
        assert one.dtype == two.dtype and one.shape == two.shape, f"{name}: not the host's dtype or shape"
        if one.is_floating_point() and one.numel():
            near = _UNITS * torch.finfo(one.dtype).eps
            scale = float(two.nan_to_num(0.0, 0.0, 0.0).abs().max())
            same = torch.allclose(one.double(), two.double(), rtol=near, atol=near * min(scale, 1.0), equal_nan=True)
        else:
            same = torch.equal(one, two)
        assert same, f"{name}: not the host's numbers"


def demand(judge: Callable[[Any], None], drawn: Any, host: Callable[[], Any]) -> None:
    """Raise what a judge raises of drawn numbers; Refused where the host's own numbers fail as far.

    uniform_ of the CPU may round to the upper end in half precision: no device need give more than its torch's CPU.

    Args:
        host: draws on the CPU; called only where the judge raises.
    """
    try:
        judge(drawn)
    except AssertionError as wrong:
        own = host()
        try:
            judge(own)
        except AssertionError:
            if _lie_within(drawn, own):
                raise Refused(f"no reference: this torch's CPU draws such numbers itself: {wrong}") from wrong
        raise


def _lie_within(drawn: Iterable[torch.Tensor], own: Iterable[torch.Tensor]) -> bool:
    """Say whether numbers go no further to either side than others, tensor by tensor; NaN goes anywhere."""
    pairs = [(one.double(), two.double()) for one, two in zip(drawn, own) if one.numel() and two.numel()]
    return all(bool(two.min() <= one.min()) and bool(one.max() <= two.max()) for one, two in pairs)


def add_random_check(
    cases: Cases, case_id: str, act: Callable[[torch.device], Any], judge: Callable[[Any], None], **fields: Any
) -> None:
    """Register a check: what `act(device)` draws on the device is judged on the host.

    Where the device is the CPU its numbers are the host's: the rehearsal sees what statistics cannot.
    """

    def check(bench: Any) -> None:
        with bench.device_run() as run:
            drawn = [one.cpu().clone() for one in act(run.device)]
        if bench.device.type == "cpu":
            demand_same_numbers(case_id, drawn, act(bench.device))
        demand(judge, drawn, lambda: act(torch.device("cpu")))

    cases.add(case_id, check, check=True, may_be_missing=True, since="2.0", **fields)
