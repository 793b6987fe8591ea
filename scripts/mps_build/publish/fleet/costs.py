"""What one build and one test cost: the assumptions, or what receipts and records measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import BaseModel, Field, field_validator

from mps_build.common.errors import UsageError
from mps_build.common.json_model import checked
from mps_build.common.json_text import load_json

_HINT = "remove it or download it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Of one Mac; `measured` names what came from receipts, all else is assumed.

    Attributes:
        core_minutes: one cold build's compilers. Assumed from a feedstock's build on an Intel vCPU
            (https://github.com/conda-forge/pytorch-cpu-feedstock/issues/316), so high for M-series chips.
        serial_minutes: configure, the last links, packing, audit: what more cores do not shorten.
        efficiency: the share of the cores that ninja keeps busy.
        hit_cost: what a cache hit costs, as a share of the compile that it saves.
        commit_hits, python_hits: hit rate of the next commit, and of a further Python of one commit.
        test_minutes: one wheel on one bare-metal Mac.
    """

    cores: int = 10
    core_minutes: float = 264.0
    serial_minutes: float = 6.0
    efficiency: float = 0.92
    hit_cost: float = 0.03
    commit_hits: float = 0.9
    python_hits: float = 0.8
    test_minutes: float = 12.0
    measured: tuple[str, ...] = ()

    def build_minutes(self, hits: float) -> float:
        """Return the wall minutes of one build of which the share `hits` comes from the compiler cache.

        >>> round(Costs(cores=10).build_minutes(0.0)), round(Costs(cores=10).build_minutes(0.9), 1)
        (35, 9.6)
        """
        work = self.core_minutes * (1 - hits + hits * self.hit_cost)
        return work / (self.cores * self.efficiency) + self.serial_minutes


def measured_costs(folder: Path, assumed: Costs) -> Costs:
    """Return the costs with what the receipts and records under `folder` measured in the assumed ones' place.

    A receipt's compile counts as cold work: its hits are taken out by the same formula that puts them in.

    Raises:
        UsageError: no such folder, or neither receipt nor record in it.
    """
    if not folder.is_dir():
        raise UsageError(f"--receipts {folder}: no such folder", hint="give a wheelhouse, or downloaded artifacts")
    receipts = [each for each in map(_receipt, sorted(folder.rglob("*.whl.receipt.json"))) if each is not None]
    records = [each for each in map(_record, sorted(folder.rglob("record.json"))) if each is not None]
    if not receipts and not records:
        raise UsageError(
            f"{folder} holds no receipt of a build (*.whl.receipt.json) and no record of a whole verification",
            hint="a wheelhouse has receipts, verify_mps --record DIR makes records",
        )
    changed: dict[str, Any] = {}
    if receipts:
        serial = median(minutes for _, minutes, _, _ in receipts)
        shares = [1 - hits + hits * assumed.hit_cost for _, _, _, hits in receipts]
        changed["serial_minutes"] = round(serial, 2)
        changed["core_minutes"] = round(
            median(
                compiled * jobs * assumed.efficiency / share
                for (compiled, _, jobs, _), share in zip(receipts, shares, strict=True)
            ),
            2,
        )
        changed["cores"] = round(median(jobs for _, _, jobs, _ in receipts))
        if warm := [hits for _, _, _, hits in receipts if hits > 0]:
            changed["commit_hits"] = round(median(warm), 3)
    if records:
        changed["test_minutes"] = round(median(records), 2)
    return replace(assumed, **changed, measured=tuple(changed))


class _Cache(BaseModel):
    hit_rate: float = Field(default=0.0, ge=0, le=1)


class _StepFacts(BaseModel):
    cache: _Cache | None = None


class _Step(BaseModel):
    step: str = ""
    seconds: float = Field(default=0.0, ge=0)
    facts: _StepFacts | None = None


class _Environment(BaseModel):
    MAX_JOBS: int = Field(default=1, ge=1, le=10_000)

    @field_validator("MAX_JOBS", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 6 else value  # a variable


class _Receipt(BaseModel):
    """What of a wheel's receipt tells its cost."""

    environment: _Environment = _Environment()
    steps: tuple[_Step, ...] = ()


class _Record(BaseModel):
    """What of a verification's record tells its cost."""

    partial: bool = False
    verdict: str | None = None
    seconds: float = Field(default=0.0, ge=0)


def _receipt(path: Path) -> tuple[float, float, int, float] | None:
    """Return (compile minutes, other minutes, jobs, hit rate); None for a receipt whose compile was skipped."""
    receipt = checked(load_json(path, hint=_HINT), _Receipt, name=str(path), what="receipt", hint=_HINT)
    steps = {step.step: step for step in receipt.steps}
    compiled = steps.get("compile_wheel")
    if compiled is None:
        raise UsageError(
            f"{path} is not a receipt of mps-build: no step compile_wheel",
            hint="check that it is the receipt of a wheel",
        )
    hits = compiled.facts.cache.hit_rate if compiled.facts and compiled.facts.cache else 0.0
    # Fetching and the venv are cached on a runner; configure and what follows the compile are paid each time.
    serial = sum(steps[name].seconds for name in ("configure", "finish_wheel") if name in steps)
    return (compiled.seconds / 60, serial / 60, receipt.environment.MAX_JOBS, hits) if compiled.seconds > 0 else None


def _record(path: Path) -> float | None:
    """Return a verification's minutes; None if it was cut short, or only rehearsed."""
    record = checked(load_json(path, hint=_HINT), _Record, name=str(path), what="record", hint=_HINT)
    if record.partial or record.verdict not in ("verified", "regressed", "known_issues_only"):
        return None
    return record.seconds / 60
