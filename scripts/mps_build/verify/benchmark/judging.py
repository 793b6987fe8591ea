"""From the rows and their doubts to one verdict; which rows there are, and what heat and power say of them."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from mps_build.common.errors import DeviceUnusable, Regressed, UsageError
from mps_build.common.records.benchmark import BAD, Flag, Row
from mps_build.host.probes.probers import LiveProber, observations, values
from mps_build.host.probes.table import probes_for

from ..verdict import Judged, not_exercised
from .measuring import Measured

# benchmarks/device/device_benchmark/workloads.py has the rows themselves, and needs torch to say which: a test compares
# the two.
_MODELS = ("resnet50", "vgg16", "decoder", "bert")
_KERNELS = ("matmul", "matmul_bf16", "conv", "attention", "layer_norm")
_COPIES = tuple(f"copy_{way}_{size}" for size in ("4kB", "1MB", "256MB") for way in ("in", "out"))
ROWS = (
    *(f"{name}:kernel" for name in (*_KERNELS, *_COPIES)),
    *(f"{name}:{mode}" for mode in ("inference", "training") for name in _MODELS),
    "largest_batch:memory",
)


def check_rows(only: Sequence[str]) -> None:
    """Refuse a name that is no row's (`bert:training`) and no group's (`bert`).

    Raises:
        UsageError: there is one; all such are named, with the nearest that there are.
    """
    names = dict.fromkeys([*(row.partition(":")[0] for row in ROWS), *ROWS])
    unknown = [name for name in only if name not in names]
    if unknown:
        near = dict.fromkeys(match for name in unknown for match in get_close_matches(name, names, n=2))
        meant = f"did you mean {', '.join(near)}? " if near else ""
        there = ", ".join(name for name in names if ":" not in name)
        raise UsageError(f"no row {', '.join(unknown)}", hint=f"{meant}rows: {there}; or one's mode: bert:training")


NOT_RECORDED = "not recorded"
_PROBES = frozenset({"thermal", "thermal_pressure", "battery", "low_power"})
_FACTS = ("cpu_speed_limit", "thermal_pressure", "power_source", "battery_percent", "low_power_mode")


def thermal_state() -> dict[str, Any] | str:
    """Return what this machine says of heat and power; `not recorded` where it has no such probe.

    Without root there is no more: powermetrics, which knows the GPU's clock, is for root alone.
    """
    probes = [probe for probe in probes_for(platform.system()) if probe.name in _PROBES]
    if not probes:
        return NOT_RECORDED
    prober = LiveProber()
    prober.ask(probes)
    rows = observations(prober)
    known = set(values(rows, "throttled"))
    throttled = next((value for value in (True, False, "unknown") if value in known), None)
    return {"throttled": throttled, **{fact: next(values(rows, fact), None) for fact in _FACTS}}


def thermal_notes(states: list[dict[str, Any] | str]) -> list[str]:
    """Return what a reader of the ratios must know of heat and power.

    >>> thermal_notes([{"throttled": False, "power_source": "battery"}, "not recorded"])
    ['on battery: times may be longer than on a charger']
    """
    known = [state for state in states if isinstance(state, dict)]
    notes = []
    hot = [state for state in known if state.get("throttled") is True]
    limits = [state["cpu_speed_limit"] for state in hot if state.get("cpu_speed_limit") is not None]
    pressures = [state["thermal_pressure"] for state in hot if state.get("thermal_pressure")]
    if pressures:
        notes.append(f"the system was too hot during the run (thermal pressure {max(pressures)} of 4)")
    if limits:
        notes.append(f"the system throttled the CPU during the run (to {min(limits)} % of its speed)")
    if any(state.get("power_source") == "battery" for state in known):
        notes.append("on battery: times may be longer than on a charger")
    if any(state.get("low_power_mode") for state in known):
        notes.append("in low power mode: times are longer than without it")
    return notes


END_OF_INTERRUPTION = Judged(
    verdict="not_verified",
    exit_code=130,
    cause="interrupted",
    message="interrupted",
    hint="run the same command again to measure the missing rows",
)


def judge(rows: Sequence[Row], flags: Sequence[Flag], measured: Measured, *, device: str, fault: str | None) -> Judged:
    """Return the verdict of a run that reached its end: `verified` stands for measured, `regressed` for doubtful."""
    bad = [row for row in rows if row.outcome in BAD]
    doubted = bad or (fault and is_caught(rows, flags, measured))
    if doubted:
        names = ", ".join(row.id for row in bad) or "drift alone"
        return Judged(
            verdict="regressed",
            exit_code=Regressed.exit_code,
            cause=Regressed.cause,
            message=f"not reliable: {names}",
            hint="`nox -s verify_mps` says which operators are wrong" if any(_is_wrong(row) for row in bad) else None,
        )
    if not rows:
        reasons = {str(facts.get("reason")) for facts in measured.rows.values()}
        return Judged(
            verdict="not_verified",
            exit_code=DeviceUnusable.exit_code,
            cause=DeviceUnusable.cause,
            message=f"no row could be measured: {'; '.join(sorted(reasons)) or 'none was chosen'}",
            hint="close other programs; on a small machine choose rows with --only, or take --quick",
        )
    if fault and measured.fault_hits == 0:
        return not_exercised(fault, "row")
    return Judged(verdict="verified" if device == "mps" and not fault else "rehearsed")


def is_caught(rows: Sequence[Row], flags: Sequence[Flag], measured: Measured) -> bool:
    """Say whether the injected fault can have caused a doubt: one that comes before its first hit is another's."""
    doubtful = [row.id for row in rows if row.flags or row.outcome in BAD]
    return any(measured.hits_by_row.get(row) != 0 for row in doubtful) or bool(flags and measured.fault_hits != 0)


def run_flags(measured: Measured) -> tuple[Flag, ...]:
    """Return the doubts about the run as a whole: the same small product grew slower from row to row."""
    return tuple(
        Flag(
            id="drift",
            text=f"the same product, timed before each row, became {beats['growth']:.0%} slower during the run: "
            "heat, or another program",
        )
        for beats in measured.sentinel
        if beats["drift"]
    )


def _is_wrong(row: Row) -> bool:
    return any(flag.id == "wrong_result" for flag in row.flags)
