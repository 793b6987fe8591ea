"""The statistics of ccache (`ccache -s` since 4.0, `-sv`, `--print-stats`) and of sccache (text from 0.3 on, JSON)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from mps_build.common.logs.text import clean_lines


def stated_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a frozen value that say something: no None, no empty mapping."""
    facts = {field.name: getattr(value, field.name) for field in fields(value)}
    return {
        name: dict(each) if isinstance(each, dict) else each
        for name, each in facts.items()
        if each is not None and each != {}
    }


# A number, not a version: `PyTorch version: 2.9.1` has the shape of a statistic.
_NUMBERED = re.compile(
    r"^(?P<indent> *)(?P<label>[A-Za-z][^:]*):\s+(?P<first>\d{1,15}(?:\.\d{1,6})?)"
    r"(?: */ *(?P<second>\d{1,15}(?:\.\d{1,6})?))?(?![\d.])"
)
_SECTION = re.compile(r"^(?P<label>[A-Z][A-Za-z ]+):\s*$")
_RAW = re.compile(r"^(?P<key>[a-z_]+)\t(?P<value>\d{1,18})$")
_ERROR = re.compile(r"^ccache: (?:error: )?(?P<what>unrecognized option|invalid option|.+)")
_STORAGES = {"Local storage", "Remote storage", "Primary storage", "Secondary storage"}
_UNCACHEABLE = [
    "autoconf_test",
    "bad_compiler_arguments",
    "bad_input_file",
    "called_for_link",
    "called_for_preprocessing",
    "compile_failed",
    "compiler_produced_empty_output",
    "compiler_produced_no_output",
    "compiler_produced_stdout",
    "could_not_use_modules",
    "could_not_use_precompiled_header",
    "disabled",
    "multiple_source_files",
    "no_input_file",
    "output_to_stdout",
    "preprocessor_error",
    "recache",
    "unsupported_code_directive",
    "unsupported_compiler_option",
    "unsupported_environment_variable",
    "unsupported_source_language",
]
_ERRORS = [
    "bad_output_file",
    "compiler_check_failed",
    "could_not_find_compiler",
    "error_hashing_extra_file",
    "internal_error",
    "missing_cache_file",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CcacheStats:
    """What ccache counted; None: not printed."""

    calls: int | None = None
    cacheable: int | None = None
    direct: int | None = None
    preprocessed: int | None = None
    hits: int | None = None
    misses: int | None = None
    uncacheable: int | None = None
    errors: int | None = None
    files: int | None = None
    size_gb: float | None = None
    size_gib: float | None = None
    size_kib: int | None = None
    max_gb: float | None = None
    max_gib: float | None = None
    remote_hits: int | None = None
    remote_misses: int | None = None
    uncacheable_by: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None

    def facts(self) -> dict[str, Any]:
        """Return what was printed, by the names of README-logs."""
        return {"tool": "ccache", **stated_fields(self)}


def parse_ccache(text: str) -> CcacheStats | None:
    """Return the statistics in the text; None if it holds none."""
    lines = [line.text for line in clean_lines(text)]
    raw = {match["key"]: int(match["value"]) for line in lines if (match := _RAW.match(line))}
    if "cache_miss" in raw:
        return _of_raw(raw)
    if found := _of_4(lines):
        return found
    error = next((match for line in lines if (match := _ERROR.match(line))), None)
    return CcacheStats(error=error["what"]) if error else None


def _of_raw(raw: Mapping[str, int]) -> CcacheStats:
    direct, preprocessed = raw.get("direct_cache_hit"), raw.get("preprocessed_cache_hit")
    # Keys are sorted: once the last of a kind is there, its sum is whole.
    whole = "unsupported_source_language" in raw
    remote = raw.get("remote_storage_hit"), raw.get("remote_storage_miss")
    return CcacheStats(
        direct=direct,
        preprocessed=preprocessed,
        hits=_sum(direct, preprocessed),
        misses=raw["cache_miss"],
        uncacheable=sum(raw.get(key, 0) for key in _UNCACHEABLE) if whole else None,
        errors=sum(raw.get(key, 0) for key in _ERRORS) if "missing_cache_file" in raw else None,
        files=raw.get("files_in_cache"),
        size_kib=raw.get("cache_size_kibibyte"),
        remote_hits=remote[0] if any(remote) else None,
        remote_misses=remote[1] if any(remote) else None,
    )


def _of_4(lines: list[str]) -> CcacheStats | None:
    """Read the sections since 4.0; "Hits" and "Misses" of the storages are look-ups, not calls."""
    figures: dict[tuple[str, str], tuple[float, float | None]] = {}
    section, seen = "", set()
    for line in lines:
        if heading := _SECTION.match(line):
            section = heading["label"]
            seen.add(section)
        elif match := _NUMBERED.match(line):
            first = float(match["first"])
            second = float(match["second"]) if match["second"] else None
            if not match["indent"]:
                section = match["label"]
                figures[section, ""] = (first, second)
            else:  # 4.4 repeats "Direct" and "Preprocessed" under Misses: the first of a name is the hits'
                figures.setdefault((section, match["label"]), (first, second))
    calls = figures.get(("Cacheable calls", ""))
    summary = "Cacheable calls" if calls else "Summary"
    if not calls and ("Summary", "Hits") not in figures:
        if not seen & _STORAGES or not any(label.startswith("Cache size") for _, label in figures):
            return None
        return CcacheStats(hits=0, misses=0, **_sizes(figures))  # after -z no line of calls is printed at all

    def count(key: tuple[str, str]) -> int | None:
        return int(figures[key][0]) if key in figures else None

    total = int(calls[1]) if calls and calls[1] is not None else None
    cacheable = int(calls[0]) if calls else None
    uncacheable = (
        total - cacheable if total is not None and cacheable is not None else count(("Summary", "Uncacheable"))
    )
    by = {label: int(value[0]) for (where, label), value in figures.items() if where == "Uncacheable calls" and label}
    by = {label: number for label, number in by.items() if number}
    remote = next((name for name in ("Remote storage", "Secondary storage") if (name, "Hits") in figures), "")
    remote_counts = count((remote, "Hits")), count((remote, "Misses"))
    return CcacheStats(
        calls=total,
        cacheable=cacheable,
        hits=count((summary, "Hits")),
        direct=count((summary, "Direct")),
        preprocessed=count((summary, "Preprocessed")),
        misses=count((summary, "Misses")),
        uncacheable=uncacheable,
        errors=count(("Errors", "")),
        files=next((number for name in _STORAGES if (number := count((name, "Files"))) is not None), None),
        remote_hits=remote_counts[0] if any(remote_counts) else None,
        remote_misses=remote_counts[1] if any(remote_counts) else None,
        uncacheable_by=by if sum(by.values()) == uncacheable else {},
        **_sizes(figures),
    )


def _sizes(figures: Mapping[tuple[str, str], tuple[float, float | None]]) -> dict[str, Any]:
    sizes: dict[str, Any] = {}
    for (_, label), (first, second) in figures.items():
        for unit in ("GB", "GiB"):
            if label == f"Cache size ({unit})":
                sizes = {f"size_{unit.lower()}": first, f"max_{unit.lower()}": second}
    return sizes


def _sum(*parts: int | None) -> int | None:
    return None if any(part is None for part in parts) else sum(part or 0 for part in parts)


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
