"""The device suite in one process: its cases asked under hundreds of plants, the references computed once."""

from __future__ import annotations

import importlib
import os
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable

ROOT = Path(__file__).resolve().parents[2]
DEVICE_TESTS = ROOT / "tests" / "device"
# For all of this folder, also where a script of it is started: the suite, the meter, the figures.
sys.path[:0] = [str(DEVICE_TESTS), str(ROOT / "benchmarks" / "device"), str(ROOT / "benchmarks")]
os.environ.pop("PYTORCH_ENABLE_MPS_FALLBACK", None)

import torch  # noqa: E402

from device_suite.cases import Case  # noqa: E402
from device_suite.runs import Bench, PlantMaker  # noqa: E402
from device_suite.selection import why_not_here  # noqa: E402
from device_suite.states import References, Refused, run_case  # noqa: E402
from engine import reference  # noqa: E402

DEFAULT_LAYERS = ("smoke", "regressions", "scenarios")
# Cases that start processes or take seconds say nothing about an operator that a quick one does not say.
SLOW_SECONDS = 1.0


@dataclass(frozen=True)
class Asked:
    """What came of one case: why it failed (None: it passed), how long it took on one CPU."""

    case: Case
    failure: str | None
    seconds: float


class Suite:
    """The suite's default cases on the CPU as the device under test; with `full` every case there is, to be listed."""

    def __init__(
        self, layers: Iterable[str] = DEFAULT_LAYERS, *, full: bool = False, device: torch.device | None = None
    ) -> None:
        self.device = device or torch.device("cpu")
        self.file_of: dict[str, str] = {}
        self.cases = _load_cases(tuple(layers), full, self.file_of)
        self.forget_references()
        self.refused: dict[str, str] = {}

    def keep_nothing(self) -> None:
        """Keep no reference: every case is asked once, and a process that is forked often stays small."""
        self._references = References()
        reference.KEPT = None

    def forget_references(self) -> None:
        """Compute every reference anew, as a first run does."""
        self._references = References(keep=True)
        reference.KEPT = {}

    def ask(self, case: Case, maker: PlantMaker | None = None) -> Asked:
        """Return what comes of a case under a plant."""
        begun = time.process_time()
        failure: str | None = None
        try:
            run_case(case, Bench(self.device, around=maker), self._references)
        except Refused as refused:
            self.refused[case.id] = str(refused)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as raised:
            failure = f"{type(raised).__name__}: {raised}"
        return Asked(case, failure, time.process_time() - begun)

    def first_failure(self, cases: Iterable[Case], maker: PlantMaker) -> Asked | None:
        """Return the first case that fails under the plant, or None."""
        for case in cases:
            asked = self.ask(case, maker)
            if asked.failure is not None:
                return asked
        return None


def _load_cases(layers: tuple[str, ...], full: bool, file_of: dict[str, str]) -> list[Case]:
    warnings.filterwarnings("error", message=".*fall back to run on the CPU.*")
    warnings.filterwarnings("ignore", category=UserWarning)
    found: list[Case] = []
    here = torch.device("cpu")
    for path in sorted(DEVICE_TESTS.glob("*/test_*.py")):
        module: Any = importlib.import_module(f"{path.parent.name}.{path.stem}")
        cases = [case for case in module.cases if case.layer in layers]
        file_of.update((case.id, f"{path.parent.name}/{path.name}") for case in cases)
        found += [case for case in cases if full or why_not_here(case, device=here, full=False) is None]
    return found


def in_order(cases: Iterable[Case], seconds: dict[str, float]) -> list[Case]:
    """Return the cases, the quickest first: most plants die early."""
    return sorted(cases, key=lambda case: seconds.get(case.id, 0.0))
