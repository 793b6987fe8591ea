"""One test for all rows of a table: pytest's own work for a test of each takes longer than most rows do."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from typing import Any

import pytest

_SHOWN = 10


def for_each(
    rows: Iterable[Any], name: Callable[[Any], str] = lambda row: repr(row)[:120]
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make one test of a function that checks a row (a tuple is its arguments): all are tried, each fault is named.

    Args:
        name: what a row is called where it fails.
    """
    table = list(rows)

    def decorate(check: Callable[..., None]) -> Callable[[], None]:
        assert not hasattr(check, "pytestmark"), "a mark stands above for_each"

        def test() -> None:
            assert table, "there are no rows"
            faults = {}
            for row in table:
                try:
                    check(*(row if isinstance(row, tuple) else (row,)))
                except (Exception, pytest.skip.Exception) as error:  # a row that skips would end the others by itself
                    faults[name(row)] = "".join(traceback.format_exception(error)[1:])
            if faults:
                said = "\n".join(f"--- {each}\n{text}" for each, text in list(faults.items())[:_SHOWN])
                pytest.fail(f"{len(faults)} of {len(table)} rows: {', '.join(faults)}\n{said}", pytrace=False)

        # Not functools.wraps: pytest would take the arguments of what is wrapped for fixtures.
        test.__name__, test.__qualname__ = check.__name__, check.__qualname__
        test.__doc__, test.__module__ = check.__doc__, check.__module__
        return test

    return decorate
