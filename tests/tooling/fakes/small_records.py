"""Records of a few cases, and facts of operators by hand."""

from __future__ import annotations

import json
from pathlib import Path

from mps_build.common.records.device_record import Case, Record, Torch
from mps_build.inspection.coverage.model import Facts, from_document
from mps_build.inspection.coverage.rules import Row


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


RECORDED = Path(__file__).parents[2] / "recorded" / "op_coverage"


def recorded(name: str) -> Facts:
    return from_document(json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8")), named=name)


def facts(label: str = "a", **registered: str) -> Facts:
    return Facts(
        label=label,
        kind="source",
        version="9.9",
        registered={key: frozenset(names.split()) for key, names in registered.items()},
    )


def statuses(rows: tuple[Row, ...]) -> dict[str, str]:
    return {row.name: row.status for row in rows}


def operator(name: str, overload: str, result: str, arguments: str, *, old: bool = False) -> str:
    """Return a struct as an _ops.h has it; `old` as up to 2.5."""
    constants = {"name": f"aten::{name}", "overload_name": overload}
    lines = [
        f'  STATIC_CONSTEXPR_STR_INL_EXCEPT_WIN_CUDA({key}, "{value}")'
        if old
        else f'  static constexpr const char* {key} = "{value}";'
        for key, value in constants.items()
    ]
    body = "\n".join(lines)
    return f"struct TORCH_API {name}_{overload} {{\n{body}\n  static {result} call({arguments});\n}};\n"
