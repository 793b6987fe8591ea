"""An audit in its forms: lines for a person, a JSON document, SARIF and JUnit XML. Prints nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from ...common.console import human_bytes
from ...common.exchange import JunitCase, SarifResult, junit, sarif
from ...common.plain_text import plain
from ..limits import Malformed
from .contents import Contents, Metallib
from .macho import FILE_TYPES, MachO, format_version
from .model import Audit, BinaryFacts, Finding, WheelFacts
from .releases import TORCH_CPU
from .rules import ALL
from .rules.binaries import is_openmp
from .rules.torch import count_dispatch_headers
from .symbols import Exports

AT_MPS = tuple(b"__Z" + kind + b"2at3mps" for kind in (b"N", b"NK", b"TVN", b"TIN", b"TSN"))


def describe_facts(facts: WheelFacts) -> dict[str, Any]:
    """Return the facts, those of a quick audit without what only a full one reads."""
    name = facts.name
    document: dict[str, Any] = {
        "file": facts.file,
        "size": facts.size,
        "distribution": facts.distribution,
        "version": name.version if name else None,
        "build": name.build if name else None,
        "python": name.python if name else None,
        "abi": name.abi if name else None,
        "platform": name.platform if name else None,
        "wheel_tags": list(facts.wheel.get("tag", ())),
        "generator": next(iter(facts.wheel.get("generator", ())), None),
        "requires_python": next(iter(facts.metadata.get("requires-python", ())), None),
        "requires_dist": list(facts.metadata.get("requires-dist", ())),
        "git_version": facts.git_version,
        "members": len(facts.archive.members),
        "uncompressed": sum(member.size for member in facts.archive.members),
        "record_rows": len(facts.record),
        "mps_dispatch_headers": count_dispatch_headers(facts),
        "macho": {name: _binary(binary) for name, binary in sorted(facts.binaries.items())},
    }
    contents = facts.contents(TORCH_CPU)
    if contents:
        document["torch"] = _torch(contents)
    return document


def _binary(binary: BinaryFacts) -> dict[str, Any]:
    document: dict[str, Any] = {"kind": binary.kind, "size": binary.size, "mode": f"{binary.mode:#o}"}
    if binary.malformed:
        document["malformed"] = binary.malformed
    if binary.macho:
        document |= _header(binary.macho)
    if binary.contents:
        document |= _signature(binary.contents)
        document["metallibs"] = {name: _metallib(metallib) for name, metallib in binary.contents.metallibs.items()}
    return document


def _header(macho: MachO) -> dict[str, Any]:
    return {
        "cpu": macho.cpu_name,
        "type": FILE_TYPES.get(macho.file_type, str(macho.file_type)),
        "uuid": macho.uuid,
        "platform": macho.platform,
        "minos": format_version(macho.minos),
        "sdk": format_version(macho.sdk),
        "tools": [[tool, version] for tool, version in macho.tools],
        "id": macho.install_name,
        "deps": [[dependency.path, dependency.kind] for dependency in macho.dependencies],
        "rpaths": list(macho.rpaths),
        "signed": "signature" in macho.linkedit,
        "metal_sections": {
            section.name: section.size
            for section in macho.sections
            if section.segment == "__TEXT" and section.name.startswith("metal_")
        },
        "exported": macho.symbols.exported[1] if macho.symbols else 0,
        "undefined": macho.symbols.undefined[1] if macho.symbols else 0,
    }


def _signature(contents: Contents) -> dict[str, Any]:
    if contents.signature is None:
        return {}
    best = contents.signature.strongest
    return {
        "signature": {
            "identifier": best.identifier,
            "team": best.team,
            "flags": f"{best.flags:#x}",
            "ad_hoc": contents.signature.is_ad_hoc,
            "hash": best.hash_name,
            "page_size": best.page_size,
            "pages": best.page_count,
            "code_limit": best.code_limit,
            "bad_pages": contents.bad_pages,
        }
    }


def _metallib(metallib: Metallib) -> dict[str, Any]:
    header = metallib.header
    return {
        "size": metallib.section_size,
        "os": format_version(header.os_version) if header else None,
        "platform": f"{header.platform:#x}" if header else None,
        "functions": len(metallib.functions) if metallib.functions is not None else None,
        "fault": metallib.fault,
    }


def _torch(contents: Contents) -> dict[str, Any]:
    return {
        "commit": contents.commit,
        "cxx_compiler": contents.cxx_compiler,
        "cxx_flags": list(contents.cxx_flags),
        "exported_at_mps": _count_of(contents.exports, AT_MPS),
        "imported_kmpc": sum(name.startswith(b"___kmpc") for name in contents.undefined),
        "imported_omp": sum(name.startswith(b"_omp_") for name in contents.undefined),
        "metal_sources": contents.metal_sources,
    }


def _count_of(exports: Exports, prefixes: tuple[bytes, ...]) -> int | None:
    try:
        return exports.count(*prefixes)
    except Malformed:
        return None


MOST_SHOWN, MOST_VALUE = 6, 500
KINDS = {
    "aot": "Metal kernels precompiled",
    "jit": "Metal kernels compiled at first use",
    "off": "no Metal back end",
    "generic": "generic rules",
}
Line = tuple[str, str | None]
"""A line and its style."""


def verdict_line(audit: Audit) -> Line:
    """Return the one line that says it all."""
    errors = sum(finding.level == "error" for finding in audit.findings)
    warnings = len(audit.findings) - errors
    counts = f"{_count(errors, 'error')}, {_count(warnings, 'warning')}"
    depth = ", headers only" if audit.quick else ""
    style = "bold green" if audit.verdict == "accepted" else "bold red"
    return f"{audit.verdict}: {counts} (profile {audit.profile}{depth}; {KINDS[audit.kind]})", style


def finding_lines(findings: Sequence[Finding], *, width: int) -> Iterator[Line]:
    """Yield each broken rule with its reason, and below it where and how it shows."""
    styles = {"error": "red", "warning": "yellow"}
    order = {"error": 0, "warning": 1}
    ordered = sorted(findings, key=lambda finding: order[finding.level])
    for (level, rule, reason), group in groupby(ordered, key=lambda each: (each.level, each.rule, each.reason)):
        hits = list(group)
        head = f"{level:<7}  {rule:<3}  "
        for line in textwrap.wrap(reason, width - len(head)) or [""]:
            yield head + line, styles[level]
            head = " " * len(head)
        for finding in hits[:MOST_SHOWN]:
            yield from _place_lines(finding, indent=len(head), width=width)
        if len(hits) > MOST_SHOWN:
            yield f"{' ' * len(head)}and {len(hits) - MOST_SHOWN} more (--json FILE lists all)", "dim"


def fact_rows(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a person wants to know of the wheel, as name and value."""
    binaries: Mapping[str, Mapping[str, Any]] = document["macho"]
    torch: Mapping[str, Any] = document.get("torch", {})
    size, unpacked = human_bytes(document["size"]), human_bytes(document["uncompressed"])
    rows = [
        ("wheel", str(document["file"])),
        ("version", f"{document['distribution']} {document['version'] or '?'}"),
        ("commit", str(document["git_version"] or "unknown")),
        ("Python", _python(document)),
        ("platform", str(document["platform"] or "?")),
        ("size", f"{size}, {unpacked} unpacked, {document['members']} files"),
        ("made by", str(document["generator"] or "?")),
    ]
    minima = [each["minos"] for each in binaries.values() if each.get("minos")]
    if minima:
        newest = max(minima, key=lambda text: tuple(map(int, text.split("."))))
        rows.append(("binaries", f"{len(binaries)}, for macOS {newest} and newer"))
    main = binaries.get(TORCH_CPU, {})
    if main.get("sdk"):
        tools = ", ".join(f"ld {version}" for tool, version in main.get("tools", ()) if tool == 3)
        rows.append(("SDK", f"macOS {main['sdk']}" + (f" ({tools})" if tools else "")))
    rows += _metal_rows(binaries)
    for name, binary in binaries.items():
        if is_openmp(name):
            rows.append(("OpenMP", f"{name}, for macOS {binary.get('minos') or '?'} and newer"))
    if torch:
        kernels = f"{torch['exported_at_mps']} symbols of at::mps, {document['mps_dispatch_headers']} dispatch headers"
        rows.append(("MPS", kernels))
        rows.append(("compiler", str(torch["cxx_compiler"] or "unknown")))
    return [(name, printable(value[:MOST_VALUE])) for name, value in rows]


