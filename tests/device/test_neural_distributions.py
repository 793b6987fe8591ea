"""torch.distributions: densities, moments, entropies, quantiles, divergences, gradients, and the form of draws."""

from __future__ import annotations

from typing import Any

import torch
from torch import distributions as D

from device_suite import Cases
from device_suite.acts import leaf, uneven
from device_suite.answers import attempt

cases = Cases("neural")


def _square(x: torch.Tensor) -> torch.Tensor:
    """Return a lower triangle with a diagonal above 1/2."""
    return torch.eye(3, dtype=x.dtype, device=x.device) + 0.25 * x[0, :3].abs().outer(x[1, :3]).tril(-1)


# a: real (4, 3), p: positive, u: between 0 and 1; and where the density is asked.
_FAMILIES: dict[str, tuple[Any, Any]] = {
    "normal": (lambda a, p, u: D.Normal(a, p), lambda a, p, u: a.flip(0)),
    "log_normal": (lambda a, p, u: D.LogNormal(a, p), lambda a, p, u: p.flip(0)),
    "uniform": (lambda a, p, u: D.Uniform(a, a + p), lambda a, p, u: a + p * u),
    "exponential": (lambda a, p, u: D.Exponential(p), lambda a, p, u: p.flip(0)),
    "laplace": (lambda a, p, u: D.Laplace(a, p), lambda a, p, u: a.flip(0)),
    "cauchy": (lambda a, p, u: D.Cauchy(a, p), lambda a, p, u: a.flip(0)),
    "gumbel": (lambda a, p, u: D.Gumbel(a, p), lambda a, p, u: a.flip(0)),
    "gamma": (lambda a, p, u: D.Gamma(p, p.flip(0)), lambda a, p, u: p.flip(1)),
    "inverse_gamma": (lambda a, p, u: D.InverseGamma(p + 2, p.flip(0)), lambda a, p, u: p.flip(1)),
    "chi2": (lambda a, p, u: D.Chi2(p), lambda a, p, u: p.flip(0)),
    "beta": (lambda a, p, u: D.Beta(p, p.flip(0)), lambda a, p, u: u),
    "kumaraswamy": (lambda a, p, u: D.Kumaraswamy(p, p.flip(0)), lambda a, p, u: u),
    "student_t": (lambda a, p, u: D.StudentT(p + 2, a, p), lambda a, p, u: a.flip(0)),
    "fisher": (lambda a, p, u: D.FisherSnedecor(p + 4, p + 5), lambda a, p, u: p),
    "pareto": (lambda a, p, u: D.Pareto(p, p.flip(0) + 2), lambda a, p, u: p + 1),
    "weibull": (lambda a, p, u: D.Weibull(p, p.flip(0)), lambda a, p, u: p.flip(1)),
    "half_normal": (lambda a, p, u: D.HalfNormal(p), lambda a, p, u: p.flip(0)),
    "half_cauchy": (lambda a, p, u: D.HalfCauchy(p), lambda a, p, u: p.flip(0)),
    "von_mises": (lambda a, p, u: D.VonMises(a, p), lambda a, p, u: a.flip(0).clamp(-3, 3)),
    "dirichlet": (lambda a, p, u: D.Dirichlet(p), lambda a, p, u: u / u.sum(-1, keepdim=True)),
    "bernoulli": (lambda a, p, u: D.Bernoulli(u), lambda a, p, u: (a > 0).to(a.dtype)),
    "bernoulli-logits": (lambda a, p, u: D.Bernoulli(logits=a), lambda a, p, u: (a > 0).to(a.dtype)),
    "continuous_bernoulli": (lambda a, p, u: D.ContinuousBernoulli(u * 0.4), lambda a, p, u: u),
    "binomial": (lambda a, p, u: D.Binomial(7, u), lambda a, p, u: p.round().clamp(max=7)),
    "negative_binomial": (lambda a, p, u: D.NegativeBinomial(5, u), lambda a, p, u: p.round()),
    "geometric": (lambda a, p, u: D.Geometric(u), lambda a, p, u: p.round()),
    "poisson": (lambda a, p, u: D.Poisson(p), lambda a, p, u: p.round()),
    "categorical": (lambda a, p, u: D.Categorical(p), lambda a, p, u: torch.arange(4, device=a.device) % 3),
    "categorical-logits": (
        lambda a, p, u: D.Categorical(logits=a),
        lambda a, p, u: torch.arange(4, device=a.device) % 3,
    ),
    "one_hot": (
        lambda a, p, u: D.OneHotCategorical(p),
        lambda a, p, u: torch.eye(3, device=a.device).to(a)[[0, 2, 1, 1]],
    ),
    "multinomial": (
        lambda a, p, u: D.Multinomial(6, p),
        lambda a, p, u: torch.tensor([1.0, 2, 3], device=a.device).to(a),
    ),
    "relaxed": (lambda a, p, u: D.RelaxedBernoulli(u.new_tensor(0.7), u), lambda a, p, u: u.flip(0)),
    "multivariate": (lambda a, p, u: D.MultivariateNormal(a, scale_tril=_square(a)), lambda a, p, u: a.flip(0)),
    "multivariate-covariance": (
        lambda a, p, u: D.MultivariateNormal(a, _square(a) @ _square(a).mT),
        lambda a, p, u: a.flip(0),
    ),
    "low_rank": (lambda a, p, u: D.LowRankMultivariateNormal(a, a[..., None] / 4, p), lambda a, p, u: a.flip(0)),
    "mixture": (
        lambda a, p, u: D.MixtureSameFamily(D.Categorical(p), D.Normal(a, p)),
        lambda a, p, u: a[:, 0],
    ),
    "independent": (lambda a, p, u: D.Independent(D.Normal(a, p), 1), lambda a, p, u: a.flip(0)),
    "transformed": (
        lambda a, p, u: D.TransformedDistribution(D.Normal(a, p), [D.SigmoidTransform(), D.AffineTransform(1.0, 2.0)]),
        lambda a, p, u: 1 + 2 * u,
    ),
    "stick_breaking": (
        lambda a, p, u: D.TransformedDistribution(D.Normal(a, p), [D.StickBreakingTransform()]),
        lambda a, p, u: torch.softmax(torch.cat([a, a[:, :1]], 1), 1),
    ),
    "logistic_normal": (
        lambda a, p, u: D.LogisticNormal(a, p),
        lambda a, p, u: torch.softmax(torch.cat([a, a[:, :1]], 1), 1),
    ),
    "straight_through": (
        lambda a, p, u: D.OneHotCategoricalStraightThrough(p),
        lambda a, p, u: torch.eye(3, device=a.device).to(a)[[0, 2, 1, 1]],
    ),
    "relaxed_one_hot": (
        lambda a, p, u: D.RelaxedOneHotCategorical(u.new_tensor(0.7), p),
        lambda a, p, u: u / u.sum(-1, keepdim=True),
    ),
    "correlation": (
        lambda a, p, u: D.LKJCholesky(3, u.new_tensor(1.5)),
        lambda a, p, u: torch.nn.functional.normalize(_square(a), dim=-1),
    ),
    "wishart": (
        lambda a, p, u: D.Wishart(u.new_tensor(5.0), scale_tril=_square(a)),
        lambda a, p, u: _square(a.flip(0)) @ _square(a.flip(0)).mT,
    ),
}
_ASKED: dict[str, Any] = {
    "density": lambda family, at: family.log_prob(at),
    "mean": lambda family, at: family.mean,
    "variance": lambda family, at: family.variance,
    "entropy": lambda family, at: family.entropy(),
    "below": lambda family, at: family.cdf(at),
    "quantile": lambda family, at: family.icdf(torch.full_like(family.mean, 0.25)),
}


