"""Random numbers: seeds, states, generators of one's own and what is drawn beside them, clones, forks."""

from __future__ import annotations

from typing import Any, Callable

import torch

from engine import Cases
from engine.random_numbers import GENERATORS, SHAPES, add_random_check

cases = Cases("scenarios")


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


for _generator in GENERATORS[::2]:
    for _number, _shape in enumerate(SHAPES[4:5]):
        add_random_check(
            cases,
            f"random-seed-{_generator.name}-{_number}",
            _repeated(_generator.draw, _generator.dtypes[0], _shape),
            _judge_repeats,
            devices=_generator.devices,
        )


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


_COUNT = 97


def _filled(name: str, *args: Any, dtype: torch.dtype = torch.float32) -> Callable[..., torch.Tensor]:
    return lambda device, g: getattr(torch.full((_COUNT,), 0.5, device=device).to(dtype), name)(*args, generator=g)


def _line(device: torch.device, low: float, high: float) -> torch.Tensor:
    return torch.linspace(low, high, _COUNT, device=device)


# device, generator -> what is drawn; without a generator (None) from the device's own.
_DRAWN: dict[str, Callable[[torch.device, Any], torch.Tensor]] = {
    "rand": lambda d, g: torch.rand(_COUNT, device=d, generator=g),
    "randn": lambda d, g: torch.randn(_COUNT, device=d, generator=g),
    "rand-half": lambda d, g: torch.rand(_COUNT, device=d, generator=g, dtype=torch.float16),
    "randint": lambda d, g: torch.randint(-5, 10**6, (_COUNT,), device=d, generator=g),
    "randperm": lambda d, g: torch.randperm(_COUNT, device=d, generator=g),
    "normal": lambda d, g: torch.normal(0.5, 2.0, (_COUNT,), device=d, generator=g),
    "normal-means": lambda d, g: torch.normal(_line(d, -1, 1), 2.0, generator=g),
    "normal-deviations": lambda d, g: torch.normal(0.5, _line(d, 1, 2), generator=g),
    "normal-both": lambda d, g: torch.normal(_line(d, -1, 1), _line(d, 1, 2), generator=g),
    "bernoulli": lambda d, g: torch.bernoulli(_line(d, 0.2, 0.8), generator=g),
    "bernoulli-p": lambda d, g: torch.bernoulli(_line(d, 0, 1), 0.5, generator=g),
    "multinomial": lambda d, g: torch.multinomial(_line(d, 1, 2), 40, generator=g),
    "multinomial-again": lambda d, g: torch.multinomial(_line(d, 1, 2), _COUNT, True, generator=g),
    "poisson": lambda d, g: torch.poisson(_line(d, 1, 30), generator=g),
    "binomial": lambda d, g: torch.binomial(_line(d, 9, 90).round(), _line(d, 0.2, 0.8), generator=g),
    "gamma": lambda d, g: torch._standard_gamma(_line(d, 1, 9), generator=g),
    "uniform_": _filled("uniform_", -1, 3),
    "normal_": _filled("normal_", 1, 2),
    "exponential_": _filled("exponential_", 0.7),
    "cauchy_": _filled("cauchy_", 0.1, 2),
    "log_normal_": _filled("log_normal_", 0, 0.5),
    "geometric_": _filled("geometric_", 0.1),
    "random_": _filled("random_", dtype=torch.int64),
    "random_-to": _filled("random_", 10**6, dtype=torch.int64),
    "random_-between": _filled("random_", -9, 10**5, dtype=torch.int32),
    "bernoulli_": _filled("bernoulli_", 0.4),
}


