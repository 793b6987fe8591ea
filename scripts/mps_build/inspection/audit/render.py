"""An audit as lines for a person: the verdict, the findings by rule, a table of facts. Prints nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from ...common.console import human_bytes
from ...common.plain_text import plain
from .model import Audit, Finding
from .releases import TORCH_CPU
from .rules import ALL
from .rules.binaries import is_openmp

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


def rules_table() -> str:
    """Return every rule as a Markdown table, as docs/inspect/audit.md shows it."""
    rows = ["| rule | level | judged | holds for | why |", "|---|---|---|---|---|"]
    for rule in ALL:
        judged = "whole files" if rule.needs_full else "headers"
        rows.append(
            f"| {rule.id} | {rule.level} | {judged} | {'torch' if rule.torch_only else 'any'} | {rule.reason} |"
        )
    return "\n".join(rows)


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
