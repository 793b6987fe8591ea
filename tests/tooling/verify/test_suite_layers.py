"""Which files of the device suite a run asks, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.verify.suite.request import suite_files

SUITE = Path(__file__).resolve().parents[3] / "tests" / "device"


def test_the_drawn_cases_are_part_of_the_default_and_come_last() -> None:
    assert [path.name for path in suite_files(SUITE, ("drawn",))] == ["test_drawn.py"]
    every = suite_files(SUITE, ())
    assert every[-1].name == "test_drawn.py"
    assert every[0].name == "test_smoke.py"
    folders = [path.parent.name for path in every[1:-1]]
    assert folders == sorted(folders, key=["regressions", "scenarios"].index)
    assert set(every) == {*SUITE.rglob("test_*.py")}


def test_a_files_name_tells_it_from_all_others() -> None:
    names = [path.name for path in suite_files(SUITE, ())]
    assert len(names) == len(set(names))  # events and records name a file so


def test_a_layer_is_what_a_file_says_of_its_cases(tmp_path: Path) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "test_first.py").write_text('cases = Cases("smoke")\n')
    (tmp_path / "scenarios" / "test_second.py").write_text("def test_a(): pass\n")
    (tmp_path / "test_own_area.py").write_text("def test_b(): pass\n")

    assert [path.name for path in suite_files(tmp_path, ("smoke",))] == ["test_first.py"]
    assert [path.name for path in suite_files(tmp_path, ("own", "scenarios"))] == ["test_second.py", "test_own_area.py"]
    with pytest.raises(UsageError, match="no layer drawn") as caught:
        suite_files(tmp_path, ("drawn",))
    assert caught.value.hint == "layers: own, scenarios, smoke"
