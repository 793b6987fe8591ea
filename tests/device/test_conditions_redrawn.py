"""Rules 2, 3 and 6: draws by the shape of the parameters, what is drawn again in a checkpoint, what dropout leaves.

A Beta of parameters of shape (1,) drew 0.5 and NaN alone, https://github.com/pytorch/pytorch/issues/10118 and
https://github.com/pytorch/pytorch/issues/12373; one row for all, https://github.com/pytorch/pytorch/issues/22529; a
checkpoint drew another mask, https://github.com/pytorch/pytorch/pull/194478
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import distributions as D
from torch.utils.checkpoint import checkpoint

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.limits import add_table
from device_suite.random_checks import add_random_check
from device_suite.runs import seed_numbers

cases = Cases("conditions")
Form = Callable[..., Any]
_COUNT = 400

# Of a real number, a positive one and a share.
_FAMILIES: dict[str, Form] = {
    "beta": lambda a, p, u: D.Beta(p, p + 0.5),
    "beta-1": lambda a, p, u: D.Beta(p * 0 + 1, p * 0 + 1),
    "beta-low": lambda a, p, u: D.Beta(u / 2, u / 2),
    "gamma": lambda a, p, u: D.Gamma(p, p + 1),
    "gamma-low": lambda a, p, u: D.Gamma(u / 4, p),
    "student_t": lambda a, p, u: D.StudentT(p, a, p),
    "normal": lambda a, p, u: D.Normal(a, p),
    "log_normal": lambda a, p, u: D.LogNormal(a, p),
    "laplace": lambda a, p, u: D.Laplace(a, p),
    "cauchy": lambda a, p, u: D.Cauchy(a, p),
    "half_cauchy": lambda a, p, u: D.HalfCauchy(p),
    "gumbel": lambda a, p, u: D.Gumbel(a, p),
    "uniform": lambda a, p, u: D.Uniform(a, a + p),
    "exponential": lambda a, p, u: D.Exponential(p),
    "pareto": lambda a, p, u: D.Pareto(p, p + 1),
    "kumaraswamy": lambda a, p, u: D.Kumaraswamy(p, p + 1),
    "von_mises": lambda a, p, u: D.VonMises(a, p),
    "continuous_bernoulli": lambda a, p, u: D.ContinuousBernoulli(u / 2),
    "relaxed_bernoulli": lambda a, p, u: D.RelaxedBernoulli(p.new_tensor(0.75), u),
    "bernoulli": lambda a, p, u: D.Bernoulli(u),
    "geometric": lambda a, p, u: D.Geometric(u),
    "poisson": lambda a, p, u: D.Poisson(p * 3),
    "binomial": lambda a, p, u: D.Binomial(9, u),
    "negative_binomial": lambda a, p, u: D.NegativeBinomial(p, u * 0.75),
    "categorical": lambda a, p, u: D.Categorical(torch.stack([p, u, u * 0 + 1], -1)),
    "categorical-logits": lambda a, p, u: D.Categorical(logits=torch.stack([a, p, u, a * 0], -1)),
    "dirichlet": lambda a, p, u: D.Dirichlet(torch.stack([p, u, u * 0 + 1], -1)),
    "one_hot": lambda a, p, u: D.OneHotCategorical(torch.stack([p, u, u * 0 + 1], -1)),
    "multinomial": lambda a, p, u: D.Multinomial(5, torch.stack([p, u, u * 0 + 1], -1)),
    "mixture": lambda a, p, u: D.MixtureSameFamily(
        D.Categorical(torch.stack([p, u], -1)), D.Normal(torch.stack([a, a + 4], -1), torch.stack([p, u], -1))
    ),
    "multivariate": lambda a, p, u: D.MultivariateNormal(
        torch.stack([a, p], -1), torch.diag_embed(torch.stack([p, u], -1))
    ),
    "wishart": lambda a, p, u: D.Wishart(p + 2, torch.diag_embed(torch.stack([p, u], -1))),
    "lkj": lambda a, p, u: D.LKJCholesky(3, p),
}
# Shapes of the parameters, and of what is drawn of each.
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), (_COUNT, 1)),
    ((1,), (_COUNT,)),
    ((3,), (_COUNT,)),
)


def _parameters(shape: tuple[int, ...], device: Any) -> list[torch.Tensor]:
    count = torch.Size(shape).numel()
    numbers = ((0.5, -1.25, 2.0), (1.25, 0.75, 3.0), (0.25, 0.625, 0.875))
    return [torch.tensor(each[:count], device=device).view(shape) for each in numbers]


def _drawn(make: Form) -> Callable[[torch.device], list[torch.Tensor]]:
    def act(device: torch.device) -> list[torch.Tensor]:
        seed_numbers(device, 1234)
        return [make(*_parameters(shape, device)).sample(of) for shape, of in _SHAPES]

    return act


def _apart(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    """Return how far the shares of two draws below a number lie apart at most, for each row."""
    places = torch.cat([one, two], 1)
    below = [torch.searchsorted(each.sort().values, places, right=True) / each.shape[1] for each in (one, two)]
    return (below[0] - below[1]).abs().amax(1)


def _judged(name: str, make: Form) -> Callable[[Any], None]:
    """Compare each number of a family with the host's draws; where two rows draw alike, they draw apart."""

    def judge(drawn: Any) -> None:
        host = _drawn(make)(torch.device("cpu"))
        for (shape, _), found, own in zip(_SHAPES, drawn, host):
            family = make(*_parameters(shape, "cpu"))
            assert found.shape == own.shape and found.dtype == own.dtype, f"{shape}: {found.dtype} {tuple(found.shape)}"
            assert bool(found.isfinite().all()), f"{shape}: not finite"
            event = found if not family.event_shape else found.flatten(-len(family.event_shape))
            if name not in ("wishart", "lkj", "dirichlet", "relaxed_one_hot", "logistic_normal"):  # sums are rounded
                assert bool(family.support.check(found).all()), f"{shape}: past the support"
            width = torch.Size((*shape, *family.event_shape)).numel()
            ones, twos = (each.reshape(_COUNT, width).t().double().contiguous() for each in (event, own))
            far, most = float(_apart(ones, twos).max()), 2.8 * math.sqrt(2 / _COUNT)
            assert far <= most, f"{shape}: shares {far:.3f} apart, of {most:.3f}"
            assert not torch.equal(ones[:, :100], ones[:, 100:200]), f"{shape}: the same again"

    return judge


