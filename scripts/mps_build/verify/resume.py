"""Whether an interrupted run asked what is asked now: only then its answers may be taken over."""

from __future__ import annotations

from pathlib import Path

from mps_build.common.errors import UsageError
from mps_build.common.records.device_record import Record, Torch

from .verify_request import VerifyRequest

# What the selection of a record of an older version does not say.
_DEFAULTS = {"cases": 0, "keys": 0, "seconds": 0.0, "seed": 0}


def not_the_same(earlier: Record, torch: Torch, request: VerifyRequest, folder: Path) -> UsageError | None:
    """Return why the earlier record cannot be gone on with; None where it can."""
    differences = [
        name
        for name, before, now in (
            ("torch", earlier.torch.version, torch.version),
            ("torch's commit", earlier.torch.commit, torch.commit),
            ("the device", earlier.device, request.device),
            ("what the device answers as", earlier.simulated, request.simulated),
            ("what was chosen of the suite", {**_DEFAULTS, **earlier.selection}, request.selection()),
        )
        if before != now
    ]
    if not earlier.partial:
        return UsageError(
            f"{folder}: that run is complete ({earlier.verdict})", hint="leave --resume out to run it again"
        )
    if differences:
        return UsageError(
            f"{folder}: it ran with other options: {', '.join(differences)} differ",
            hint="leave --resume out to start again",
        )
    return None
