"""A heading of a build, which says so where its receipts spared all of the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mps_build.common.console import Console
from mps_build.common.receipts import Ledger


@contextmanager
def shown_step(console: Console, ledger: Ledger, title: str) -> Iterator[None]:
    """Open a heading; what is done inside and was up to date is said to be."""
    before = len(ledger.receipts)
    with console.step(title):
        yield
        done = ledger.receipts[before:]
        if done and all(receipt.skipped for receipt in done):
            console.line("up to date")