# Real numbers, positive ones, and some between 0 and 1.
_DRAWN: dict[str, Any] = {
    "make": lambda d: (d.normal(4, 3), d.uniform(0.5, 3.0, 4, 3), d.uniform(0.125, 0.875, 4, 3)),
    "states": ("fresh",),
    "may_be_missing": True,
}
_SUMMED: dict[str, Any] = {**_DRAWN, "terms": 64, "factor": 64.0, "floor": 1.0}


def _derived(ask: Any, build: Any, place: Any, *operands: torch.Tensor) -> Any:
    """Return an answer at a place and the gradients of what the family or transform was built from."""
    starts = [leaf(one) for one in operands]
    answer = ask(build(*starts), place(*starts))
    if answer.requires_grad:
        answer.backward(uneven(answer))
    return [answer, *(one.grad for one in starts)]


def _told(build: Any, place: Any) -> Any:
    def act(*operands: torch.Tensor) -> Any:
        told = {
            name: attempt(lambda ask=ask: _derived(ask, build, lambda *_: place(*operands), *operands))
            for name, ask in _ASKED.items()
        }
        drawn = attempt(lambda: build(*operands).sample((3,)))
        told["drawn"] = [str(drawn.dtype).replace("64", "32"), list(drawn.shape)] if hasattr(drawn, "dtype") else drawn
        return told

    return act


