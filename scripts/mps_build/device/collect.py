"""Which files hold chosen cases, and how many: one import of torch instead of one a file, and a total to reach."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..process import capture
from .suite import SuiteRequest, suite_command

_SECONDS = 300.0
# A case in pytest's `--collect-only -q`; a test without a parameter is none.
_CASE = re.compile(r"^(?P<file>\S.*\.py)::\w+\[.+\]$")


def collect(request: SuiteRequest) -> Mapping[Path, int] | None:
    """Return how many chosen cases each file holds; None where that cannot be told (each then speaks for itself)."""
    request.folder.mkdir(parents=True, exist_ok=True)
    known = request.folder / "known.json"
    known.write_text("[]", encoding="utf-8")
    asked = replace(request, plant=None)
    command = suite_command(asked, request.files, known=known, outcomes=request.folder / "collection.jsonl")
    answer = capture(replace(command, argv=(*command.argv, "--collect-only")), timeout_seconds=_SECONDS)
    (request.folder / "collection.log").write_text(answer.stdout + answer.stderr, encoding="utf-8")
    if answer.exit not in (0, 5):
        return None
    return parse_collection(answer.stdout, request.files)


def parse_collection(text: str, files: tuple[Path, ...]) -> dict[Path, int]:
    """Return the files that pytest counted cases in, in the order of `files`."""
    found = Counter(Path(match["file"]).name for line in text.splitlines() if (match := _CASE.match(line)))
    return {file: found[file.name] for file in files if file.name in found}
