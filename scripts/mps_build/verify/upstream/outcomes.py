"""What came of each test: JSON lines in a folder, which a later run goes on with. The last line of a test counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.files import open_to_append
from mps_build.common.json_text import parse_json

_ERROR = re.compile(r"[\w.]*(?:Error|Exception|Success|Failed)\b(?!: Caused by sample input)")
_MARGIN = re.compile(r"^E\s+")  # of pytest's long form
BAD = ("failed", "crashed", "timeout")
GOOD = ("passed", "xfailed")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamOutcome:
    """One test: its id below upstream's `test` folder; `xfailed` is a failure that the test itself expects."""

    id: str
    outcome: str
    reason: str = ""
    seconds: float = 0.0

    @property
    def file(self) -> str:
        """The file below upstream's `test` folder."""
        return self.id.partition("::")[0]

    @property
    def error(self) -> str:
        """The line of its reason that says most: the last exception but PyTorch's `Caused by sample input`."""
        lines = [_MARGIN.sub("", line) for line in self.reason.splitlines() if line.strip()]
        errors = [line for line in lines if _ERROR.match(line)]
        return (errors or lines or [""])[-1]

    @property
    def group(self) -> str:
        """The class."""
        return self.id.split("::")[1] if "::" in self.id else ""


def read_outcomes(folder: Path) -> dict[str, UpstreamOutcome]:
    """Return the outcomes in a folder by id; a line that a crash cut is passed over."""
    found: dict[str, tuple[float, UpstreamOutcome]] = {}
    for event in _events(folder, "finished"):
        test, when = _test(event), float(event.get("time") or 0.0)
        if test.id not in found or when >= found[test.id][0]:
            found[test.id] = when, test
    return {test_id: test for test_id, (_, test) in found.items()}


def read_sizes(folder: Path) -> dict[str, int]:
    """Return how many tests each file has, of which the outcomes may be a part."""
    sizes: dict[str, int] = {}
    for event in _events(folder, "collected"):
        for file, count in dict(event.get("files") or {}).items():
            sizes[file] = max(sizes.get(file, 0), int(count))
    return sizes


def write_outcome(path: Path, test: UpstreamOutcome, when: float) -> None:
    """Append the outcome of a test that could not say it itself."""
    facts = {"id": test.id, "outcome": test.outcome, "reason": test.reason, "seconds": test.seconds, "time": when}
    with open_to_append(path) as file:
        file.write(json.dumps({"event": "finished", **facts}).encode() + b"\n")


def _events(folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            try:
                event = parse_json(line, finite=False)
            except ValueError:
                continue
            if isinstance(event, dict) and event.get("event") == kind:
                yield event


def _test(event: Mapping[str, object]) -> UpstreamOutcome:
    seconds = event.get("seconds")
    return UpstreamOutcome(
        id=str(event.get("id")),
        outcome=str(event.get("outcome")),
        reason=str(event.get("reason") or ""),
        seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
    )
