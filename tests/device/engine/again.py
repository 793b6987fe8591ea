"""`python -m engine.again CASE`: one drawn case as a short script, as JSON; shrunk on a device where that is there."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch

import operators
import transforms

from . import findings, trial
from .faults import FaultError, InjectedFault
from .runs import Bench
from .sampler import Case
from .selection import prepare_device
from .states import Refused


def main(argv: list[str] | None = None) -> int:
    """Return 0 where the answer was written, which may be a refusal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case")
    parser.add_argument("--device", default="")
    parser.add_argument("--named", default="mps", help="the device that the script asks where none is named")
    parser.add_argument("--inject", dest="fault", default="")
    parser.add_argument("--finding", default="", help="what the record says that the case comes down to: JSON")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--or-record", action="store_true", help="without the device, or where it is right: the record")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(argv)
    try:
        case = Case.of(options.case)
        operator, way = operators.described()[case.operator], transforms.known()[case.transformation]
    except (KeyError, ValueError):
        found: dict[str, Any] = {"refused": "this suite has no such operator or transformation"}
    else:
        found = _on_device(case, operator, way, options)
        if "script" not in found and options.or_record:
            found = _of_record(case, operator, way, options)
    options.output.write_text(json.dumps(found), encoding="utf-8")
    return 0


def _on_device(case: Case, operator: Any, way: Any, options: argparse.Namespace) -> dict[str, Any]:
    try:
        device = prepare_device(options.device)
        torch.ones(1, device=device)
        fault = InjectedFault(options.fault) if options.fault else None
    except (ValueError, FaultError, RuntimeError, AssertionError, ImportError) as missing:
        return {"missing": str(missing)}
    bench = Bench(device, around=fault.maker if fault else None)
    try:
        trial.make(case, operator, way, bench)
    except trial.Wrong as wrong:
        found = findings.found(wrong, way, bench, options.seconds)
        return _stated(found.finding, found.brief, options.device)
    except Refused as refused:
        return {"refused": str(refused)}
    return {"refused": f"{options.device} answers it right"}


def _of_record(case: Case, operator: Any, way: Any, options: argparse.Namespace) -> dict[str, Any]:
    bench = Bench(torch.device("cpu"))
    try:
        if options.finding:
            finding = json.loads(options.finding)
            call = findings.call_of(finding, operator, way)
        else:
            call = trial.prepared(case, operator, way, bench)[0][0]
            finding = {"operator": case.operator, "transformation": case.transformation, "levels": {}}
        finding["dtype"] = str(call.levels["@dtype"])
        return _stated({**finding, **findings.script_of(call, way, bench, options.named)}, "", "")
    except (KeyError, TypeError, ValueError, AttributeError) as damaged:
        return {"refused": f"the record's finding is of another version: {damaged}"}
    except Exception as raised:
        return {"refused": f"the CPU raises {type(raised).__name__}: {raised}"}


def _stated(finding: dict[str, Any], effect: str, device: str) -> dict[str, Any]:
    if not finding["script"]:
        return {"refused": str(finding["no_script"])}
    levels = dict(finding["levels"])
    levels.pop("@dtype", None)
    dtype = str(finding["dtype"]).replace("torch.", "")
    condition = ", ".join([str(finding["transformation"]), *(f"{k.lstrip('@')}={v}" for k, v in levels.items())])
    facts = {"operator": str(finding["operator"]), "dtype": dtype, "condition": condition, "effect": effect}
    return {**facts, "script": finding["script"], "ran_on": device}


if __name__ == "__main__":
    sys.exit(main())
