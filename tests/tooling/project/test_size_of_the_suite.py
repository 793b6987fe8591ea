"""The device suite is read by people: how many files, lines and bytes it may have (issue 51)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

SUITE = Path(__file__).parents[2] / "device"
MOST_FILES, MOST_LINES, MOST_BYTES = 120, 25_000, 1_500_000
MOST_FILES_OF_A_FOLDER, MOST_BYTES_OF_DATA = 40, 150_000


@pytest.fixture(name="files", scope="module")
def _files() -> list[Path]:
    made = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
    return [path for path in SUITE.rglob("*") if path.is_file() and not made & set(path.parts)]


def test_the_suite_is_as_large_as_a_person_can_hold(files: list[Path]) -> None:
    texts = [path.read_bytes() for path in files]

    assert 60 < len(files) <= MOST_FILES
    assert sum(text.count(b"\n") for text in texts) <= MOST_LINES
    assert sum(map(len, texts)) <= MOST_BYTES


def test_no_folder_of_the_suite_is_a_heap(files: list[Path]) -> None:
    folders = Counter(path.parent for path in files)

    assert {str(folder): count for folder, count in folders.items() if count > MOST_FILES_OF_A_FOLDER} == {}


def test_the_suite_stores_nothing_that_it_can_make(files: list[Path]) -> None:
    data = {path.name: path.stat().st_size for path in files if path.suffix not in (".py", ".md")}

    assert {name: size for name, size in data.items() if size > MOST_BYTES_OF_DATA} == {}
