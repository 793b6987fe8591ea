"""Every row of known_issues.yaml speaks of what the suite has: its cases, operators, transformations and levels."""

from __future__ import annotations

import json
import os
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from mps_build.common.known_issues import Issue, load_issues

SUITE = Path(__file__).parents[2] / "device"
PYTHON = os.environ.get("MPS_BUILD_TEST_TORCH") or os.environ.get("MPS_BUILD_TORCH_PYTHON") or ""
ROWS = load_issues(SUITE / "known_issues.yaml")
# What the suite has, as the torch of PYTHON sees it: names, and of each operator its dtypes and factors.
LIST = """
import importlib.util, json, pathlib, sys
sys.path.insert(0, sys.argv[1])
import operators, transforms
cases = []
for path in sorted(pathlib.Path(sys.argv[1]).rglob("test_*.py")):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    cases += [case.id for case in module.cases.listed(full=True)]
every, ways = operators.described(), transforms.known()
def factors(one):
    found = [name for name, _ in one.factors]
    return found + [name for way in ways.values() if way.applies(one) for name, _ in way.factors(one)]
print(json.dumps({"cases": cases, "transformations": list(ways), "operators": {
    name: {"dtypes": [str(dtype)[6:] for dtype in one.kinds], "factors": [name.lstrip("@") for name in factors(one)]}
    for name, one in every.items()}}))
"""
pytestmark = pytest.mark.skipif(not PYTHON, reason="needs a Python with torch: nox -s tests -- --tier torch")


@pytest.fixture(scope="module")
def suite() -> dict[str, Any]:
    done = subprocess.run(
        (PYTHON, "-W", "ignore", "-c", LIST, str(SUITE)), check=True, capture_output=True, text=True, timeout=600
    )
    names: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return names


def _unknown(patterns: tuple[str, ...] | None, names: list[str]) -> list[str]:
    return [one for one in patterns or () if not any(fnmatchcase(name, one.lstrip("!")) for name in names)]


def _faults(row: Issue, suite: dict[str, Any]) -> list[str]:
    mine = [
        one for name, one in suite["operators"].items() if any(fnmatchcase(name, each) for each in row.operators or ())
    ]
    factors = [factor for one in mine for factor in one["factors"]]
    named = tuple(factor for names in row.levels or () for factor in names.split("|"))
    return [
        *_unknown(row.cases, suite["cases"]),
        *_unknown(row.operators, list(suite["operators"])),
        *_unknown(row.transformation, suite["transformations"]),
        *_unknown(row.dtype, [dtype for one in mine for dtype in one["dtypes"]]),
        *_unknown(named, factors),
    ]


def test_what_a_row_names_is_there(suite: dict[str, Any]) -> None:
    assert len(suite["operators"]) > 500 and len(suite["cases"]) > 500
    assert {row.id: found for row in ROWS if (found := _faults(row, suite))} == {}


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"cases": ["issue-0-*"]}, "issue-0-*"),
        ({"operators": ["soft_max"]}, "soft_max"),
        ({"operators": ["softmax"], "transformation": ["layouts"]}, "layouts"),
        ({"operators": ["softmax"], "dtype": ["float33"]}, "float33"),
        ({"operators": ["softmax"], "levels": {"layout*|no_such": ["!dense"]}}, "no_such"),
    ],
)
def test_a_name_that_is_not_there_is_found(changed: dict[str, Any], fault: str, suite: dict[str, Any]) -> None:
    row = {"id": "1", "title": "t", "lines": ["a.mm"], "outcome": "fails", "reason": "r", **changed}

    assert _faults(Issue.model_validate(row), suite) == [fault]
