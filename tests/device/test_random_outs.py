"""Random numbers by overloads of their own: into out= that is dense or a view, gamma, binomial, dropout's kernel."""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.random_checks import add_random_check
from device_suite.runs import seed_numbers
from device_suite.statistics import check_independence, check_moments, check_no_repeats

cases = Cases("random")
_COUNT = 4096


def _filled(value: float, device: torch.device, *shape: int) -> torch.Tensor:
    return torch.full(shape or (_COUNT,), value, device=device)


# name: (what is drawn into `out`, the mean, the deviation)
_OUTS: dict[str, tuple[Callable[[Any, Any], Any], float, float]] = {
    "bernoulli": (lambda d, out: torch.bernoulli(_filled(0.25, d), out=out), 0.25, 0.433013),
    "normal_means": (lambda d, out: torch.normal(_filled(3.0, d), 2.0, out=out), 3.0, 2.0),
    "normal_deviations": (lambda d, out: torch.normal(-1.0, _filled(0.5, d), out=out), -1.0, 0.5),
    "normal_both": (lambda d, out: torch.normal(_filled(3.0, d), _filled(0.5, d), out=out), 3.0, 0.5),
}
_PLAIN: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "gamma": (lambda d: torch._standard_gamma(_filled(4.0, d)), 4.0, 2.0),
    "dirichlet": (lambda d: torch._sample_dirichlet(_filled(1.0, d, _COUNT // 4, 4))[:, -1], 0.25, 0.193649),
    "binomial": (lambda d: torch.binomial(_filled(20.0, d), _filled(0.5, d)), 10.0, 2.236068),
    "dropout": (lambda d: torch.native_dropout(_filled(1.0, d), 0.5, True)[0], 1.0, 1.0),
    "whole_range": (lambda d: torch.zeros(_COUNT, dtype=torch.uint8, device=d).random_().float(), 127.5, 73.9003),
}


def _into(form: Any, strided: bool) -> Any:
    def act(device: torch.device) -> Any:
        seed_numbers(device, 61)
        base = torch.full((2 * _COUNT + 1,), -77.0, device=device)
        out = base[1::2] if strided else base[:_COUNT]
        form(device, out)
        return base, out

    return act


def _judge_out(name: str, mean: float, deviation: float, strided: bool) -> Any:
    def judge(drawn: Any) -> None:
        base, out = drawn
        check_moments(name, out, mean, deviation)
        left = base[::2] if strided else base[_COUNT:]
        assert bool((left == -77).all()), "wrote outside of out="
        if name.startswith("normal"):
            check_no_repeats(name, out)
            check_independence(name, out)

    return judge


for _name, (_form, _mean, _deviation) in _OUTS.items():
    for _strided in (False, True):
        add_random_check(
            cases,
            f"random-out-{_name}-{'strided' if _strided else 'dense'}",
            _into(_form, _strided),
            _judge_out(_name, _mean, _deviation, _strided),
        )


def _plain(form: Any) -> Any:
    def act(device: torch.device) -> Any:
        seed_numbers(device, 67)
        return [form(device)]

    return act


for _name, (_call, _mean, _deviation) in _PLAIN.items():
    add_random_check(
        cases,
        f"random-kernel-{_name}",
        _plain(_call),
        lambda drawn, name=_name, mean=_mean, deviation=_deviation: check_moments(name, drawn[0], mean, deviation),
    )


def _chosen(device: torch.device) -> Any:
    seed_numbers(device, 71)
    weights = torch.arange(1.0, 9.0, device=device)
    chosen = torch.multinomial(weights, 8, out=torch.empty(8, dtype=torch.int64, device=device))
    generator = torch.Generator(device=device).manual_seed(3)
    orders = torch.randperm(97, generator=generator, out=torch.empty(97, dtype=torch.int64, device=device))
    return chosen, orders


def _judge_chosen(drawn: Any) -> None:
    chosen, orders = drawn
    assert torch.equal(chosen.sort().values, torch.arange(8)), "a choice without replacement repeats itself"
    assert torch.equal(orders.sort().values, torch.arange(97)), "not a permutation"
    assert not torch.equal(orders, torch.arange(97)), "nothing is moved"


add_random_check(cases, "random-out-choices", _chosen, _judge_chosen)
