"""Regressions in random numbers: draws differ, seeds repeat, views are filled, statistics are plausible."""

from __future__ import annotations

import math
from typing import Any, Callable

import torch
import torch.nn.functional as F

from engine import Cases
from engine.random_numbers import demand_same_numbers

cases = Cases("regressions")
COUNT = 4096


# What is drawn, its mean and its standard deviation; the device is named, so that no fault mistakes it for the host's.
_DRAWS: dict[str, tuple[Callable[[Any], torch.Tensor], float, float]] = {
    "randn": (lambda device: torch.randn(COUNT, device=device), 0.0, 1.0),
    "normal": (lambda device: torch.normal(2.0, 3.0, (COUNT,), device=device), 2.0, 3.0),
    "normal_tensors": (lambda device: torch.normal(torch.full((COUNT,), 2.0, device=device), 3.0), 2.0, 3.0),
    "rand": (lambda device: torch.rand(COUNT, device=device), 0.5, math.sqrt(1 / 12)),
    "rand_like": (lambda device: torch.rand_like(torch.zeros(COUNT, device=device)), 0.5, math.sqrt(1 / 12)),
    "randn_like": (lambda device: torch.randn_like(torch.zeros(COUNT, device=device)), 0.0, 1.0),
    "randint_low": (lambda device: torch.randint(10, (COUNT,), device=device).float(), 4.5, math.sqrt(99 / 12)),
    "randint_like": (
        lambda device: torch.randint_like(torch.zeros(COUNT, device=device), 2, 12),
        6.5,
        math.sqrt(99 / 12),
    ),
    "normal_both": (
        lambda device: torch.normal(torch.zeros(COUNT, device=device), torch.ones(COUNT, device=device)),
        0.0,
        1.0,
    ),
    "normal_spread": (lambda device: torch.normal(1.0, torch.full((COUNT,), 2.0, device=device)), 1.0, 2.0),
    "poisson": (lambda device: torch.poisson(torch.full((COUNT,), 4.0, device=device)), 4.0, 2.0),
    "randint": (lambda device: torch.randint(0, 10, (COUNT,), device=device).float(), 4.5, math.sqrt(99 / 12)),
    "bernoulli": (lambda device: torch.bernoulli(torch.full((COUNT,), 0.3, device=device)), 0.3, math.sqrt(0.21)),
    "dropout": (lambda device: F.dropout(torch.ones(COUNT, device=device), 0.25), 1.0, math.sqrt(1 / 3)),
    "multinomial": (
        lambda device: torch.multinomial(torch.tensor([1.0, 2.0, 1.0], device=device), COUNT, replacement=True).float(),
        1.0,
        math.sqrt(0.5),
    ),
    "exponential_": (lambda device: torch.zeros(COUNT, device=device).exponential_(2.0), 0.5, 0.5),
    "uniform_": (lambda device: torch.zeros(COUNT, device=device).uniform_(-1, 3), 1.0, math.sqrt(16 / 12)),
    "normal_": (lambda device: torch.zeros(COUNT, device=device).normal_(1, 2), 1.0, 2.0),
    "random_": (lambda device: torch.zeros(COUNT, device=device).random_(0, 10), 4.5, math.sqrt(99 / 12)),
    "bernoulli_": (lambda device: torch.zeros(COUNT, device=device).bernoulli_(0.3), 0.3, math.sqrt(0.21)),
    "half": (lambda device: torch.randn(COUNT, device=device, dtype=torch.float16).float(), 0.0, 1.0),
}


def _differs(name: str) -> Any:
    draw, mean, deviation = _DRAWS[name]

    def check(bench: Any) -> None:
        with bench.device_run() as run:
            torch.manual_seed(3)
            one, two = draw(run.device).cpu().clone(), draw(run.device).cpu().clone()
        assert not torch.equal(one, two), f"{name}: two draws are equal"
        _like_the_host(name, bench, 3, draw, one, two)
        for drawn in (one, two):
            # Five standard errors: one healthy draw in two million is beyond; the seed is fixed.
            off = abs(float(drawn.double().mean()) - mean)
            assert off <= 5 * deviation / math.sqrt(COUNT), f"{name}: mean {float(drawn.mean()):.4f}, expected {mean}"
            spread = float(drawn.double().std())
            assert abs(spread - deviation) <= 0.15 * deviation, (
                f"{name}: deviation {spread:.4f}, expected {deviation:.4f}"
            )

    return check


def _like_the_host(name: str, bench: Any, seed: int, draw: Any, *drawn: torch.Tensor) -> None:
    """Where the device is the CPU, its numbers are the host's: the rehearsal sees what statistics cannot."""
    if bench.device.type != "cpu":
        return
    torch.manual_seed(seed)
    demand_same_numbers(name, drawn, (draw(bench.device) for _ in drawn))


def _repeats(name: str) -> Any:
    draw = _DRAWS[name][0]

    def check(bench: Any) -> None:
        with bench.device_run() as run:
            torch.manual_seed(11)
            one, next_one = draw(run.device).cpu().clone(), draw(run.device).cpu().clone()
            torch.manual_seed(11)
            two, next_two = draw(run.device).cpu().clone(), draw(run.device).cpu().clone()
            torch.manual_seed(12)
            three = draw(run.device).cpu().clone()
        assert torch.equal(one, two), f"{name}: the same seed gives other numbers"
        assert torch.equal(next_one, next_two), f"{name}: the same seed gives another second draw"
        assert not torch.equal(one, three), f"{name}: another seed gives the same numbers"

    return check


