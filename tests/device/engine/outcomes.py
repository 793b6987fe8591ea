"""What is said of each case: one JSON line an event."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any, Callable

from .cases import Case
from .known import KnownIssue


def _output_bytes() -> int | None:
    """Return how much this process has written, if to a file: the driver ascribes a GPU's fault text by it."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        facts = os.fstat(2)
    except OSError:
        return None
    return facts.st_size if stat.S_ISREG(facts.st_mode) else None


class OutcomeLog:
    """Appends events to a file; without a file it keeps silent."""

    def __init__(self, path: Path | None) -> None:
        self._file = None if path is None else path.open("ab", buffering=0)

    def write(self, event: str, **facts: Any) -> None:
        """Append one line and hand it to the system."""
        if self._file is not None:
            line = json.dumps({"event": event, **facts, "output_bytes": _output_bytes()})
            self._file.write(f"{line}\n".encode())

    def started(self, case: Case) -> None:
        """Say that a case begins: if nothing follows, it crashed or hung."""
        self.write("started", id=case.id, layer=case.layer, issue=list(case.issues), limit_seconds=case.limit_seconds)

    @property
    def read_by_a_driver(self) -> bool:
        """Say whether somebody reads the events, and so may start another process."""
        return self._file is not None

    def finished(
        self, case: Case, outcome: str, reason: str, error: dict[str, float], seconds: float, **facts: Any
    ) -> None:
        """Say what came of a case."""
        self.write(
            "finished",
            id=case.id,
            layer=case.layer,
            issue=list(case.issues),
            outcome=outcome,
            reason=reason,
            error=error,
            seconds=round(seconds, 4),
            **facts,
        )


def judge(failed: bool, issue: KnownIssue | None, is_ours: Callable[[], bool] = lambda: False) -> str:
    """Return the outcome of a case that ran, in the light of what is known; `is_ours`: the suite itself failed.

    >>> judge(True, None), judge(True, KnownIssue("1", ("a",), "fails")), judge(False, KnownIssue("1", ("a",), "fails"))
    ('failed', 'known', 'unexpected_pass')
    """
    if failed:
        return "known" if issue is not None else "own_fault" if is_ours() else "failed"
    return "unexpected_pass" if issue is not None and issue.outcome != "flaky" else "passed"
