"""A test of many rows tries all of them, and names each that fails."""

from __future__ import annotations

import pytest
from rows import for_each


def test_all_rows_are_tried_and_those_that_fail_are_named() -> None:
    tried = []

    @for_each([(1, "a"), (2, "b"), (3, "c")], name=lambda row: f"row {row[1]}")
    def check(number: int, _: str) -> None:
        tried.append(number)
        assert number == 2
        assert number < 3, "too large"

    with pytest.raises(pytest.fail.Exception) as failed:
        check()

    assert tried == [1, 2, 3]
    said = str(failed.value)
    assert said.startswith("2 of 3 rows: row a, row c\n")
    assert "assert 1 == 2" in said
    assert check.__name__ == "check"


def test_no_rows_are_no_success() -> None:
    with pytest.raises(AssertionError, match="there are no rows"):
        for_each([])(lambda row: None)()


def test_a_row_that_skips_is_a_fault_and_ends_no_other() -> None:
    tried = []

    @for_each(range(2))
    def check(number: int) -> None:
        tried.append(number)
        if number == 0:
            pytest.skip("not here")

    with pytest.raises(pytest.fail.Exception, match="1 of 2 rows: 0\n"):
        check()
    assert tried == [0, 1]
