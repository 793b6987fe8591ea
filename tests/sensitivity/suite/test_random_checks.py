"""Drawn numbers in the rehearsal: the host's but for rounding, and as many of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.cases import Cases
from engine.random_numbers import add_random_check, demand_same_numbers
from engine.runs import Bench
from engine.states import Refused, run_case

HOST = torch.tensor([0.25, -1.5, 3.0])


def test_another_rounding_is_no_other_number() -> None:
    demand_same_numbers("x", [HOST * (1 + 2 * torch.finfo(torch.float32).eps)], [HOST])


@pytest.mark.parametrize("drawn", [[], [HOST, HOST], [HOST * 1.01], [HOST.double()], [HOST[:2]]])
def test_fewer_more_or_other_numbers_are_a_fault(drawn: list[torch.Tensor]) -> None:
    with pytest.raises(AssertionError, match="x: "):
        demand_same_numbers("x", drawn, [HOST])


def _case(host: torch.Tensor, device: torch.Tensor) -> tuple[Any, Bench]:
    """Return a case that asks for numbers below 3, and a bench of a device ("meta" by name) that draws others."""
    cases = Cases("random")

    def below_3(drawn: list[torch.Tensor]) -> None:
        assert float(drawn[0].max()) < 3, f"up to {float(drawn[0].max())}"

    add_random_check(cases, "x", lambda where: [host if where.type == "cpu" else device], below_3)
    return next(iter(cases)), Bench(torch.device("meta"))


def test_an_upper_end_that_the_cpu_reaches_too_is_no_fault_of_the_device() -> None:
    """torch 2.11's CPU rounds uniform_(2, 3) of half precision up to 3."""
    with pytest.raises(Refused, match=r"this torch's CPU draws such numbers itself: up to 3\.0"):
        run_case(*_case(host=HOST, device=HOST))


@pytest.mark.parametrize("device", [HOST + 1, HOST - 1, HOST * float("nan")])
def test_a_device_that_goes_further_than_the_cpu_has_failed(device: torch.Tensor) -> None:
    with pytest.raises(AssertionError):
        run_case(*_case(host=HOST, device=torch.cat([HOST, device])))
    with pytest.raises(AssertionError):
        run_case(*_case(host=HOST / 2, device=HOST))
