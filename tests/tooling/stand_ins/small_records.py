"""Records of a few cases."""

from __future__ import annotations

from mps_build.common.records.device_record import Case, Record, Torch


def record(*cases: Case, torch: str = "2.13.0", partial: bool = False) -> Record:
    return Record(
        tool="mps-build 0",
        statement="MPS on Apple M1.",
        verdict="verified",
        exit_code=0,
        partial=partial,
        device="mps",
        target={},
        torch=Torch(version=torch),
        started="2026-11-21T19:00:00+00:00",
        seconds=1.0,
        cases=cases,
    )


def case(name: str, outcome: str, share: float | None = None, seconds: float | None = None) -> Case:
    return Case(
        id=name,
        layer="layouts",
        outcome=outcome,  # type: ignore[arg-type]
        largest=share,
        bound=1.0 if share is not None else None,
        seconds=seconds,
        reason="off" if outcome == "failed" else None,
    )