def _streams(draw: Any) -> Callable[[torch.device], Any]:
    def act(device: torch.device) -> Any:
        own = torch.Generator(device=device)
        own.manual_seed(11)
        assert own.initial_seed() == 11, "initial_seed is not the seed that was given"
        start = own.get_state()
        assert start.device.type == "cpu" and start.dtype == torch.uint8, "the state is not bytes of the host"
        one, two = draw(device, own), draw(device, own)
        assert not torch.equal(start, own.get_state()), "a draw leaves the generator's state as it was"
        own.set_state(start)
        assert torch.equal(start, own.get_state()), "the state that was set is not the state that is read"
        late = own.get_state()
        torch.manual_seed(5)
        beside, once = draw(device, None), draw(device, own)
        beside_too, second = draw(device, None), draw(device, own)
        torch.manual_seed(5)
        alone = draw(device, None), draw(device, None)
        # The state that was read is a copy: draws do not change it.
        own.set_state(late)
        return one, two, once, second, draw(device, own), beside, beside_too, *alone

    return act


def _judged(drawn: Any) -> None:
    one, two, once, second, kept, beside, beside_too, alone, alone_too = drawn
    assert torch.equal(one, once) and torch.equal(two, second), "draws of the default generator change another one's"
    assert torch.equal(one, kept), "a state that was read is not the state of that time"
    assert torch.equal(beside, alone) and torch.equal(beside_too, alone_too), "a generator changes the default one's"
    assert not torch.equal(one, two) and not torch.equal(beside, beside_too), "two draws are equal"


for _name, _draw in _DRAWN.items():
    add_random_check(cases, f"random-stream-{_name}", _streams(_draw), _judged)
for _name in ("rand", "randn", "randint", "randperm", "normal-means", "bernoulli", "multinomial", "exponential_"):
    add_random_check(cases, f"random-generator-{_name}", _by_generator(_DRAWN[_name]), _judge_generators)


def _forked(draw: Any) -> Callable[[torch.device], Any]:
    def act(device: torch.device) -> Any:
        torch.manual_seed(3)
        plain = draw(device, None), draw(device, None)
        torch.manual_seed(3)
        first = draw(device, None)
        kind = {} if device.type == "cpu" else {"device_type": device.type}
        with torch.random.fork_rng(devices=[] if device.type == "cpu" else [0], **kind):
            inside = draw(device, None)
            torch.manual_seed(99)
            seeded = draw(device, None)
        return (*plain, first, draw(device, None), inside, seeded)

    return act


def _judge_fork(drawn: Any) -> None:
    one, two, first, second, inside, seeded = drawn
    assert torch.equal(one, first) and torch.equal(two, second), "what is drawn in a fork changes what comes after it"
    assert torch.equal(two, inside), "a fork does not begin where its parent is"
    assert not torch.equal(seeded, inside), "a seed inside of a fork changes nothing"


def _cloned(draw: Any) -> Callable[[torch.device], Any]:
    def act(device: torch.device) -> Any:
        own = torch.Generator(device=device)
        own.manual_seed(8)
        draw(device, own)
        if not hasattr(own, "clone_state"):
            raise NotImplementedError("this torch has no clone_state: not implemented")
        other = own.clone_state()
        one, two = draw(device, other), draw(device, other)
        return one, two, draw(device, own), draw(device, own)

    return act


def _judge_clone(drawn: Any) -> None:
    assert torch.equal(drawn[0], drawn[2]) and torch.equal(drawn[1], drawn[3]), "a clone draws other numbers"
    assert not torch.equal(drawn[0], drawn[1]), "two draws are equal"


for _name in ("rand", "randint", "normal_", "multinomial"):
    add_random_check(cases, f"random-fork-{_name}", _forked(_DRAWN[_name]), _judge_fork)
    add_random_check(cases, f"random-clone-{_name}", _cloned(_DRAWN[_name]), _judge_clone)


def _of_the_host(bench: Any) -> None:
    wrong = []
    with bench.device_run() as run:
        for name, draw in _DRAWN.items():
            try:
                draw(run.device, torch.Generator(device="cpu")).cpu()
            except RuntimeError:
                continue
            wrong.append(name)
    assert not wrong, f"the host's generator is taken for the device's own: {', '.join(wrong)}"


cases.add("random-generator-of-the-host", _of_the_host, check=True, devices=("mps", "cuda"), may_be_missing=True)