def _metal_rows(binaries: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for name, binary in binaries.items():
        read = binary.get("metallibs", {})
        for section, size in binary.get("metal_sections", {}).items():
            facts = read.get(section, {})
            parts = [human_bytes(size)]
            if facts.get("os"):
                parts = [f"macOS {facts['os']}", f"{facts['functions']} kernels", *parts]
            where = "" if name == TORCH_CPU else f" in {name}"
            yield section, ", ".join(parts) + where


def _place_lines(finding: Finding, *, indent: int, width: int) -> Iterator[Line]:
    member, evidence = printable(finding.member or ""), printable(finding.evidence)
    text = f"{member}: {evidence}" if member else evidence
    pad = " " * indent
    if len(pad) + len(text) <= width or not member:
        yield from ((pad + line, None) for line in _wrap(text, width - indent))
        return
    yield f"{pad}{member}:", None
    yield from ((f"{pad}  {line}", None) for line in _wrap(evidence, width - indent - 2))


def printable(text: str) -> str:
    """Return text of a stranger's file as a terminal may have it: without escape sequences.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return plain(text).replace("\n", "\\n").replace("\t", "\\t")


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False) or [text]


def _python(document: Mapping[str, Any]) -> str:
    tag = f"{document['python'] or '?'}-{document['abi'] or '?'}"
    wanted = document["requires_python"]
    return f"{tag} (requires {wanted})" if wanted else tag


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def as_sarif(audit: Audit, *, exit_code: int) -> str:
    """Return the findings as SARIF; a member of the wheel is a path below the wheel's name."""
    file = str(audit.facts_document["file"])
    results = [
        SarifResult(
            rule=each.rule,
            level=each.level,
            text=f"{each.reason}: {each.evidence}",
            place=f"{file}/{each.member}" if each.member else file,
        )
        for each in audit.findings
    ]
    return sarif(results, {rule.id: rule.reason for rule in ALL}, command="audit_wheel", exit_code=exit_code)


def as_junit(audit: Audit) -> str:
    """Return a testcase for each rule that found something, and for the verdict: warnings alone fail none."""
    cases = []
    for rule in dict.fromkeys(each.rule for each in audit.findings):
        hits = [each for each in audit.findings if each.rule == rule]
        text = "\n".join([hits[0].reason, *(f"{each.member or ''}: {each.evidence}" for each in hits)])
        is_error = any(each.level == "error" for each in hits)
        cases.append(
            JunitCase(suite=f"profile {audit.profile}", name=rule, outcome="failed", text=text)
            if is_error
            else JunitCase(suite=f"profile {audit.profile}", name=rule, note=text)
        )
    rejected = audit.verdict != "accepted"
    verdict = JunitCase(
        suite="verdict",
        name="verdict",
        outcome="failed" if rejected else "passed",
        kind="audit_rejected",
        text=f"{audit.facts_document['file']}: {audit.verdict}" if rejected else "",
    )
    return junit("audit_wheel", [*cases, verdict])