for _name, _make in _FAMILIES.items():
    add_random_check(
        cases, f"condition-limit-redrawn-{_name}", _drawn(_make), _judged(_name, _make), deterministic=False
    )

# The derivatives of draws by their parameters: of given draws.
_CONCENTRATIONS = (2.0**-6, 0.25, 0.75, 1.0, 1.5, 3.0, 8.0, 40.0, 700.0)
add_table(
    cases,
    "redrawn-gradients",
    {
        **{
            f"gamma-{c:g}": lambda x, c=c: torch._standard_gamma_grad(torch.full_like(x, c), x * c)
            for c in _CONCENTRATIONS
        },
        **{
            f"dirichlet-{c:g}-{more:g}": lambda x, c=c, more=more: torch._dirichlet_grad(
                x / 4, torch.full_like(x, c), torch.full_like(x, c + more)
            )
            for c, more in itertools.product(_CONCENTRATIONS[1:-1], (0.5, 2.0, 30.0))
        },
        "none": lambda x: [
            torch._standard_gamma_grad(x[:0], x[:0]),
            torch._dirichlet_grad(x[:0], x[:0], x[:0]),
        ],
        "point": lambda x: [torch._standard_gamma_grad(x[0], x[1]), torch._dirichlet_grad(x[0] / 4, x[1], x[1] + 2)],
    },
    lambda d: (torch.tensor([0.25, 0.5, 1.25, 2.0, 3.5]),),
    factor=1024.0,
    deterministic=False,
)


def _moved(bench: Any) -> None:
    """A draw moves with a place by 1, and with a width by what lies between the draw and the place."""
    shapes = ((), (1,), (3,), (2, 1))
    families = (D.Normal, D.Laplace, D.Cauchy, D.Gumbel)
    with bench.device_run() as run:
        found = []
        for family, shape in itertools.product(families, shapes):
            place, width, _ = (leaf(one) for one in _parameters(shape, run.device))
            drawn = family(place, width).rsample((5,))
            drawn.sum().backward()
            wide = ((drawn - place) / width).detach().sum(0)
            found.append([one.cpu() for one in (place.grad, torch.full_like(place, 5.0), width.grad, wide)])
    for by_place, five, by_width, wide in found:
        assert torch.allclose(by_place, five), f"{by_place} by the place, not 5"
        assert torch.allclose(by_width, wide, rtol=1e-4, atol=1e-4), f"{by_width} by the width, not {wide}"


