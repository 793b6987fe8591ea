"""Regressions beyond 4 GiB or 2**31 elements: a right value or a clean refusal, never an abort; only with --full."""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases

cases = Cases("regressions")


def _ask_large(bench: Any, what: Callable[[Any], bool], said: str) -> None:
    """Demand that `what` holds, or that the device declines with an error of its own; an abort ends the process."""
    try:
        with bench.device_run() as run:
            right = what(run.device)
    except (RuntimeError, NotImplementedError) as refused:
        assert str(refused), f"{said}: refused without a word"
        return
    assert right, said


def _large(issue: str, gibibytes: int, what: Callable[[Any], bool], said: str) -> None:
    cases.add(
        f"issue-{issue}",
        lambda bench: _ask_large(bench, what, said),
        issue=issue,
        check=True,
        full=True,
        memory_bytes=gibibytes << 30,
        limit_seconds=600,
    )


def _ones(device: Any) -> bool:
    made = torch.ones(2, (1 << 31) + 5, dtype=torch.int8, device=device)
    return int(made[1, -2]) == 1 and int(made[0, -1]) == 1


def _any(device: Any) -> bool:
    drawn = torch.randint(0, 10, ((1 << 31) + 8,), dtype=torch.uint8, device=device)
    return bool(drawn.any())


def _sum_past_four_gibibytes(device: Any) -> bool:
    wide = torch.ones((1 << 30) + 16, device=device)
    wide[-1] = 3
    more = wide + 1
    return float(more[-1]) == 4 and float(more[-2]) == 2 and float(more[0]) == 2


def _fill_where_masked(device: Any) -> bool:
    count = (1 << 32) + 16
    mask = torch.zeros(count, dtype=torch.bool, device=device)
    mask[-1] = True
    filled = torch.zeros(count, dtype=torch.int8, device=device).masked_fill_(mask, 7)
    return int(filled[-1]) == 7 and int(filled[15]) == 0


# https://github.com/pytorch/pytorch/issues/161265: full/ones wrong for > 4 GiB on macOS 26
_large("161265", 6, _ones, "ones past 4 GiB are not ones")
# https://github.com/pytorch/pytorch/issues/158824: dimension > INT_MAX aborts
_large("158824", 6, _any, "any() of 2**31 elements is wrong")
# https://github.com/pytorch/pytorch/issues/149325: umbrella: NDArray > 2**32 bytes / 32-bit indices
_large("149325", 12, _sum_past_four_gibibytes, "a sum past 4 GiB is wrong")
# https://github.com/pytorch/pytorch/issues/143477: masked_fill > 2**32 elements refused
_large("143477", 12, _fill_where_masked, "masked_fill past 2**32 elements is wrong")
