"""What is asked for: which torch, on which device, which rows, how thoroughly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import VerifyRequest

# A --quick run stays under three minutes: what is left of them when the machine was looked at and torch imported.
QUICK_SECONDS = 135.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkRequest(VerifyRequest):
    """What to measure, on what. `only` names rows (`resnet50`, or `resnet50:training`)."""

    quick: bool = False
    fresh: bool = False

    def selection(self) -> dict[str, Any]:
        """Return what was chosen."""
        return {"quick": self.quick, "only": list(self.only), "plant": self.plant}

    def statement(self, gpu: Mapping[str, Any]) -> str:
        """Return the first line of every report: what this run can and cannot say."""
        name = gpu.get("name") or self.device
        part = "Reduced shapes (--quick): not the announced ones. " if self.quick else ""
        if self.only:
            part += "Chosen rows. "
        if self.plant:
            part = f"A fault was planted ({self.plant}). {part}"
        if self.device == "mps":
            return f"{part}MPS on {name}, against the CPU of this machine." if gpu else f"{part}MPS, not reached."
        if self.device == "cpu":
            return f"{part}A rehearsal, CPU against CPU: it says nothing about MPS, and every ratio should read 1.0."
        return f"{part}A rehearsal on another accelerator ({name}): it says nothing about MPS."
