"""Findings as SARIF 2.1.0, the form in which GitHub and editors show the findings of a static analysis."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from .. import __version__
from .json_text import to_json
from .plain_text import plain

_MOST = 5000  # what GitHub takes of one run is 25,000 results; it shows 5,000
Level = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SarifResult:
    """One finding.

    Args:
        place: the file that it is in, as a relative path: SARIF has no place without one.
        name: the thing in that file, such as a kernel; "" for the file itself.
        known: where it is written up as a known issue; such a result is suppressed.
    """

    rule: str
    level: Level
    text: str
    place: str
    name: str = ""
    known: str = ""


def sarif(results: Sequence[SarifResult], rules: Mapping[str, str], *, command: str, exit_code: int) -> str:
    """Return the document; `rules` says in a sentence what each rule holds."""
    driver = {
        "name": f"mps-build {command}",
        "version": __version__,
        "rules": [{"id": rule, "shortDescription": {"text": _text(text)}} for rule, text in rules.items()],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": exit_code in (0, 9, 10, 11), "exitCode": exit_code}],
        "results": [_result(each) for each in results[:_MOST]],
    }
    return to_json({"version": "2.1.0", "runs": [run]})


def _result(result: SarifResult) -> dict[str, Any]:
    uri = quote(result.place.replace("\\", "/"), safe="/")
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}}
    if result.name:
        location["logicalLocations"] = [{"fullyQualifiedName": _text(result.name)}]
    # The same finding of the next run is the same alert, whatever its figures.
    mark = hashlib.sha256(f"{result.rule}\0{result.place}\0{result.name}".encode("utf-8", "replace")).hexdigest()
    found: dict[str, Any] = {
        "ruleId": result.rule,
        "level": result.level,
        "message": {"text": _text(result.text)},
        "locations": [location],
        "partialFingerprints": {"finding/v1": mark[:32]},
    }
    if result.known:
        found["suppressions"] = [{"kind": "external", "justification": _text(f"a known issue: {result.known}")}]
    return found


def _text(text: str) -> str:
    return plain(text) or "-"
