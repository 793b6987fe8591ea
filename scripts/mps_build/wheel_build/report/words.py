"""A build's times in words and rows, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .analysis import Group, Times
from .levers import Lever

FOLDERS_SHOWN = 15


def human(seconds: float) -> str:
    """Return a duration as a person reads it.

    >>> human(4.25), human(754), human(7300)
    ('4.2 s', '12 min 34 s', '2 h 01 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def share_of(part: float, whole: float) -> str:
    """Return a share in whole percents; what is less than one is not nothing.

    >>> share_of(30, 60), share_of(0.1, 60), share_of(0, 60), share_of(1, 0)
    ('50%', '<1%', '0%', '')
    """
    if not whole:
        return ""
    return "<1%" if 0 < part < whole / 100 else f"{part / whole:.0%}"


def headline(times: Times) -> str:
    """Return the figure that a person asks for first."""
    runs = f" in {len(times.runs)} runs" if len(times.runs) > 1 else ""
    return f"{human(times.wall)} of ninja{runs}"


def sentence(times: Times) -> str:
    """Return how well the cores were used, and what no number of cores would shorten."""
    parts = [f"{human(times.busy)} of steps, {times.mean_busy:.2f} at once on average, {times.jobs} at most"]
    if times.critical is None:
        parts.append("the critical path is unknown without build.ninja")
    else:
        chain = times.critical_seconds or 0.0
        parts.append(f"the longest chain of steps that wait for each other takes {human(chain)}")
    if times.again:
        parts.append(f"{human(times.again)} was spent on steps that were run again later")
    return "; ".join(parts)


def phase_rows(groups: Sequence[Group], whole: float) -> list[tuple[str, str, str, str, str]]:
    """Return name, steps, seconds, share of all steps, and the longest step."""
    return [
        (
            group.name,
            str(group.steps),
            human(group.seconds),
            share_of(group.seconds, whole),
            f"{short(group.slowest)} {human(group.longest)}",
        )
        for group in groups
    ]


def folder_rows(times: Times) -> list[tuple[str, str, str, str, str]]:
    """Return the folders whose compiles take longest, the rest as one row."""
    shown, rest = times.folders[:FOLDERS_SHOWN], times.folders[FOLDERS_SHOWN:]
    rows = phase_rows(shown, times.busy)
    if rest:
        steps, seconds = sum(group.steps for group in rest), sum(group.seconds for group in rest)
        rows.append((f"{len(rest)} more folders", str(steps), human(seconds), share_of(seconds, times.busy), ""))
    return rows


def lever_rows(found: Sequence[Lever], wall: float) -> list[tuple[str, str, str, str, str]]:
    """Return lever, saving, share of the wall time, how to get it, and where the figure is from."""
    return [
        (
            lever.name,
            "not measured" if lever.saves is None else human(lever.saves),
            "" if lever.saves is None else share_of(lever.saves, wall),
            lever.how,
            lever.source,
        )
        for lever in found
    ]


# Which part of a build each step of ours is, by the name of its receipt.
_AREAS = {
    "fetch_source": "source",
    "apply_patches": "source",
    "create_environment": "environment",
    "build_runtime": "environment",
    "configure": "configure",
    "compile_wheel": "compile",
    "repair_wheel": "packing",
    "finish_wheel": "packing",
    "deliver_wheel": "packing",
    "audit_wheel": "audit",
}


def step_rows(steps: Sequence[tuple[str, float]]) -> list[tuple[str, str, str]]:
    """Return part of the build, step and time, for the steps that our receipts tell."""
    return [(_AREAS.get(name.partition("-")[0], ""), name, human(seconds)) for name, seconds in steps]


def short(output: str) -> str:
    """Return an output's last part, which names it well enough in a table."""
    return output.rstrip("/").rpartition("/")[2]


def document(times: Times, found: Sequence[Lever]) -> dict[str, Any]:
    """Return the figures as JSON."""
    critical = None
    if times.critical is not None:
        critical = {
            "seconds": round(times.critical_seconds or 0.0, 3),
            "steps": [{"output": step.name, "seconds": round(step.seconds, 3)} for step in times.critical],
        }
    return {
        "wall_seconds": round(times.wall, 3),
        "step_seconds": round(times.busy, 3),
        "mean_busy": round(times.mean_busy, 3),
        "most_at_once": times.jobs,
        "runs": [{"wall_seconds": wall, "step_seconds": round(busy, 3), "steps": n} for wall, busy, n in times.runs],
        "phases": [group.document() for group in times.phases],
        "compile_folders": [group.document() for group in times.folders],
        "slowest": [
            {"output": each.slowest, "phase": each.name, "seconds": round(each.seconds, 3)} for each in times.slowest
        ],
        "made_again_seconds": round(times.again, 3),
        "critical_path": critical,
        "scheduled_seconds": {str(jobs): round(wall, 3) for jobs, wall in times.scheduled.items()},
        "levers": [lever.document() for lever in found],
    }
