"""Heat and power as the declared probes tell them: asked between rows, never while one is timed."""

from __future__ import annotations

import platform
from typing import Any

from mps_build.host.probes.observation import observations, values
from mps_build.host.probes.probers import LiveProber
from mps_build.host.probes.table import probes_for

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
