"""Which files hold chosen cases, and how many: one import of torch instead of one a file, and a total to reach."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from mps_build.common.process import capture

from .driver import SuiteRequest, suite_command

_SECONDS = 300.0
# A test in pytest's `--collect-only -q`: a case is known by its parameter, or by its name where it has none.
_TEST = re.compile(r"^(?P<file>\S.*\.py)::(?P<name>\w+)(?:\[(?P<parameter>.*)\])?$")


def collect(request: SuiteRequest) -> Mapping[Path, tuple[str, ...]] | None:
    """Return the chosen cases of each file; None where that cannot be told (each file then speaks for itself)."""
    request.folder.mkdir(parents=True, exist_ok=True)
    known = request.folder / "known.json"
    known.write_text("[]", encoding="utf-8")
    outcomes = request.folder / "collection.jsonl"
    command = suite_command(replace(request, plant=None), request.files, known=known, outcomes=outcomes)
    answer = capture(replace(command, argv=(*command.argv, "--collect-only")), timeout_seconds=_SECONDS)
    (request.folder / "collection.log").write_text(answer.stdout + answer.stderr, encoding="utf-8")
    if answer.exit not in (0, 5) or not outcomes.exists():
        return None
    events = [json.loads(line) for line in outcomes.read_text(encoding="utf-8").splitlines()]
    ids = {case for event in events if event.get("event") == "collected" for case in event["ids"]}
    return parse_collection(answer.stdout, request.files, ids)


def parse_collection(text: str, files: tuple[Path, ...], ids: Collection[str]) -> dict[Path, tuple[str, ...]]:
    """Return the cases that pytest listed of each file, in the order of `files`; a file without any is left out."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if (match := _TEST.match(line)) and (case := match["parameter"] or match["name"]) in ids:
            found.setdefault(Path(match["file"]).name, []).append(case)
    return {file: tuple(found[file.name]) for file in files if file.name in found}
