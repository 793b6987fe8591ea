"""Checks of what a device draws: judged by a function, and in the rehearsal against the host's own numbers."""

from __future__ import annotations

from typing import Any, Callable

import torch

from .cases import Cases


def add_drawn(
    cases: Cases, case_id: str, act: Callable[[torch.device], Any], judge: Callable[[Any], None], **fields: Any
) -> None:
    """Register a check: what `act(device)` draws on the device is judged on the host.

    Where the device is the CPU its numbers are the host's: the rehearsal sees what statistics cannot.
    """

    def check(bench: Any) -> None:
        with bench.device_run() as run:
            drawn = [one.cpu().clone() for one in act(run.device)]
        if bench.device.type == "cpu":
            for one, two in zip(drawn, act(bench.device)):
                assert torch.equal(one, two), f"{case_id}: not the host's numbers"
        judge(drawn)

    cases.add(case_id, check, check=True, may_be_missing=True, since="2.0", **fields)
