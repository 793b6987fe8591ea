"""From the rows and their doubts to one verdict and one exit code."""

from __future__ import annotations

from collections.abc import Sequence

from mps_build.common.errors import DeviceUnusable, Regressed
from mps_build.common.records.benchmark import BAD, Flag, Row

from ..verdict import Judged
from .measuring import Measured

END_OF_INTERRUPTION = Judged(
    verdict="not_verified",
    exit_code=130,
    cause="interrupted",
    message="interrupted",
    hint="run the same command again to measure the missing rows",
)


def judge(rows: Sequence[Row], flags: Sequence[Flag], measured: Measured, *, device: str, plant: str | None) -> Judged:
    """Return the verdict of a run that reached its end: `verified` stands for measured, `regressed` for doubtful."""
    bad = [row for row in rows if row.outcome in BAD]
    doubted = bad or (plant and is_caught(rows, flags, measured))
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
    return Judged(verdict="verified" if device == "mps" and not plant else "rehearsed")


def is_caught(rows: Sequence[Row], flags: Sequence[Flag], measured: Measured) -> bool:
    """Say whether there is a doubt that a plant can have caused: one that comes before its first hit is another's."""
    doubtful = [row.id for row in rows if row.flags or row.outcome in BAD]
    return any(measured.hits_by_row.get(row) != 0 for row in doubtful) or bool(flags and measured.plant_hits != 0)


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