# https://github.com/pytorch/pytorch/issues/78110: randn returns the same numbers each call (78009 normal too)
# https://github.com/pytorch/pytorch/issues/84288: manual_seed does not make randn/dropout reproducible (84516)
for _name in _DRAWS:
    _where = ("cpu", "cuda") if _name == "poisson" else ()  # MPS has no poisson
    cases.add(f"issue-78110-{_name}", _differs(_name), issue="78110", check=True, devices=_where)
    cases.add(f"issue-84288-{_name}", _repeats(_name), issue="84288", check=True, devices=_where)


@cases.check("issue-84288-randperm", issue="84288")
def _permutations(bench: Any) -> None:
    with bench.device_run() as run:
        torch.manual_seed(5)
        one, other = (
            torch.randperm(101, device=run.device).cpu().clone(),
            torch.randperm(101, device=run.device).cpu().clone(),
        )
        torch.manual_seed(5)
        two = torch.randperm(101, device=run.device).cpu().clone()
    _like_the_host("randperm", bench, 5, lambda device: torch.randperm(101, device=device), one, other)
    assert torch.equal(one, two), "the same seed gives another permutation"
    assert not torch.equal(one, other), "two permutations are equal"
    assert sorted(one.tolist()) == list(range(101)), "not a permutation"


@cases.check("issue-84288-state", issue="84288")
def _state_there_and_back(bench: Any) -> None:
    backend = torch if bench.device.type == "cpu" else getattr(torch, bench.device.type, None)
    if not hasattr(backend, "get_rng_state"):
        return  # torch.mps came with 2.0
    with bench.device_run() as run:
        torch.manual_seed(5)
        torch.randn(7, device=run.device)
        state = backend.get_rng_state()
        one = torch.randn(33, device=run.device).cpu().clone()
        backend.set_rng_state(state)
        two = torch.randn(33, device=run.device).cpu().clone()
    assert torch.equal(one, two), "the restored state gives other numbers"


_FILLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "normal_": lambda view: view.normal_(),
    "uniform_": lambda view: view.uniform_(0.5, 1.5),
    "exponential_": lambda view: view.exponential_(),
    "bernoulli_": lambda view: view.bernoulli_(0.5),
    "random_": lambda view: view.random_(1, 100),
    "log_normal_": lambda view: view.log_normal_(),
    "cauchy_": lambda view: view.cauchy_(),
    "geometric_": lambda view: view.geometric_(0.3),
}
_REQUIRED = ("normal_", "uniform_", "exponential_", "bernoulli_", "random_")


def _fills_views(name: str) -> Any:
    fill = _FILLS[name]

    def check(bench: Any) -> None:
        with bench.device_run() as run:
            torch.manual_seed(7)
            answers = []
            for shape, cut in (
                ((64, 48), lambda x: x.t()),
                ((64, 48), lambda x: x[:, 1:25]),
                ((64, 48), lambda x: x[3:, ::2]),
            ):
                base = torch.full(shape, -7.0, device=run.device)
                returned = fill(cut(base))
                answers.append((base.cpu().clone(), cut, returned.cpu().clone()))
        if bench.device.type == "cpu":
            torch.manual_seed(7)
            for base, cut, _ in answers:
                host = torch.full(tuple(base.shape), -7.0)
                fill(cut(host))
                demand_same_numbers(name, [base], [host])
        for base, cut, returned in answers:
            touched = torch.zeros_like(base, dtype=torch.bool)
            cut(touched).fill_(True)
            assert torch.equal(cut(base), returned), f"{name}: what it returned is not what it wrote"
            assert bool((base[~touched] == -7).all()), f"{name}: wrote outside of the view"
            kept = float((base[touched] == -7).double().mean())
            assert kept < 0.01, f"{name}: {kept:.0%} of the view was not written"
            assert len(base[touched].unique()) > 1, f"{name}: one value everywhere"
            left, right = cut(base)[: cut(base).shape[0] // 2], cut(base)[cut(base).shape[0] // 2 :]
            assert float((left == right[: left.shape[0]]).double().mean()) < 0.75, f"{name}: the halves repeat"

    return check


# https://github.com/pytorch/pytorch/issues/165267: normal_/uniform_/exponential_/bernoulli_/random_ no-op on
# non-contiguous tensor (macOS<15)
for _name in _FILLS:
    cases.add(
        f"issue-165267-{_name}",
        _fills_views(_name),
        issue="165267",
        check=True,
        may_be_missing=_name not in _REQUIRED,
        devices=() if _name in _REQUIRED else ("cpu", "cuda"),
    )


@cases.check("issue-84288-dropout-mask", issue="84288")
def _dropout_uses_one_mask(bench: Any) -> None:
    with bench.device_run() as run:
        torch.manual_seed(9)
        x = torch.ones(50, 40, device=run.device).requires_grad_()
        y = F.dropout(x, 0.1)
        y.sum().backward()
        forward, back = y.detach().cpu().clone(), x.grad.cpu().clone()
        still = F.dropout(x.detach(), 0.5, training=False).cpu().clone()
    assert torch.equal(forward, back), "backward uses another mask than forward"
    values = sorted(round(value, 5) for value in forward.unique().tolist())
    assert values == [0.0, round(1 / 0.9, 5)], f"dropout gives {values}"
    kept = float((forward != 0).double().mean())
    assert abs(kept - 0.9) < 0.035, f"{kept:.3f} of the values are kept, expected 0.9"
    assert bool((still == 1).all()), "dropout changes values in evaluation"
