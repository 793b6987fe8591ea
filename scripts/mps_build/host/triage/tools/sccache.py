"""sccache's statistics, as text (0.3 to 0.16) and as JSON, and why there are none."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mps_build.common.logs.text import clean_lines

from .facts import stated_fields

_LINE = re.compile(r"^(?P<label>[A-Z][\w/ -]{0,60}?)(?: \((?P<part>[^)]{0,60}\]?)\))? {2,90}(?P<value>\d{1,18})$")
_REASON = re.compile(r"^(?P<label>\S.{0,120}?) {2,90}(?P<value>\d{1,18})$")
_NAMED = re.compile(r"^(?P<label>Version \(client\)|Cache size|Max cache size) {2,}(?P<value>\S.*)$")
_NO_OPTION = re.compile(r"Found argument '[^']*' which wasn't expected|unexpected argument '[^']*' found")
_NO_SERVER = re.compile(r"sccache: error: (?:Server startup failed|Timed out waiting for server startup)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SccacheStats:
    """What sccache counted; executed = hits + misses + errors + failures. None: not printed."""

    requests: int | None = None
    executed: int | None = None
    hits: int | None = None
    misses: int | None = None
    errors: int | None = None
    not_cacheable: int | None = None
    non_compilation: int | None = None
    unsupported_compiler: int | None = None
    compile_failures: int | None = None
    write_errors: int | None = None
    reasons: Mapping[str, int] = field(default_factory=dict)
    hits_by: Mapping[str, int] = field(default_factory=dict)
    version: str | None = None
    cache_size: str | None = None
    error: str | None = None
    service: str | None = None
    temporary: bool | None = None
    cause: str | None = None

    def facts(self) -> dict[str, Any]:
        """Return what was printed, by the names of README-logs."""
        return {"tool": "sccache", **stated_fields(self)}


_LABELS = {
    "Compile requests": "requests",
    "Compile requests executed": "executed",
    "Cache hits": "hits",
    "Cache misses": "misses",
    "Cache errors": "errors",
    "Cache write errors": "write_errors",
    "Compilation failures": "compile_failures",
    "Non-cacheable calls": "not_cacheable",
    "Non-compilation calls": "non_compilation",
    "Unsupported compiler calls": "unsupported_compiler",
}


def parse_sccache(text: str) -> SccacheStats | None:
    """Return the statistics in the text, or what kept them away; None if it speaks of neither."""
    lines = [line.text for line in clean_lines(text)]
    if found := _of_json("\n".join(lines)) or _of_table(lines):
        return found
    prose = " ".join(lines)
    if _NO_SERVER.search(prose):
        service = re.search(r"\bservice: (\w+)", prose)
        return SccacheStats(
            error="server-startup-failed",
            service=service[1] if service else None,
            temporary=True if "(temporary)" in prose else None,
            cause="N10",
        )
    if _NO_OPTION.search(prose) and "sccache" in prose:
        return SccacheStats(error="option unknown")
    return None


def _of_table(lines: list[str]) -> SccacheStats | None:
    counts: dict[str, int] = {}
    parts: dict[str, int] = {}
    reasons: dict[str, int] = {}
    named: dict[str, str] = {}
    in_reasons = False
    for line in lines:
        if not line:
            in_reasons = in_reasons and not reasons
        elif line == "Non-cacheable reasons:":
            in_reasons = True
        elif in_reasons and (match := _REASON.match(line)):
            reasons[match["label"]] = int(match["value"])
        elif match := _LINE.match(line):
            if match["part"] is None and match["label"] in _LABELS:
                counts[_LABELS[match["label"]]] = int(match["value"])
            elif match["label"] == "Cache hits":
                parts[match["part"] or ""] = int(match["value"])
        elif match := _NAMED.match(line):
            named[match["label"]] = match["value"].strip()
    if "requests" not in counts:
        return None
    if not counts.get("write_errors"):
        counts.pop("write_errors", None)
    return SccacheStats(
        **counts,  # type: ignore[arg-type]  # the names of _LABELS are all counts
        reasons=reasons if sum(reasons.values()) == counts.get("not_cacheable") else {},
        hits_by=parts if _is_whole(parts, counts.get("hits")) else {},
        version=named.get("Version (client)"),
        cache_size=named.get("Cache size"),
    )


def _is_whole(parts: Mapping[str, int], hits: int | None) -> bool:
    """Whether the lines by language tell more than their one sum, and tell it all."""
    return sum(parts.values()) == hits and (len(parts) > 1 or any("[" in part for part in parts))


def _of_json(text: str) -> SccacheStats | None:
    start = text.find('{"stats":')
    if start < 0:
        return None
    try:
        document, _ = json.JSONDecoder().raw_decode(text[start:])
        stats = document["stats"]
        return SccacheStats(
            requests=stats["compile_requests"],
            executed=stats["requests_executed"],
            hits=sum(stats["cache_hits"]["counts"].values()),
            misses=sum(stats["cache_misses"]["counts"].values()),
            errors=sum(stats["cache_errors"]["counts"].values()),
            not_cacheable=stats["requests_not_cacheable"],
            non_compilation=stats["requests_not_compile"],
            unsupported_compiler=stats["requests_unsupported_compiler"],
            compile_failures=stats["compile_fails"],
            write_errors=stats["cache_write_errors"] or None,
            reasons=dict(stats["not_cached"]),
            version=document.get("version"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
