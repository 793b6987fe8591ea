"""The catalogue of bugs, and the plants that imitate them: plants/ has a file for each area of the device suite."""

from __future__ import annotations

import fnmatch
import importlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from device_suite.cases import Case

HERE = Path(__file__).resolve().parent
FILES = tuple(sorted(path for path in (HERE / "plants").glob("*.py") if path.stem != "__init__"))
CATALOGUE = json.loads((HERE / "catalogue.json").read_text(encoding="utf-8"))
ENTRIES: list[dict[str, Any]] = CATALOGUE["entries"]
# A sample is what was searched and planted at one time. One that was written blind was judged before any case was
# written for it: the share of it that was caught says how sensitive the suite was then.
SAMPLES: dict[str, dict[str, Any]] = CATALOGUE["samples"]
# Plants of a blind sample that no case catches yet, each with what it lacks: a case takes its row away.
WAITING: dict[str, str] = CATALOGUE["waiting"]
MUST = {row["issue"] for row in ENTRIES if row["tier"] in ("A", "B")} - set(WAITING)
_SHOWN_BY = {row["issue"]: tuple(row.get("cases", ())) for row in ENTRIES}


def plant_of(issue: str) -> str:
    """Return the name of the plant that imitates an entry."""
    return "issue_" + issue.replace("-", "_")


def load_plots() -> dict[str, Any]:
    """Return the plot that holds each plant.

    Raises:
        ValueError: two files have a plant of one name.
    """
    found: dict[str, Any] = {}
    for path in FILES:
        plot = importlib.import_module(f"plants.{path.stem}").plot
        if twice := sorted(set(plot.makers) & set(found)):
            raise ValueError(f"{path.name}: {', '.join(twice)} stands in another file too")
        found.update(dict.fromkeys(plot.makers, plot))
    return found


def plants_of(samples: Iterable[str] = (), *, blind: bool = False) -> set[str]:
    """Return the names of the plants of these samples, or of all that were written blind.

    Raises:
        ValueError: there is no such sample.
    """
    wanted = set(samples)
    if unknown := sorted(wanted - set(SAMPLES)):
        raise ValueError(f"no such sample: {', '.join(unknown)}; there are {', '.join(SAMPLES)}")
    if blind:
        wanted |= {name for name, sample in SAMPLES.items() if sample["blind"]}
    return {plant_of(row["issue"]) for row in ENTRIES if row.get("sample") in wanted}


def cases_of(issue: str, cases: Iterable[Case]) -> list[Case]:
    """Return the cases that name the issue, and those of the conditions that its entry names."""
    patterns = _SHOWN_BY[issue]
    return [
        case for case in cases if issue in case.issues or any(fnmatch.fnmatchcase(case.id, one) for one in patterns)
    ]
