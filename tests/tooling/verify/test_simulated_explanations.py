"""Why cases fail on the simulated device: which row explains which case, the page, and the repository's own rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.common.records.device_record import Case, Simulated
from mps_build.verify.explanations import (
    Explanation,
    active_explanations,
    load_explanations,
    summed_up,
    with_explanation,
)
from mps_build.verify.reports.findings_page import findings_page

_ROW = "  - {id: %s, letter: limit, title: t, reason: r, cases: [x], says: '%s'}\n"


def test_a_bug_without_a_link_needs_lines_and_a_script(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    row = "schema_version: 1\nexplanations:\n  - {id: a, letter: bug, title: t, reason: r, cases: [x]}\n"
    path.write_text(row)

    with pytest.raises(UsageError, match="public link, or lines of the host code and a script"):
        load_explanations(path)
    path.write_text(
        row.replace("reason: r", "reason: r, lines: ['operations/BitwiseOps.mm:12-20'], script: 'import torch'")
    )
    assert len(load_explanations(path)) == 1
    assert load_explanations(tmp_path / "none.yaml") == ()


def test_two_rows_of_one_id_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    row = "  - {id: a, letter: limit, title: t, reason: r, cases: [x]}\n"
    path.write_text(f"schema_version: 1\nexplanations:\n{row}{row}")

    with pytest.raises(UsageError, match="more than one row has the id a"):
        load_explanations(path)


def test_only_what_fails_is_explained_and_a_skipped_case_is_not_stale(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text(
        "schema_version: 1\nexplanations:\n  - {id: a, letter: limit, title: t, reason: r, cases: ['x*']}\n"
    )
    rows = active_explanations(load_explanations(path), Simulated(release="2.6.0", macos="15.2"))
    outcomes = {"x1": "failed", "x2": "passed", "x3": "skipped", "x4": "timeout", "y": "failed"}
    cases = [Case(id=name, layer="l", outcome=outcome) for name, outcome in outcomes.items()]  # type: ignore[arg-type]

    found = summed_up([with_explanation(case, rows) for case in cases], rows)

    # A hang is news where a failure is explained.
    assert found.model_dump() == {"bug": 0, "limit": 1, "suite": 0, "unexplained": 2, "stale": ("x2",)}


def test_a_crash_is_explained_by_a_row_that_says_so_alone(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    row = "  - {id: a, letter: limit, title: t, reason: r, outcome: crashes, cases: ['x*']}\n"
    path.write_text(f"schema_version: 1\nexplanations:\n{row}")
    rows = load_explanations(path)
    outcomes = {"x1": "crashed", "x2": "timeout", "x3": "failed"}
    cases = [Case(id=name, layer="l", outcome=outcome) for name, outcome in outcomes.items()]  # type: ignore[arg-type]

    assert [with_explanation(case, rows).is_new for case in cases] == [False, False, True]


@pytest.mark.parametrize(
    ("reason", "named"),
    [
        ("Mismatch: out.late: wrong", "late"),
        ("Mismatch: out.late: wrong\nout.put: wrong\nand 3 more", "late"),
        ("Mismatch: out.put: wrong\nout.late: wrong", "put"),
        ("Mismatch: out.cpu: wrong", None),
        ("Mismatch: out.late: wrong\nout.cpu: wrong", None),
        (None, None),
    ],
)
def test_a_row_that_quotes_explains_a_case_whose_every_line_some_row_quotes(
    tmp_path: Path, reason: str | None, named: str | None
) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("schema_version: 1\nexplanations:\n" + _ROW % ("late", r"out\.late") + _ROW % ("put", r"out\.put"))

    case = with_explanation(Case(id="x", layer="l", outcome="failed", reason=reason), load_explanations(path))

    assert (case.explained.id if case.explained else None, case.is_new) == (named, named is None)


def test_what_a_row_quotes_must_be_a_regular_expression(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("schema_version: 1\nexplanations:\n" + _ROW % ("a", "out("))

    with pytest.raises(UsageError, match="not a regular expression"):
        load_explanations(path)


def test_the_page_counts_cases_and_shows_lines_and_scripts() -> None:
    bug = Explanation(
        id="order",
        letter="bug",
        title="a | b",
        macos=">=15",
        reason="r",
        lines=("aten/src/ATen/native/mps/operations/BitwiseOps.mm:229-232",),
        script="assert d\n",
        cases=("x", "y"),
    )
    rows = (
        bug,
        Explanation(id="selector", letter="limit", title="l", reason="r", cases=("z",)),
        Explanation(id="fixed", letter="suite", title="s", reason="r", cases=("v",)),
    )
    figure = {"name": "simulation.limits_share", "median": 0.01, "unit": "share", "command": "c", "date": "d"}

    page = findings_page(rows, [figure], release="2.6.0")

    assert "| 14.4 | 0 by 0 | 1 by 1 |" in page
    assert "| 15.2 | 2 by 1 | 1 by 1 |" in page
    assert "1 cases failed by 1 faults of the suite" in page
    assert "| order | a \\| b | >=15 | `BitwiseOps.mm:229-232` | 2 | r |" in page
    assert "### order\n\n```python\nassert d\n```" in page
    assert "| simulation.limits_share | 0.01 share |" in page


def test_the_repositorys_own_explanations_hold() -> None:
    rows = load_explanations(Path(__file__).parents[2] / "device" / "simulated_explanations.yaml")

    assert rows
    for row in rows:
        assert row.letter != "bug" or row.link or row.script, row.id
        assert not row.script or compile(row.script, row.id, "exec")