cases.add("condition-limit-redrawn-moved", _moved, check=True, may_be_missing=True)

# What is drawn in a checkpoint; each answer is the operand by a factor that is drawn.
_FACTORS: dict[str, Form] = {
    "dropout": lambda x: F.dropout(x, 0.5),
    "dropout-rare": lambda x: F.dropout(x, 0.9),
    "dropout1d": lambda x: F.dropout1d(x.view(8, 4, 2), 0.5).view(64),
    "dropout2d": lambda x: F.dropout2d(x.view(4, 4, 2, 2), 0.5).view(64),
    "dropout3d": lambda x: F.dropout3d(x.view(2, 4, 2, 2, 2), 0.5).view(64),
    "rand": lambda x: x * torch.rand_like(x),
    "randn": lambda x: x * torch.randn(64, device=x.device),
    "randint": lambda x: x * torch.randint(1, 9, (64,), device=x.device),
    "bernoulli": lambda x: x * torch.bernoulli(torch.full_like(x, 0.5)),
    "exponential": lambda x: x * torch.empty_like(x).exponential_(),
    "normal": lambda x: x * torch.normal(torch.ones_like(x), 2.0),
    "randperm": lambda x: x * torch.randperm(64, device=x.device),
    "multinomial": lambda x: x * (1 + torch.multinomial(torch.ones(64, device=x.device), 64)),
    "module": lambda x: torch.nn.Dropout(0.25)(x),
    "twice": lambda x: F.dropout(F.dropout(x, 0.25), 0.25) * torch.rand_like(x),
}


def _checkpointed(again: bool) -> Callable[[Any], None]:
    def check(bench: Any) -> None:
        with bench.device_run() as run:
            seed_numbers(run.device, 5)
            found = {}
            for name, form in _FACTORS.items():
                start = leaf(torch.arange(1.0, 65.0, device=run.device))
                y = checkpoint(form, start, use_reentrant=again)
                torch.rand(3, device=run.device)  # between the two, something else draws
                y.sum().backward()
                found[name] = [one.detach().cpu() for one in (start, y, start.grad)]
        wrong = [name for name, (x, y, grad) in found.items() if not torch.allclose(y, x * grad, rtol=1e-5, atol=1e-5)]
        assert not wrong, f"the gradient of another draw: {', '.join(wrong)}"

    return check


for _again in (False, True):
    cases.add(f"condition-limit-redrawn-checkpoint-{_again}", _checkpointed(_again), check=True, may_be_missing=True)


def _dropped(bench: Any) -> None:
    """What dropout leaves is the operand by 1 / (1 - p), or nothing; its gradient likewise; whole channels go."""
    shares = (0.1, 0.25, 0.75)
    dtypes = (torch.float32, torch.float16, torch.bfloat16)
    ranks = {"dropout": 1, "dropout1d": 1, "dropout2d": 2, "dropout3d": 3}
    with bench.device_run() as run:
        seed_numbers(run.device, 7)
        found = []
        for (name, rank), p, dtype in itertools.product(ranks.items(), shares, dtypes):
            for laid in (
                "plain",
                "turned",
                "place",
                *(("alone",) if rank != 2 else ()),
            ):  # (C, H, W) was once (N, C, L)
                x = (torch.arange(1, 1 + 12 * 2**rank, device=run.device) % 7 + 1).to(dtype).view(3, 4, *(2,) * rank)
                x = x.transpose(0, 1) if laid == "turned" else x[0] if laid == "alone" else x
                start = leaf(x)
                y = getattr(F, name)(start * 1, p, inplace=laid == "place")
                y.backward(torch.ones_like(y))
                found.append((name, p, laid, *(one.detach().cpu().float() for one in (x, y, start.grad))))
    for name, p, laid, x, y, grad in found:
        scale = 1 / (1 - p)
        kept = y != 0
        where = f"{name} {p} {laid}"
        assert torch.allclose(y[kept], x[kept] * scale, rtol=2e-2), f"{where}: what is left is not {scale:.3g} times it"
        assert torch.allclose(grad, kept * scale, rtol=2e-2), f"{where}: another gradient than what is left"
        if name != "dropout":
            channels = kept.flatten(1 if laid == "alone" else 2)
            assert bool((channels.all(-1) | ~channels.any(-1)).all()), f"{where}: a channel in part"


cases.add("condition-limit-redrawn-dropped", _dropped, check=True, may_be_missing=True)
