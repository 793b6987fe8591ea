"""Results in the forms that other tools read: JUnit XML, and SARIF 2.1.0 for GitHub and editors."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote
from xml.etree import ElementTree

from .. import __version__
from .json_text import to_json
from .plain_text import plain

# What XML 1.0 cannot hold in any form; a crash may write anything.
_UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JunitCase:
    """One testcase; `text` says why it did not pass, `note` what else is to be said of one that did."""

    suite: str
    name: str
    outcome: Literal["passed", "failed", "error", "skipped"] = "passed"
    kind: str = ""
    text: str = ""
    note: str = ""
    seconds: float = 0.0


def junit(
    name: str,
    cases: Iterable[JunitCase],
    *,
    seconds: float | None = None,
    started: str | None = None,
    properties: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the document: a suite for each `suite` of the cases; every count is of testcases.

    Args:
        properties: facts of the whole; the last suite holds them.
    """
    suites: dict[str, list[JunitCase]] = {}
    for case in cases:
        suites.setdefault(case.suite, []).append(case)
    root = ElementTree.Element("testsuites", name=name)
    _count(root, [case for members in suites.values() for case in members])
    root.set(
        "time", f"{sum(case.seconds for each in suites.values() for case in each) if seconds is None else seconds:.3f}"
    )
    for number, (title, members) in enumerate(suites.items(), 1):
        suite = ElementTree.SubElement(root, "testsuite", name=title)
        _count(suite, members)
        suite.set("time", f"{sum(case.seconds for case in members):.3f}")
        if started:
            suite.set("timestamp", started)
        if properties and number == len(suites):
            held = ElementTree.SubElement(suite, "properties")
            for key, value in properties:
                ElementTree.SubElement(held, "property", name=key, value=value)
        for case in members:
            _add(suite, case)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + _UNWRITABLE.sub("\ufffd", text) + "\n"


def _count(element: ElementTree.Element, cases: Sequence[JunitCase]) -> None:
    element.set("tests", str(len(cases)))
    for key, outcome in (("failures", "failed"), ("errors", "error"), ("skipped", "skipped")):
        element.set(key, str(sum(case.outcome == outcome for case in cases)))


def _add(suite: ElementTree.Element, case: JunitCase) -> None:
    element = ElementTree.SubElement(
        suite, "testcase", classname=case.suite, name=case.name, time=f"{case.seconds:.3f}"
    )
    if case.outcome == "passed":
        if case.note:
            ElementTree.SubElement(element, "system-out").text = case.note
        return
    inner = ElementTree.SubElement(element, _ELEMENTS[case.outcome], message=case.text[:300])
    if case.outcome != "skipped":
        inner.set("type", case.kind or case.outcome)
        inner.text = case.text


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
