"""Rules 1 and 3: how many numbers arange counts: its ends and steps are wider than float32.

One number too many, https://github.com/pytorch/pytorch/issues/18363; an end before the start was not refused,
https://github.com/pytorch/pytorch/issues/153311
"""

from __future__ import annotations

import torch

from device_suite import Cases
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")

_COUNTS = (
    *((-4, 4, 0.01), (0, 1, 0.1), (0, 1, 1 / 3), (1, 2, 0.05), (0, 0.3, 0.1), (10, -10, -0.1), (0, 100, 0.7)),
    *((-1, 1, 0.002), (0, 5, 0.625), (3, 4, 0.001), (1e3, 1e3 + 1, 0.125), (0, 1e-3, 1e-4), (2, 3, 0.3), (0, 6, 1.2)),
)
add_table(
    cases,
    "counted-by-steps",
    {
        f"{ends}-{str(dtype)[6:]}": lambda x, ends=ends, dtype=dtype: [
            (y := torch.arange(*ends, dtype=dtype, device=x.device)).shape,
            y[:1],
            y[-1:],
            torch.arange(*ends, dtype=torch.float32, device=x.device)[::7],
        ]
        for ends in _COUNTS
        for dtype in (torch.float32, *HALVES)
    },
    lambda d: (torch.zeros(1),),
    factor=16.0,
)
# An end before the start, by less than float32 has.
add_refused(
    cases,
    "counted-backwards",
    lambda d: (torch.zeros(1),),
    {
        f"arange-{start}": lambda x, start=start, gap=gap: torch.arange(start, start - gap, device=x.device)
        for start, gap in ((1.0, 1e-9), (100.0, 1e-7), (-5.0, 1e-8), (1e6, 1e-3))
    },
)
