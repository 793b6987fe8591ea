"""Random numbers: each generator over one to six dimensions, dtypes and sizes, judged by their statistics."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.generators import DEEP, GENERATORS, LARGE, SHAPES, Generator
from device_suite.host_views import short
from device_suite.random_checks import demand_same_numbers
from device_suite.runs import seed_numbers
from device_suite.statistics import check_all

cases = Cases("random")


def like_the_host(name: str, bench: Any, drawn: list[torch.Tensor], again: Any) -> None:
    """Where the device is the CPU, its numbers are the host's: the rehearsal sees what statistics cannot."""
    if bench.device.type == "cpu":
        demand_same_numbers(name, drawn, again(bench.device))


def _draws(generator: Generator, shapes: Any, dtype: torch.dtype, seed: int) -> Any:
    def draw(device: torch.device) -> list[torch.Tensor]:
        seed_numbers(device, seed)
        return [generator.draw(shape, device, dtype).cpu().clone() for shape in shapes for _ in range(2)]

    return draw


def _judged(generator: Generator, shapes: Any, dtype: torch.dtype) -> Any:
    draw = _draws(generator, shapes, dtype, 17)

    def check(bench: Any) -> None:
        name = f"{generator.name} {short(dtype)}"
        with bench.device_run() as run:
            drawn = draw(run.device)
        like_the_host(name, bench, drawn, draw)
        eps = torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
        high = generator.high * (1 + (5 * eps if generator.computed else 0))
        for one, two, shape in zip(drawn[::2], drawn[1::2], shapes):
            where = f"{name} {shape}"
            assert tuple(one.shape) == shape, f"{where}: shape {tuple(one.shape)}"
            assert not torch.equal(one, two), f"{where}: two draws are equal"
            for each in (one, two):
                assert float(each.min()) >= generator.low, f"{where}: {float(each.min())} is below the range"
                assert float(each.max()) <= high, f"{where}: {float(each.max())} is above the range"
                check_all(where, each, generator, step=eps * 4 if eps > 1e-4 else 0.0)

    return check


for _generator in GENERATORS:
    for _dtype in _generator.dtypes:
        for _number, _shape in enumerate(SHAPES if _dtype == _generator.dtypes[0] else SHAPES[1::3]):
            cases.add(
                f"random-{_generator.name}-{short(_dtype)}-{len(_shape)}d{_number}",
                _judged(_generator, (_shape,), _dtype),
                check=True,
                may_be_missing=True,
                since="2.0",
                devices=_generator.devices,
            )
    if _generator.name in ("randn", "rand", "uniform_", "normal_", "bernoulli_", "randint", "dropout"):
        for _label, _shape in (("large", LARGE), ("deep", DEEP)):
            cases.add(
                f"random-{_generator.name}-{_label}",
                _judged(_generator, (_shape,), _generator.dtypes[0]),
                check=True,
                since="2.0",
            )
