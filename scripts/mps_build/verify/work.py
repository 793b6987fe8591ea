"""What a verification runs between the diagnosis and the verdict: the device suite, or the workloads of training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mps_build.common.console import Console
from mps_build.common.known_issues import Issue
from mps_build.common.records.device_record import Case, Estimate

from .draft import Draft
from .suite.run import SuiteRun
from .target.diagnosis import HostFacts
from .target.resolve import Target
from .target.shop import Shop


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Where cases run: in which Python, on which machine, with which known issues, and who hears of each case."""

    target: Target
    host: HostFacts
    known: tuple[Issue, ...]
    folder: Path
    draft: Draft
    run: SuiteRun
    on_case: Callable[[SuiteRun, Case], None]
    on_estimate: Callable[[Estimate], None]
    console: Console


class Work(Protocol):
    """The part in which verifications differ.

    Attributes:
        suite: the folder of what is run; it holds known_issues.yaml.
        hint: what a regression is followed by, where it is not the script of one case.
    """

    suite: Path
    hint: str | None

    def check(self) -> None:
        """Refuse what can be refused before the machine is looked at."""

    def make_target(self, shop: Shop) -> Target:
        """Return the Python under test with what the cases need."""

    def run(self, setting: Setting) -> None:
        """Run the cases; each goes into the setting's run, and to its listener."""
