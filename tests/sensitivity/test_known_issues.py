"""Every row of known_issues.yaml speaks of something that the suite has."""

from __future__ import annotations

import importlib.util
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from mps_build.common.known_issues import Issue, load_issues

import operators
import transforms

SUITE = Path(__file__).parents[1] / "device"
ROWS = load_issues(SUITE / "known_issues.yaml")


@pytest.fixture(scope="module")
def core() -> list[str]:
    """The ids of all cases that are not drawn."""
    found = []
    for path in sorted(SUITE.rglob("test_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(path.stem, module)
        spec.loader.exec_module(module)
        found += [case.id for case in module.cases.listed(full=True)]
    return found


def test_every_pattern_of_cases_names_one(core: list[str]) -> None:
    patterns = [(row.id, pattern) for row in ROWS for pattern in row.cases or ()]

    assert len(patterns) > 100
    assert [one for one in patterns if not any(fnmatchcase(case, one[1]) for case in core)] == []


@pytest.mark.parametrize("row", [row for row in ROWS if row.operators], ids=lambda row: str(row.id))
def test_a_row_of_drawn_cases_names_operators_and_what_is_drawn_of_them(row: Issue) -> None:
    every = operators.described()
    mine = {name: [one for one in every if fnmatchcase(one, name)] for name in row.operators or ()}

    assert [name for name, found in mine.items() if not found] == []
    for way in row.transformation or ():
        assert any(fnmatchcase(name, way) for name in transforms.known()), way
    for dtype in row.dtype or ():
        found = {
            str(one).removeprefix("torch.") for names in mine.values() for name in names for one in every[name].kinds
        }
        assert any(fnmatchcase(one, dtype.lstrip("!")) for one in found), dtype
    for factor in row.levels or ():
        drawn = {name.lstrip("@") for names in mine.values() for one in names for name, _ in every[one].factors}
        drawn |= {
            name.lstrip("@")
            for way in transforms.known().values()
            for names in mine.values()
            for one in names
            if way.applies(every[one])
            for name, _ in way.factors(every[one])
        }
        assert all(any(fnmatchcase(name, one) for name in drawn) for one in factor.split("|")), factor
