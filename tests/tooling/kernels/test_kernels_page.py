"""The page of a run: an atlas of errors, and the gravest findings first."""

from __future__ import annotations

from typing import Any

from mps_build.kernels.report import page
from small_records import WRONG_KERNEL, found_row, kernels_record


def test_the_atlas_has_a_column_and_a_line_for_each_release() -> None:
    newer = kernels_record(
        WRONG_KERNEL, found_row("exp_dense_half_half", operator="exp", family="unary_dense_ilp", profile=[0.5] * 64)
    )
    older = kernels_record({**WRONG_KERNEL, "max_ulp": 4.0}, version="2.14.1")

    found = page.entries([newer, older])
    text = page.render([newer, older])

    assert [(each.function, each.kind, each.errors) for each in found] == [
        ("exp", "half", (0.0, None)),
        ("remainder", "float", (8000000.0, 4.0)),
    ]
    assert found[0].inputs == "all 65,536 values"
    assert text.count("<polyline") == 3
    assert "<th>2.15.0</th><th>2.14.1</th>" in text
    assert "libm" in text
    assert "<td>8e+06</td><td>4</td>" in text


def test_the_page_shows_what_was_found_and_escapes_it() -> None:
    hostile = found_row("<b>k</b>", outcome="wrong", reason="<script>alert(1)</script>")

    text = page.render([kernels_record(hostile, {**hostile, "library": "metal_40"})])

    assert "<script>alert" not in text
    assert text.count("&lt;b&gt;k&lt;/b&gt;") == 1


def _row(name: str, outcome: str, inputs: dict[str, str], got: str = "1.0", want: str = "2.0") -> dict[str, Any]:
    where = {"got": got, "want": want}
    return {"name": name, "library": "b", "outcome": outcome, "reason": "r", "inputs": inputs, "where": where}


def test_the_page_shows_the_gravest_finding_first() -> None:
    rows = [
        _row("extreme", "wrong", {"x": "-3.0", "y": "-inf"}),
        _row("close", "wrong", {"x": "0.25"}, "0.9990", "0.9989"),
        _row("ordinary", "wrong", {"x": "1000.0", "y": "0.1"}),
        _row("race", "race", {}),
        _row("tiny", "wrong", {"x": "(1e-30+2j)"}),
        _row("old", "known", {"x": "1.0"}),
    ]
    counts = {"kernels": 6, "compiled": 6, "bound": 6, "run": 6}
    document = {"target": "w", "verdict": "findings", "coverage": counts, "libraries": {"b": counts}, "kernels": rows}

    text = page.render([document])

    names = ["race", "ordinary", "close", "extreme", "tiny", "old"]
    assert sorted(names, key=lambda name: text.index(f"<code>{name}</code>")) == names
