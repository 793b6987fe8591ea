"""Records of a few cases, and facts of operators by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


def found_row(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "library": "metal_basic", "body": "b", "outcome": "passed", "reason": "", **more}


WRONG_KERNEL = found_row(
    "remainder_dense_float_float",
    outcome="wrong",
    operator="remainder",
    reason="9 of 4099 elements differ from torch (remainder): got -1.5e-05, expected 0.0999851",
    inputs={"case": "4099 elements", "x": "1000.0", "y": "0.1"},
    where={"got": "-1.5e-05"},
    reference={
        "form": "expression",
        "name": "remainder",
        "expression": "torch.remainder(x, y)",
        "dtype": "float32",
        "types": {"x": "float32", "y": "float32"},
    },
    bound_ulp=2.0,
    max_ulp=8000000.0,
    cpu_ulp=0.5,
    profile=[0.0] * 32 + [5.0] * 32,
)


def kernels_record(*rows: dict[str, Any], version: str = "2.15.0") -> dict[str, Any]:
    counts = {"kernels": len(rows), "compiled": len(rows), "bound": 1, "run": 1}
    return {
        "target": f"torch-{version}.whl",
        "torch": version,
        "verdict": "findings",
        "seed": 3,
        "coverage": counts,
        "libraries": {"metal_basic": counts},
        "kernels": list(rows),
    }