for _name, (_build, _place) in _FAMILIES.items():
    cases.add(f"neural-distribution-{_name}", _told(_build, _place), deterministic=False, **_SUMMED)
# A transform, and a value that it takes.
_TRANSFORMS: dict[str, tuple[Any, Any]] = {
    "abs": (lambda a, p, u: D.AbsTransform(), lambda a, p, u: a),
    "affine": (lambda a, p, u: D.AffineTransform(a, p), lambda a, p, u: u),
    "cat": (lambda a, p, u: D.CatTransform([D.ExpTransform(), D.TanhTransform()], 1, [1, 2]), lambda a, p, u: a),
    "composed": (lambda a, p, u: D.ComposeTransform([D.ExpTransform(), D.PowerTransform(p)]), lambda a, p, u: a),
    "correlation": (lambda a, p, u: D.CorrCholeskyTransform(), lambda a, p, u: a),
    "cumulative": (lambda a, p, u: D.CumulativeDistributionTransform(D.Normal(a, p)), lambda a, p, u: u),
    "exp": (lambda a, p, u: D.ExpTransform(), lambda a, p, u: a),
    "independent": (lambda a, p, u: D.IndependentTransform(D.ExpTransform(), 1), lambda a, p, u: a),
    "lower": (lambda a, p, u: D.LowerCholeskyTransform(), lambda a, p, u: _square(a)),
    "power": (lambda a, p, u: D.PowerTransform(p), lambda a, p, u: u),
    "positive": (lambda a, p, u: D.PositiveDefiniteTransform(), lambda a, p, u: _square(a)),
    "reshaped": (lambda a, p, u: D.ReshapeTransform((4, 3), (2, 6)), lambda a, p, u: a),
    "sigmoid": (lambda a, p, u: D.SigmoidTransform(), lambda a, p, u: a),
    "softmax": (lambda a, p, u: D.SoftmaxTransform(), lambda a, p, u: a),
    "softplus": (lambda a, p, u: D.SoftplusTransform(), lambda a, p, u: a),
    "stacked": (
        lambda a, p, u: D.StackTransform([D.ExpTransform(), D.TanhTransform(), D.SigmoidTransform()], 1),
        lambda a, p, u: a,
    ),
    "stick_breaking": (lambda a, p, u: D.StickBreakingTransform(), lambda a, p, u: a),
    "tanh": (lambda a, p, u: D.TanhTransform(), lambda a, p, u: a),
}


def _transformed(build: Any, place: Any) -> Any:
    def act(*operands: torch.Tensor) -> Any:
        asked = {
            "there": lambda t, x: t(x),
            "back": lambda t, x: t.inv(t(x)),
            "volume": lambda t, x: t.log_abs_det_jacobian(x, t(x)),
        }
        return {name: attempt(lambda ask=ask: _derived(ask, build, place, *operands)) for name, ask in asked.items()}

    return act


for _name, (_build, _place) in _TRANSFORMS.items():
    cases.add(f"neural-transform-{_name}", _transformed(_build, _place), deterministic=False, **_SUMMED)
