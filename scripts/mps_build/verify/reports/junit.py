"""A record as JUnit XML, for the services that read nothing else."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from mps_build.common.records.verification import Case, Record

from .words import by_layer, headline, sentence

# What XML 1.0 cannot hold in any form; a crash may write anything.
_UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(record: Record) -> str:
    """Return the record as JUnit XML: known issues are skipped tests, and "not verified" is an error."""
    root = ElementTree.Element("testsuites", name="verify_mps", time=f"{record.seconds:.3f}")
    for layer, cases in by_layer(record.cases).items():
        suite = ElementTree.SubElement(root, "testsuite", name=layer, timestamp=record.started, tests=str(len(cases)))
        suite.set("failures", str(sum(case.outcome == "failed" for case in cases)))
        suite.set("errors", str(sum(case.outcome in ("crashed", "timeout") for case in cases)))
        suite.set("skipped", str(sum(case.outcome in ("skipped", "known") for case in cases)))
        suite.set("time", f"{sum(case.seconds or 0.0 for case in cases):.3f}")
        for case in cases:
            _add_case(suite, case)
    suite = ElementTree.SubElement(root, "testsuite", name="verdict", tests="1", timestamp=record.started)
    _properties(suite, record)
    verdict = ElementTree.SubElement(suite, "testcase", classname="verify_mps", name="verdict")
    without = record.verdict == "not_verified"
    suite.set("failures", "0")
    suite.set("errors", "1" if without else "0")
    suite.set("skipped", "0")
    if without:
        error = ElementTree.SubElement(
            verdict, "error", type=record.cause or "not_verified", message=(headline(record))
        )
        error.text = sentence(record)
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(child.get(key, "0")) for child in root)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + _clean(ElementTree.tostring(root, encoding="unicode")) + "\n"


def _add_case(suite: ElementTree.Element, case: Case) -> None:
    element = ElementTree.SubElement(
        suite, "testcase", classname=(case.layer), name=(case.id), time=f"{case.seconds or 0.0:.3f}"
    )
    reason = case.reason or ""
    if case.outcome == "failed":
        ElementTree.SubElement(element, "failure", message=reason[:300], type="failed").text = reason
    elif case.outcome in ("crashed", "timeout"):
        ElementTree.SubElement(element, "error", message=reason[:300], type=case.outcome).text = reason
    elif case.outcome == "known":
        ElementTree.SubElement(element, "skipped", message=(f"known issue {case.known_issue or ''}: {reason}"[:300]))
    elif case.outcome == "skipped":
        ElementTree.SubElement(element, "skipped", message=reason[:300])
    elif case.outcome == "unexpected_pass":
        ElementTree.SubElement(element, "system-out").text = f"passed, though {case.known_issue} is a known issue"


def _properties(suite: ElementTree.Element, record: Record) -> None:
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (
        ("statement", record.statement),
        ("verdict", record.verdict),
        ("partial", str(record.partial).lower()),
        ("torch", record.torch.version),
        ("commit", record.torch.commit),
        ("device", record.device),
        ("macos", record.host.get("macos")),
        ("chip", record.host.get("chip")),
    ):
        if value:
            ElementTree.SubElement(properties, "property", name=name, value=(str(value)))


def _clean(text: str) -> str:
    return _UNWRITABLE.sub("\ufffd", text)
