"""The device suite in one process: its cases run under hundreds of faults, the references computed once."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable

ROOT = Path(__file__).resolve().parents[2]
DEVICE_TESTS = ROOT / "tests" / "device"
# For all of this folder, also where a script of it is started: the suite, the meter, the figures.
sys.path[:0] = [str(DEVICE_TESTS), str(ROOT / "benchmarks" / "device"), str(ROOT / "benchmarks")]
os.environ.pop("PYTORCH_ENABLE_MPS_FALLBACK", None)
# Read when libtorch loads: an out= that is resized says so on stderr, thousands of times.
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

import torch  # noqa: E402

from engine import reference, sampler, trial  # noqa: E402
from engine.budget import Budget, budget_of  # noqa: E402
from engine.cases import Case  # noqa: E402
from engine.estimate import estimate  # noqa: E402
from engine.layer import Drawn  # noqa: E402
from engine.runs import Bench, FaultMaker  # noqa: E402
from engine.selection import quick_cases, why_not_here  # noqa: E402
from engine.states import References, Refused, run_case  # noqa: E402

import operators  # noqa: E402 # isort: skip
import transforms  # noqa: E402 # isort: skip

# What a run asks first; the core's other layers follow, then the drawn cases.
FIRST = ("smoke", "regressions")


@dataclass(frozen=True)
class Outcome:
    """What came of one case: why it failed (None: it passed), how long it took on one CPU."""

    case: Case
    failure: str | None
    seconds: float


class Suite:
    """Cases run on the CPU as the device under test: those of the core, or of some of its layers."""

    def __init__(self, layers: Iterable[str] | None = None, *, device: torch.device | None = None) -> None:
        self.device = device or torch.device("cpu")
        self.cases = core_cases(layers)
        self.forget_references()
        self.refused: dict[str, str] = {}

    def forget_references(self) -> None:
        """Compute every reference anew, as a first run does."""
        self._references = References(keep=True)
        reference.KEPT = {}

    def keep_nothing(self) -> None:
        """Keep no reference: every case is run once."""
        self._references = References()
        reference.KEPT = None

    def ask(self, case: Case, maker: FaultMaker | None = None) -> Outcome:
        """Return what comes of a case under a fault."""
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
        return Outcome(case, failure, time.process_time() - begun)

    def first_failure(self, cases: Iterable[Case], maker: FaultMaker) -> Outcome | None:
        """Return the first case that fails under the fault, or None."""
        for case in cases:
            outcome = self.ask(case, maker)
            if outcome.failure is not None:
                return outcome
        return None


def core(layers: Iterable[str] | None = None) -> list[tuple[str, Case]]:
    """Return (file, case) of each default case of the core, or of some layers: the first layers first."""
    warnings.filterwarnings("error", message=".*fall back to run on the CPU.*")
    warnings.filterwarnings("ignore", category=UserWarning)
    wanted = None if layers is None else tuple(layers)
    found = []
    for path in sorted(DEVICE_TESTS.rglob("test_*.py")) if wanted != () else ():
        file = str(path.relative_to(DEVICE_TESTS))
        for case in module_of(file).cases:
            if not case.full and (wanted is None or case.layer in wanted):
                found.append((file, case))
    return sorted(found, key=lambda one: FIRST.index(one[1].layer) if one[1].layer in FIRST else len(FIRST))


def core_cases(layers: Iterable[str] | None = None) -> list[Case]:
    """Return the cases of `core` that the CPU can run."""
    here = torch.device("cpu")
    return [case for _, case in core(layers) if why_not_here(case, device=here, full=False) is None]


def seconds_for(cases: Iterable[Case]) -> float:
    """Return what cases will take here on the CPU, as a run of the suite states it."""
    every = list(cases)
    drawn = [sampler.Case.of(case.id) for case in every if case.layer == "drawn"]
    core = [case for case in every if case.layer != "drawn"]
    return estimate(core, drawn, 0, torch.device("cpu")).low_seconds


def module_of(file: str) -> Any:
    """Return the module of a file of the suite: two folders may have files of one name."""
    name = file[:-3].replace(os.sep, "_")
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, str(DEVICE_TESTS / file))
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def drawn_ids(budget: Budget) -> list[str]:
    """Return the ids of the drawn cases of a budget, in the order of worth."""
    found = Drawn()
    found.draw(budget)
    return [case.id for case in found]


def drawn_case(text: str) -> Case:
    """Return a drawn case by its id, without the frame of its layer, which shrinks for seconds what is wrong."""
    one = sampler.Case.of(text)
    every, ways = operators.described(), transforms.known()

    def make(bench: Bench) -> Any:
        return trial.make(one, every[one.operator], ways[one.transformation], bench)

    return Case(text, "drawn", make, check=True, may_be_missing=True)


@dataclass(frozen=True)
class Request:
    """Ids in the order in which they are run, each with its file (drawn ones: "drawn").

    Attributes:
        quick, default: how many of the first are of --quick, and of a run without options.
    """

    ids: dict[str, str]
    quick: int
    default: int


def requested(seed: int = 0, keys: int = 0) -> Request:
    """Return what a run asks: the cases of --quick, what the default has besides, and drawn ones up to `keys`."""
    ids = {case.id: file for file, case in core() if is_quick(file, case)}
    ids.update(dict.fromkeys(drawn_ids(budget_of(_options(seed, quick=True))), "drawn"))
    quick = len(ids)
    ids.update((case.id, file) for file, case in core())
    ids.update(dict.fromkeys(drawn_ids(budget_of(_options(seed))), "drawn"))
    default = len(ids)
    if keys:
        ids.update(dict.fromkeys(drawn_ids(budget_of(_options(seed, keys=keys))), "drawn"))
    return Request(ids, quick, default)


def is_quick(file: str, case: Case) -> bool:
    """Say whether --quick asks a case of the core."""
    return case.id in _quick_of(file)


@functools.lru_cache(maxsize=None)
def _quick_of(file: str) -> frozenset[str]:
    return frozenset(case.id for case in quick_cases(module_of(file).cases.listed(full=False)))


def _options(seed: int, *, quick: bool = False, keys: int = 0) -> Callable[[str], Any]:
    """Return what gives the value of each of the suite's options: those of a run without any, but for these."""
    given: dict[str, Any] = {"--seed": seed, "--quick": quick, "--keys": keys, "--cases": 0}
    return lambda name: given.get(name, "")
