"""Which files of the device suite a run asks."""

from __future__ import annotations

from pathlib import Path

from mps_build.verify.suite.files import suite_files

SUITE = Path(__file__).resolve().parents[3] / "tests" / "device"


def test_the_drawn_cases_are_asked_by_name_alone() -> None:
    assert [path.name for path in suite_files(SUITE, ("drawn",))] == ["test_drawn.py"]
    every = {path.name for path in suite_files(SUITE, ())}
    assert "test_drawn.py" not in every
    assert len(every) > 100
