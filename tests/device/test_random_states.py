"""Random numbers: seeds, generators of one's own, and their state saved and restored."""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.generators import GENERATORS
from device_suite.random_checks import add_random_check

cases = Cases("random")
SHAPE = (7, 5, 9)


def _backend(device: torch.device) -> Any:
    return torch if device.type == "cpu" else getattr(torch, device.type)


# The same seed, another seed, the default generator's state and one of its own, for each generator and shape.
def _repeated(draw: Any, dtype: torch.dtype, shape: Any) -> Any:
    def act(device: torch.device) -> Any:
        torch.manual_seed(23)
        first = draw(shape, device, dtype), draw(shape, device, dtype)
        state = _backend(device).get_rng_state()
        third = draw(shape, device, dtype)
        torch.manual_seed(23)
        again = draw(shape, device, dtype), draw(shape, device, dtype)
        torch.manual_seed(24)
        other = draw(shape, device, dtype)
        _backend(device).set_rng_state(state)
        return (*first, third, *again, other, draw(shape, device, dtype))

    return act


def _judge_repeats(drawn: Any) -> None:
    one, two, three, one_again, two_again, other, three_again = drawn
    assert torch.equal(one, one_again), "the same seed gives other numbers"
    assert torch.equal(two, two_again), "the same seed gives another second draw"
    assert torch.equal(three, three_again), "the restored state gives other numbers"
    for late in (two, three, other):
        assert not torch.equal(one, late), "two draws are equal"


for _generator in GENERATORS:
    for _number, _shape in enumerate((SHAPE, (3, 2, 4, 1, 5))):
        add_random_check(
            cases,
            f"random-seed-{_generator.name}-{_number}",
            _repeated(_generator.draw, _generator.dtypes[0], _shape),
            _judge_repeats,
            devices=_generator.devices,
        )

_OWN: dict[str, Callable[[torch.device, torch.Generator], torch.Tensor]] = {
    "randn": lambda d, g: torch.randn(SHAPE, device=d, generator=g),
    "rand": lambda d, g: torch.rand(SHAPE, device=d, generator=g),
    "randint": lambda d, g: torch.randint(0, 1000, SHAPE, device=d, generator=g),
    "randperm": lambda d, g: torch.randperm(211, device=d, generator=g),
    "normal": lambda d, g: torch.normal(0.0, 1.0, SHAPE, device=d, generator=g),
    "normal_": lambda d, g: torch.zeros(SHAPE, device=d).normal_(generator=g),
    "uniform_": lambda d, g: torch.zeros(SHAPE, device=d).uniform_(generator=g),
    "exponential_": lambda d, g: torch.zeros(SHAPE, device=d).exponential_(generator=g),
    "bernoulli": lambda d, g: torch.bernoulli(torch.full(SHAPE, 0.5, device=d), generator=g),
    "bernoulli_": lambda d, g: torch.zeros(SHAPE, device=d).bernoulli_(0.5, generator=g),
    "random_": lambda d, g: torch.zeros(SHAPE, device=d).random_(0, 1000, generator=g),
    "multinomial": lambda d, g: torch.multinomial(torch.ones(50, device=d), 300, True, generator=g),
}


def _by_generator(draw: Any) -> Any:
    def act(device: torch.device) -> Any:
        generator = torch.Generator(device=device)
        generator.manual_seed(5)
        one, state = draw(device, generator), generator.get_state()
        torch.manual_seed(77)  # of the default generator: no news for this one
        two = draw(device, generator)
        default = draw(device, _backend(device).default_generator if device.type == "cpu" else None)
        generator.set_state(state)
        two_again = draw(device, generator)
        other = torch.Generator(device=device)
        other.set_state(state)
        two_there = draw(device, other)
        generator.manual_seed(5)
        one_again = draw(device, generator)
        generator.manual_seed(6)
        return one, two, one_again, two_again, two_there, draw(device, generator), default

    return act


def _judge_generators(drawn: Any) -> None:
    one, two, one_again, two_again, two_there, other, default = drawn
    assert torch.equal(one, one_again), "the same seed of a generator gives other numbers"
    assert torch.equal(two, two_again), "a generator's restored state gives other numbers"
    assert torch.equal(two, two_there), "another generator with this state gives other numbers"
    for late in (two, other, default):
        assert not torch.equal(one, late), "two draws are equal"


for _name, _draw in _OWN.items():
    add_random_check(cases, f"random-generator-{_name}", _by_generator(_draw), _judge_generators)
