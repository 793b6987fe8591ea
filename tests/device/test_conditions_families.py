"""Rules 2 and 3: each distribution by the shape of its parameters, at the ends of its support, outside; divergences.

log_prob of a Beta(1, 1) was NaN at 0 and 1, https://github.com/pytorch/pytorch/issues/92260; values outside of what a
family takes, https://github.com/pytorch/pytorch/issues/14672; Uniform beside Beta,
https://github.com/pytorch/pytorch/issues/144279
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch
from torch import distributions as D

from device_suite import Cases
from device_suite.acts import leaf, uneven
from device_suite.limits import add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]

# Of a real number, a positive one and a share. The numbers in brackets: where a density is asked, the ends among them.
_LINES: dict[str, tuple[Form, tuple[float, ...]]] = {
    "Normal": (lambda a, p, u: D.Normal(a, p, False), (-3.0, 0.0, 2.5)),
    "LogNormal": (lambda a, p, u: D.LogNormal(a, p, False), (0.5, 1.0, 3.0)),
    "HalfNormal": (lambda a, p, u: D.HalfNormal(p, False), (0.0, 1.0, -1.0)),
    "Laplace": (lambda a, p, u: D.Laplace(a, p, False), (-3.0, 0.0, 2.5)),
    "Cauchy": (lambda a, p, u: D.Cauchy(a, p, False), (-3.0, 0.0, 2.5)),
    "HalfCauchy": (lambda a, p, u: D.HalfCauchy(p, False), (0.0, 1.0, -1.0)),
    "Gumbel": (lambda a, p, u: D.Gumbel(a, p, False), (-1.5, 0.0, 2.5)),
    "StudentT": (lambda a, p, u: D.StudentT(p + 2.5, a, p, False), (-3.0, 0.0, 2.5)),
    "Exponential": (lambda a, p, u: D.Exponential(p, False), (0.0, 1.0, 3.0)),
    "Gamma": (lambda a, p, u: D.Gamma(p + 1, p, False), (0.0, 0.5, 2.0)),
    "Gamma-1": (lambda a, p, u: D.Gamma(torch.ones_like(p), p, False), (0.0, 0.5, 2.0)),
    "Chi2": (lambda a, p, u: D.Chi2(p * 2 + 2, False), (0.0, 0.5, 2.0)),
    "InverseGamma": (lambda a, p, u: D.InverseGamma(p + 2.5, p, False), (0.5, 1.0, 3.0)),
    "Beta": (lambda a, p, u: D.Beta(p + 1, p + 1.5, False), (0.0, 0.25, 1.0)),
    "Beta-1": (lambda a, p, u: D.Beta(torch.ones_like(p), torch.ones_like(p), False), (0.0, 0.25, 1.0)),
    "Beta-1-2": (lambda a, p, u: D.Beta(torch.ones_like(p), p + 1, False), (0.0, 0.25, 1.0)),
    "Beta-low": (lambda a, p, u: D.Beta(u, u, False), (0.0, 0.25, 1.0)),
    "Kumaraswamy": (lambda a, p, u: D.Kumaraswamy(p + 1, p + 1.5, False), (0.125, 0.5, 0.875)),
    "Uniform": (lambda a, p, u: D.Uniform(a, a + p, False), (-3.0, 0.5, 9.0)),
    "Uniform-unit": (lambda a, p, u: D.Uniform(p * 0, p * 0 + 1, False), (0.0, 0.5, 1.0, -0.5, 1.5)),
    "Pareto": (lambda a, p, u: D.Pareto(p, p + 2.5, False), (4.0, 5.0, 9.0)),
    "Weibull": (lambda a, p, u: D.Weibull(p, p + 1, False), (0.5, 1.0, 3.0)),
    "VonMises": (lambda a, p, u: D.VonMises(a, p, False), (-3.0, 0.0, 3.0)),
    "FisherSnedecor": (lambda a, p, u: D.FisherSnedecor(p + 2.5, p + 4.5, False), (0.5, 1.0, 3.0)),
    "ContinuousBernoulli": (lambda a, p, u: D.ContinuousBernoulli(u * 0.5, validate_args=False), (0.0, 0.25, 1.0)),
    "ContinuousBernoulli-logits": (
        lambda a, p, u: D.ContinuousBernoulli(logits=a + 2, validate_args=False),
        (0.0, 0.25, 1.0),
    ),
    "Bernoulli": (lambda a, p, u: D.Bernoulli(u, validate_args=False), (0.0, 1.0)),
    "Bernoulli-logits": (lambda a, p, u: D.Bernoulli(logits=a * 20, validate_args=False), (0.0, 1.0)),
    "Geometric": (lambda a, p, u: D.Geometric(u, validate_args=False), (0.0, 1.0, 5.0)),
    "Geometric-1": (lambda a, p, u: D.Geometric(torch.ones_like(u), validate_args=False), (0.0, 1.0, 5.0)),
    "Geometric-logits": (lambda a, p, u: D.Geometric(logits=a, validate_args=False), (0.0, 1.0, 5.0)),
    "Poisson": (lambda a, p, u: D.Poisson(p, False), (0.0, 1.0, 7.0)),
    "Binomial": (lambda a, p, u: D.Binomial(5, u, validate_args=False), (0.0, 3.0, 5.0)),
    "Binomial-counts": (lambda a, p, u: D.Binomial((p * 4).ceil() + 3, u, validate_args=False), (0.0, 1.0, 3.0)),
    "Binomial-logits": (lambda a, p, u: D.Binomial(5, logits=a * 20, validate_args=False), (0.0, 3.0, 5.0)),
    "NegativeBinomial": (lambda a, p, u: D.NegativeBinomial(p, u * 0.75, validate_args=False), (0.0, 1.0, 5.0)),
    "RelaxedBernoulli": (lambda a, p, u: D.RelaxedBernoulli(p.new_tensor(0.5), u, validate_args=False), (0.25, 0.5)),
}
# Shapes of a, p and u: none, one, three, that broadcast, and that are nothing.
_SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "point": ((), (), ()),
    "one": ((1,), (1,), (1,)),
    "three": ((3,), (3,), (3,)),
    "column": ((2, 1), (2, 1), (2, 1)),
    "crossed": ((2, 1), (3,), (1, 3)),
    "mixed": ((), (3,), (2, 1)),
    "ones": ((1, 1), (1,), ()),
    "none": ((0,), (0,), (0,)),
    "none-of": ((2, 0), (0,), (1,)),
}
_ASKED: dict[str, Form] = {
    "mean": lambda f, at: f.mean,
    "variance": lambda f, at: f.variance,
    "stddev": lambda f, at: f.stddev,
    "mode": lambda f, at: f.mode,
    "entropy": lambda f, at: f.entropy(),
    "perplexity": lambda f, at: f.perplexity(),
    "cdf": lambda f, at: f.cdf(at),
    "icdf": lambda f, at: f.icdf(at * 0 + 0.25),
    "forms": lambda f, at: [
        list(f.batch_shape),
        list(f.event_shape),
        list(f.sample().shape),
        list(f.sample((2, 1)).shape),
    ],
    "expanded": lambda f, at: f.expand((2, *f.batch_shape)).log_prob(at),
    "expanded-mean": lambda f, at: f.expand((4, 1, *f.batch_shape)).mean,
    "summed": lambda f, at: D.Independent(f, 1, False).log_prob(at) if f.batch_shape else at,
    "every": lambda f, at: f.enumerate_support() if f.has_enumerate_support else at,
    "every-one": lambda f, at: f.enumerate_support(expand=False) if f.has_enumerate_support else at,
}


def _cut(shapes: tuple[tuple[int, ...], ...], operands: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    return [one[: torch.Size(shape).numel()].view(shape) for one, shape in zip(operands, shapes)]


def _density(name: str, shapes: Any, *operands: torch.Tensor) -> Any:
    """Return the density at each place, places of more dimensions, and gradients of what is inside."""
    make, places = _LINES[name]
    given = [leaf(one) for one in _cut(shapes, operands)]
    family = make(*given)
    at = torch.tensor(places, device=given[0].device, dtype=given[0].dtype)
    found = torch.stack([family.log_prob(one) for one in at])
    inside = family.log_prob(leaf(at[len(at) // 2]).expand(2, *family.batch_shape))
    inside.backward(uneven(inside))
    wide = family.log_prob(at.view(-1, *(1,) * len(family.batch_shape)))
    gradients = [one.grad.flatten() for one in given if one.grad is not None]
    return [found.detach(), wide.detach(), inside.detach(), torch.cat(gradients) if gradients else None]


def _asked(ask: Form, name: str, shapes: Any, *operands: torch.Tensor) -> Any:
    make, places = _LINES[name]
    family = make(*_cut(shapes, operands))
    return ask(
        family, torch.full(family.batch_shape, places[len(places) // 2], device=operands[0].device).to(operands[0])
    )


# What a family has not.
_UNASKED = {
    "StudentT": "cdf icdf",
    "Gamma": "icdf",
    "Chi2": "icdf",
    "InverseGamma": "icdf",
    "Beta": "cdf icdf",
    "VonMises": "entropy perplexity cdf icdf",
    "FisherSnedecor": "entropy perplexity cdf icdf",
    "ContinuousBernoulli": "mode",
    "Poisson": "entropy perplexity cdf icdf",
    "Binomial": "entropy perplexity every every-one cdf icdf",
    "NegativeBinomial": "entropy perplexity cdf icdf",
    "Bernoulli": "cdf icdf",
    "Geometric": "cdf icdf",
    "RelaxedBernoulli": "mean variance stddev mode entropy perplexity cdf icdf expanded-mean",
}
_TABLE: dict[str, Form] = {
    f"{name}-{shape}-density": lambda *operands, name=name, shapes=shapes: _density(name, shapes, *operands)
    for number, name in enumerate(_LINES)
    for place, (shape, shapes) in enumerate(_SHAPES.items())
    if shape == "one" or (number + place) % 9 == number % 2 == 0
}
_TABLE |= {
    f"{name}-{shape}-{asked}": lambda *operands, ask=ask, name=name, shapes=shapes: _asked(ask, name, shapes, *operands)
    for name in _LINES
    for number, (shape, shapes) in enumerate(_SHAPES.items())
    for place, (asked, ask) in enumerate(_ASKED.items())
    if asked not in _UNASKED.get(name.partition("-")[0], "").split() and (number + place * 2 + len(name)) % 29 == 0
}
_TABLE |= {
    f"Binomial-{asked}": lambda a, p, u, ask=_ASKED[asked]: [
        ask(D.Binomial(count, u[:3], validate_args=False), u[:3]) for count in (0, 1, 5)
    ]
    for asked in ("entropy", "every", "every-one")
}


def _operands(d: Any) -> Any:
    """Draw numbers that lie apart from the places where a density is asked."""
    return d.distinct(4) / 2 + 0.0625, d.distinct(4) / 4 + 0.875, d.distinct(4) / 16 + 0.53125


add_table(cases, "families", _TABLE, _operands, factor=64.0, deterministic=False, since="2.6")

# Of rows: matrices of batches that broadcast.
_ROWS: dict[str, Form] = {
    "Dirichlet": lambda a, p: D.Dirichlet(p + 1, False),
    "Dirichlet-1": lambda a, p: D.Dirichlet(p * 0 + 1, False),
    "Categorical": lambda a, p: D.Categorical(p, validate_args=False),
    "Categorical-logits": lambda a, p: D.Categorical(logits=a * 9, validate_args=False),
    "OneHot": lambda a, p: D.OneHotCategorical(p, validate_args=False),
    "Multinomial": lambda a, p: D.Multinomial(4, p, validate_args=False),
    "Normal-covariance": lambda a, p: D.MultivariateNormal(a, torch.diag_embed(p), validate_args=False),
    "Normal-precision": lambda a, p: D.MultivariateNormal(
        a, precision_matrix=torch.diag_embed(p) + 0.25, validate_args=False
    ),
    "Normal-triangle": lambda a, p: D.MultivariateNormal(
        a, scale_tril=(torch.diag_embed(p) + 0.25).tril(), validate_args=False
    ),
    "Normal-low": lambda a, p: D.LowRankMultivariateNormal(a, p[..., None] / 2, p, validate_args=False),
    "Normal-shared": lambda a, p: D.MultivariateNormal(
        a, torch.eye(a.shape[-1], device=a.device, dtype=a.dtype) * 2, validate_args=False
    ),
    "Independent": lambda a, p: D.Independent(D.Normal(a, p, False), 1, False),
    "Mixture": lambda a, p: D.MixtureSameFamily(
        D.Categorical(p, validate_args=False), D.Normal(a, p, False), validate_args=False
    ),
}
_PLACED: dict[str, Form] = {
    "Dirichlet": lambda a: torch.softmax(a * 2, -1),
    "Categorical": lambda a: torch.zeros_like(a[..., 0]),
    "OneHot": lambda a: torch.zeros_like(a).index_fill(-1, torch.zeros(1, dtype=torch.int64, device=a.device), 1),
    "Multinomial": lambda a: torch.zeros_like(a).index_fill(-1, torch.zeros(1, dtype=torch.int64, device=a.device), 4),
    "Mixture": lambda a: a[..., 0] * 0 + 0.5,
    "Normal": lambda a: a * 0 + 0.5,
    "Independent": lambda a: a * 0 + 0.5,
}


def _row(name: str, shape: tuple[int, ...], a: torch.Tensor, p: torch.Tensor) -> Any:
    count = torch.Size(shape).numel()
    given = [leaf(a[:count].view(shape)), leaf(p[:count].view(shape))]
    family, at = _ROWS[name](*given), _PLACED[name.partition("-")[0]](given[0].detach())
    inside = family.log_prob(at)
    inside.backward(uneven(inside))
    asked = "mean variance forms" + (" entropy mode" if name not in ("Mixture", "Multinomial") else "")
    told = [_ASKED[key](family, at) for key in asked.split()]
    wide = family.expand((2, *family.batch_shape))
    return [inside.detach(), told, wide.log_prob(at).detach(), [one.grad for one in given]]


add_table(
    cases,
    "families-rows",
    {
        f"{name}-{shape}": lambda a, p, name=name, shape=shape: _row(name, shape, a, p)
        for name in _ROWS
        for shape in ((1,), (2, 1, 2) if len(name) % 2 else (2, 3))
    },
    lambda d: (d.distinct(6) / 4 + 0.0625, d.distinct(6) / 8 + 0.75),
    factor=256.0,
    deterministic=False,
    since="2.6",
)

# Every pair of families that has a divergence: those of one number.
_SIDES: dict[Any, Form] = {
    D.Bernoulli: lambda a, p, u: D.Bernoulli(u, validate_args=False),
    D.Beta: lambda a, p, u: D.Beta(p + 1, p + 1.5, False),
    D.Binomial: lambda a, p, u: D.Binomial(5, u, validate_args=False),
    D.Cauchy: lambda a, p, u: D.Cauchy(a, p, False),
    D.ContinuousBernoulli: lambda a, p, u: D.ContinuousBernoulli(u * 0.5, validate_args=False),
    D.Exponential: lambda a, p, u: D.Exponential(p, False),
    D.Gamma: lambda a, p, u: D.Gamma(p + 1, p, False),
    D.Geometric: lambda a, p, u: D.Geometric(u, validate_args=False),
    D.Gumbel: lambda a, p, u: D.Gumbel(a, p, False),
    D.HalfNormal: lambda a, p, u: D.HalfNormal(p, False),
    D.Laplace: lambda a, p, u: D.Laplace(a, p, False),
    D.Normal: lambda a, p, u: D.Normal(a, p, False),
    D.Pareto: lambda a, p, u: D.Pareto(p, p + 2.5, False),
    D.Poisson: lambda a, p, u: D.Poisson(p, False),
    D.Uniform: lambda a, p, u: D.Uniform(p * 0, u, False),
    D.LogNormal: lambda a, p, u: D.LogNormal(a, p, False),
    D.Categorical: lambda a, p, u: D.Categorical(torch.stack([p, u, u * 0 + 1], -1), validate_args=False),
    D.Dirichlet: lambda a, p, u: D.Dirichlet(torch.stack([p, u, u * 0 + 1], -1), False),
    D.OneHotCategorical: lambda a, p, u: D.OneHotCategorical(torch.stack([p, u], -1), validate_args=False),
}


_STACKED = (D.Categorical, D.Dirichlet, D.OneHotCategorical)


def _apart(one: Any, two: Any, shapes: Any, *operands: torch.Tensor) -> Any:
    given = [leaf(x) for x in _cut(shapes, operands)]
    others = [leaf(x) for x in _cut(shapes, tuple(x.flip(0) for x in operands))]
    found = D.kl_divergence(_SIDES[one](*given), _SIDES[two](*others))
    if bool(found.isfinite().all()) and found.requires_grad:
        found.backward(uneven(found))
    return [found.detach(), [x.grad for x in (*given, *others)]]


def _has_divergence(one: Any, two: Any) -> bool:
    return one is two or (one, two) in torch.distributions.kl._KL_REGISTRY


add_table(
    cases,
    "families-apart",
    {
        f"{one.__name__}-{two.__name__}-{shape}": lambda *operands, one=one, two=two, shape=shape: _apart(
            one, two, _SHAPES[shape], *operands
        )
        for one, two in itertools.product(_SIDES, _SIDES)
        if _has_divergence(one, two)
        for shape in (("one",) if one is not two else ("one", "three" if one in _STACKED else "crossed"))
    },
    _operands,
    factor=256.0,
    deterministic=False,
    since="2.6",
)

# What no family takes: parameters and values, one wrong among three.
_BAD: dict[str, tuple[Form, tuple[float, ...]]] = {
    "Normal": (lambda a, p: D.Normal(a, p, True), (float("nan"),)),
    "LogNormal": (lambda a, p: D.LogNormal(a, p, True), (-1.0, 0.0)),
    "HalfNormal": (lambda a, p: D.HalfNormal(p, True), (-1.0,)),
    "HalfCauchy": (lambda a, p: D.HalfCauchy(p, True), (-1.0,)),
    "Exponential": (lambda a, p: D.Exponential(p, True), (-1.0,)),
    "Gamma": (lambda a, p: D.Gamma(p, p, True), (-1.0,)),
    "Chi2": (lambda a, p: D.Chi2(p, True), (-1.0,)),
    "InverseGamma": (lambda a, p: D.InverseGamma(p, p, True), (-1.0, 0.0)),
    "Beta": (lambda a, p: D.Beta(p, p, True), (-0.5, 1.5)),
    "Kumaraswamy": (lambda a, p: D.Kumaraswamy(p, p, True), (-0.5, 1.5)),
    "Uniform": (lambda a, p: D.Uniform(a * 0, p, True), (-0.5, 9.0)),
    "Pareto": (lambda a, p: D.Pareto(p, p, True), (-1.0, 0.0)),
    "Weibull": (lambda a, p: D.Weibull(p, p, True), (-1.0, 0.0)),
    "StudentT": (lambda a, p: D.StudentT(p, a, p, True), (float("nan"),)),
    "FisherSnedecor": (lambda a, p: D.FisherSnedecor(p, p, True), (-1.0, 0.0)),
    "Bernoulli": (lambda a, p: D.Bernoulli(p / 4, validate_args=True), (0.5, -1.0, 2.0)),
    "ContinuousBernoulli": (lambda a, p: D.ContinuousBernoulli(p / 4, validate_args=True), (-0.5, 1.5)),
    "Geometric": (lambda a, p: D.Geometric(p / 4, validate_args=True), (-1.0, 0.5)),
    "Poisson": (lambda a, p: D.Poisson(p, True), (-1.0, 0.5)),
    "Binomial": (lambda a, p: D.Binomial(3, p / 4, validate_args=True), (-1.0, 0.5, 4.0)),
    "NegativeBinomial": (lambda a, p: D.NegativeBinomial(p, p / 4, validate_args=True), (-1.0, 0.5)),
    "Categorical": (lambda a, p: D.Categorical(p.expand(3, 3), validate_args=True), (-1.0, 3.0, 0.5)),
    "OneHot": (lambda a, p: D.OneHotCategorical(p, validate_args=True), (0.5, 1.0, 2.0)),
    "Dirichlet": (lambda a, p: D.Dirichlet(p, True), (-1.0, 0.75)),
}
_REFUSED: dict[str, Form] = {
    **{
        f"{name}-value-{place}": lambda a, p, make=make, at=at: make(a, p).log_prob(
            torch.tensor([at, 0.25, 0.25], device=p.device)
        )
        for name, (make, places) in _BAD.items()
        for place, at in enumerate(places)
    },
    **{
        f"{name}-parameter-{wrong}": lambda a, p, make=make, wrong=wrong: make(
            a, torch.tensor([1.0, wrong, 1.0], device=p.device)
        )
        for name, (make, _) in _BAD.items()
        for wrong in (-1.0,)
    },
    **{
        f"{name}-shape": lambda a, p, make=make: make(a, p).log_prob(p.new_full((2,), 1.0))
        for name, (make, _) in _BAD.items()
    },
}
add_refused(
    cases,
    "families",
    lambda d: (d.distinct(3) / 4, d.distinct(3) / 4 + 1.25),
    _REFUSED,
    since="2.6",
)
