"""The outcomes of one run of the device suite, and how a process's text is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from mps_build.common.records.device_record import Case, Finding, PlantResult


class Judgement(Protocol):
    """What a text of a process means (triage's DeviceText)."""

    @property
    def category(self) -> str:
        """The category of triage, such as `gpu_timeout`."""

    @property
    def stop(self) -> bool:
        """True if nothing more should be run on this machine."""


JudgeText = Callable[[str, int | None, str | None], Judgement]


@dataclass(slots=True, kw_only=True)
class SuiteRun:
    """What a run came to; grows while it runs, so that an interruption keeps what there is.

    `files`: case -> its file, of all cases that were collected. `caught`: a case failed after the plant did something.
    `own`: cases in which the suite itself failed. `threads`: of a process, as it says; the most of any.
    `findings`: what failed cases come down to, by name. `not_asked`: cases that were left when the time was over.
    """

    cases: list[Case] = field(default_factory=list)
    collected: int = 0
    files: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    stopped: str | None = None
    plant_hits: int | None = None
    caught: bool = False
    refused: str | None = None
    bad: int = 0
    own: int = 0
    faults: int = 0
    threads: int | None = None
    findings: dict[str, Finding] = field(default_factory=dict)
    not_asked: int = 0

    def plant_result(self) -> PlantResult:
        """Return what became of the plant: one that never fired was not missed, it was not asked."""
        if self.refused is not None:
            return "error"
        if self.caught:
            return "caught"
        return "not_exercised" if self.plant_hits == 0 else "missed"


OnCase = Callable[[SuiteRun, Case], None]
