"""Drawn numbers in the rehearsal: the host's but for rounding, and as many of them."""

from __future__ import annotations

import pytest
import torch

from device_suite.random_checks import demand_same_numbers

HOST = torch.tensor([0.25, -1.5, 3.0])


def test_another_rounding_is_no_other_number() -> None:
    demand_same_numbers("x", [HOST * (1 + 2 * torch.finfo(torch.float32).eps)], [HOST])


@pytest.mark.parametrize("drawn", [[], [HOST, HOST], [HOST * 1.01], [HOST.double()], [HOST[:2]]])
def test_fewer_more_or_other_numbers_are_a_fault(drawn: list[torch.Tensor]) -> None:
    with pytest.raises(AssertionError, match="x: "):
        demand_same_numbers("x", drawn, [HOST])