# What a value must be: asked of values that are so, that are not, and that are so in part.
_CONSTRAINTS: dict[str, Any] = {
    "boolean": D.constraints.boolean,
    "corr_cholesky": D.constraints.corr_cholesky,
    "finite": D.constraints.real,
    "greater": D.constraints.greater_than(0.5),
    "at_least": D.constraints.greater_than_eq(0.5),
    "half_open": D.constraints.half_open_interval(-0.5, 0.5),
    "independent": D.constraints.independent(D.constraints.positive, 1),
    "integers": D.constraints.integer_interval(0, 2),
    "interval": D.constraints.interval(-0.5, 0.5),
    "less": D.constraints.less_than(0.5),
    "lower_cholesky": D.constraints.lower_cholesky,
    "lower_triangular": D.constraints.lower_triangular,
    "multinomial": D.constraints.multinomial(3),
    "natural": D.constraints.nonnegative_integer,
    "one_hot": D.constraints.one_hot,
    "positive": D.constraints.positive,
    "positive_definite": D.constraints.positive_definite,
    "positive_integer": D.constraints.positive_integer,
    "real_vector": D.constraints.real_vector,
    "semidefinite": D.constraints.positive_semidefinite,
    "simplex": D.constraints.simplex,
    "square": D.constraints.square,
    "symmetric": D.constraints.symmetric,
    "unit": D.constraints.unit_interval,
}


def _constrained(a: torch.Tensor, p: torch.Tensor, u: torch.Tensor) -> Any:
    square = _square(a)
    values = {
        "real": a,
        "within": u,
        "shares": p / p.sum(-1, keepdim=True),
        "ones": torch.eye(3, dtype=a.dtype, device=a.device),
        "lower": square,
        "unit_rows": torch.nn.functional.normalize(square, dim=-1),
        "product": square @ square.mT,
        "upper": square.mT,
        "counts": torch.tensor([[1.0, 0, 2], [0, 0, 3], [1, 1, 2]], device=a.device).to(a.dtype),
        "broken": torch.stack([a, a / 0 * 0]),
    }
    return {
        name: {
            kind: attempt(lambda check=check, value=value: check.check(value)) for kind, check in _CONSTRAINTS.items()
        }
        for name, value in values.items()
    }


cases.add("neural-distribution-constraints", _constrained, **_DRAWN)
_PAIRS: dict[str, tuple[Any, Any]] = {
    "normal": (lambda a, p, u: D.Normal(a, p), lambda a, p, u: D.Normal(a.flip(0), p.flip(1))),
    "gamma": (lambda a, p, u: D.Gamma(p, p.flip(0)), lambda a, p, u: D.Gamma(p.flip(1), p)),
    "beta": (lambda a, p, u: D.Beta(p, p.flip(0)), lambda a, p, u: D.Beta(p.flip(1), p)),
    "dirichlet": (lambda a, p, u: D.Dirichlet(p), lambda a, p, u: D.Dirichlet(p.flip(0))),
    "categorical": (lambda a, p, u: D.Categorical(p), lambda a, p, u: D.Categorical(logits=a)),
    "bernoulli": (lambda a, p, u: D.Bernoulli(u), lambda a, p, u: D.Bernoulli(logits=a)),
    "laplace": (lambda a, p, u: D.Laplace(a, p), lambda a, p, u: D.Laplace(a.flip(0), p.flip(1))),
    "poisson": (lambda a, p, u: D.Poisson(p), lambda a, p, u: D.Poisson(p.flip(0))),
    "exponential": (lambda a, p, u: D.Exponential(p), lambda a, p, u: D.Gamma(p.flip(0), p)),
    "uniform": (lambda a, p, u: D.Uniform(a, a + u), lambda a, p, u: D.Uniform(a - 1, a + 2)),
    "multivariate": (
        lambda a, p, u: D.MultivariateNormal(a, scale_tril=_square(a)),
        lambda a, p, u: D.MultivariateNormal(a.flip(0), scale_tril=_square(p)),
    ),
}
cases.add(
    "neural-distribution-divergences",
    lambda a, p, u: {
        name: attempt(lambda one=one, two=two: D.kl_divergence(one(a, p, u), two(a, p, u)))
        for name, (one, two) in _PAIRS.items()
    },
    **_SUMMED,
)
