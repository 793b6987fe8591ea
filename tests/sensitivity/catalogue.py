"""The catalogue of bugs, and the injected faults that imitate them: faults/ has a file for each area."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FILES = tuple(sorted(path for path in (HERE / "faults").glob("*.py") if path.stem != "__init__"))
CATALOGUE = json.loads((HERE / "catalogue.json").read_text(encoding="utf-8"))
ENTRIES: list[dict[str, Any]] = CATALOGUE["entries"]
# Entries that the default budget is known to catch, at seed 0: it must go on. `judging.py --keep` writes them.
CAUGHT: list[str] = CATALOGUE["caught"]


def fault_of(issue: str) -> str:
    """Return the name of the fault that imitates an entry."""
    return "issue_" + issue.replace("-", "_")


def load_faults() -> dict[str, Any]:
    """Return the faults that holds each fault.

    Raises:
        ValueError: two files have a fault of one name.
    """
    found: dict[str, Any] = {}
    for path in FILES:
        faults = importlib.import_module(f"faults.{path.stem}").faults
        if double := sorted(set(faults.makers) & set(found)):
            raise ValueError(f"{path.name}: {', '.join(double)} stands in another file too")
        found.update(dict.fromkeys(faults.makers, faults))
    return found


def keep_caught(issues: Iterable[str]) -> None:
    """Write which entries the default budget catches."""
    entries = ",\n".join("  " + json.dumps(row) for row in ENTRIES)
    text = '{\n "entries": [\n' + entries + '\n ],\n "caught": ' + json.dumps(sorted(issues)) + "\n}\n"
    (HERE / "catalogue.json").write_text(text, encoding="utf-8")
