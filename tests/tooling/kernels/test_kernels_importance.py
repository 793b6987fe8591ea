"""Findings are shown by what they mean to a user: races and ordinary inputs first, then accuracy, then extremes."""

from __future__ import annotations

from typing import Any

from mps_build.kernels.report import page, repro


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


def test_an_issue_of_a_race_explains_threads_addresses_and_the_missing_barrier() -> None:
    row = _row("cummin_innermost_float", "known", {})

    text = repro.render_issue({"torch": "2.15.0", "seed": 0}, row, "print()", "repro.py")

    assert all(word in text for word in ("threads 127 and 31 meet at byte 8", "without a barrier", "**Cause**"))
    older = repro.render_issue({"torch": "2.6.0", "seed": 0}, row, "print()", "repro.py")
    assert "**Cause**" not in older
