"""Results as JUnit XML, for the services that read nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

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
