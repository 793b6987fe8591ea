"""Checks of what a device draws: judged by a function, and in the rehearsal against the host's own numbers."""

from __future__ import annotations

from typing import Any, Callable, Iterable

import torch

from .cases import Cases
from .states import Refused

# A library may compute the same numbers with another rounding at each of a few steps.
_UNITS = 8


def demand_same_numbers(name: str, drawn: Iterable[torch.Tensor], again: Iterable[torch.Tensor]) -> None:
    """Raise AssertionError where the CPU in the device's place does not draw the host's numbers, but for rounding."""
    drawn, again = list(drawn), list(again)
    assert drawn, f"{name}: nothing was drawn"
    assert len(drawn) == len(again), f"{name}: {len(drawn)} draws, the host's {len(again)}"
    for one, two in zip(drawn, again):
        assert one.dtype == two.dtype and one.shape == two.shape, f"{name}: not the host's dtype or shape"
        if one.is_floating_point() and one.numel():
            near = _UNITS * torch.finfo(one.dtype).eps
            scale = float(two.nan_to_num(0.0, 0.0, 0.0).abs().max())
            same = torch.allclose(one.double(), two.double(), rtol=near, atol=near * min(scale, 1.0), equal_nan=True)
        else:
            same = torch.equal(one, two)
        assert same, f"{name}: not the host's numbers"


def demand(judge: Callable[[Any], None], drawn: Any, host: Callable[[], Any]) -> None:
    """Raise what a judge raises of drawn numbers; Refused where the host's own numbers fail as far.

    uniform_ of the CPU may round to the upper end in half precision: no device is asked for more than its torch's CPU.

    Args:
        host: draws on the CPU; asked only where the judge raises.
    """
    try:
        judge(drawn)
    except AssertionError as wrong:
        own = host()
        try:
            judge(own)
        except AssertionError:
            if _lie_within(drawn, own):
                raise Refused(f"no reference: this torch's CPU draws such numbers itself: {wrong}") from wrong
        raise


def _lie_within(drawn: Iterable[torch.Tensor], own: Iterable[torch.Tensor]) -> bool:
    """Say whether numbers go no further to either side than others, tensor by tensor; NaN goes anywhere."""
    pairs = [(one.double(), two.double()) for one, two in zip(drawn, own) if one.numel() and two.numel()]
    return all(bool(two.min() <= one.min()) and bool(one.max() <= two.max()) for one, two in pairs)


def add_random_check(
    cases: Cases, case_id: str, act: Callable[[torch.device], Any], judge: Callable[[Any], None], **fields: Any
) -> None:
    """Register a check: what `act(device)` draws on the device is judged on the host.

    Where the device is the CPU its numbers are the host's: the rehearsal sees what statistics cannot.
    """

    def check(bench: Any) -> None:
        with bench.device_run() as run:
            drawn = [one.cpu().clone() for one in act(run.device)]
        if bench.device.type == "cpu":
            demand_same_numbers(case_id, drawn, act(bench.device))
        demand(judge, drawn, lambda: act(torch.device("cpu")))

    cases.add(case_id, check, check=True, may_be_missing=True, since="2.0", **fields)
