"""What sysctl knows; an unknown name is an answer, and so is a name that only Rosetta or Intel has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .answers import Answer, Facts
from .commands import Call

_ARM64, _X86_64 = "16777228", "7"  # hw.cputype of the asking process
# Names whose values are read as facts: another value than those is not understood.
_READ = frozenset(
    {
        "machdep.cpu.brand_string",
        "machdep.cpu.core_count",
        "machdep.cpu.vendor",
        "hw.memsize",
        "hw.pagesize",
        "hw.physicalcpu",
        "hw.ncpu",
        "hw.model",
        "hw.cputype",
        "kern.osproductversion",
    }
)
_X86_ONLY = ("machdep.cpu.features", "machdep.cpu.family", "machdep.cpu.feature_bits")


def parse_sysctl(answer: Answer, call: Call) -> Facts:
    """Read `sysctl`, with names or (`-n`) values alone, in the order in which they were asked.

    An unknown name is an answer: that key does not exist on this system.
    """
    names = [argument for argument in call.arguments if not argument.startswith("-")]
    unknown = set(re.findall(r"unknown oid '([\w.]+)'", answer.text))
    flags = "".join(argument[1:] for argument in call.arguments if re.fullmatch(r"-[a-zA-Z]+", argument))
    if "n" not in flags or not names:
        rows = dict(re.findall(r"^\s*([a-z][\w]*(?:\.[\w]+)+):[ \t]*(.*?)\s*$", answer.stdout, re.MULTILINE))
        return _from_rows(rows, unknown, names)
    if len(names) == 1:
        return _from_value(names[0], answer, silent_if_unknown="i" in flags, unknown=bool(unknown))
    values = [line.strip() for line in answer.stdout.splitlines() if line.strip()]
    known = [name for name in names if name not in unknown]
    return (
        _from_rows(dict(zip(known, values[-len(known) :], strict=True)), unknown, names)
        if len(values) >= len(known)
        else {}
    )


def _from_value(name: str, answer: Answer, *, silent_if_unknown: bool, unknown: bool) -> Facts:
    value = answer.last_line
    absent = unknown or (silent_if_unknown and not value and answer.exit in (0, None))
    if name == "sysctl.proc_translated":
        if absent:
            return {"known": False, "value": None, "rosetta": False}
        # Only "1" says translated; -1 and an empty value were seen on native systems.
        return {"known": True, "value": value, "rosetta": value == "1"} if re.fullmatch(r"-?\d+", value) else {}
    if name in _X86_ONLY:
        if absent:
            return {"known": False, "value": None, "apple_silicon": True, "rosetta": False}
        return {"known": True, "apple_silicon": "unknown", "rosetta": "unknown"} if value else {}
    if name == "kern.hv_vmm_present" and value in ("0", "1"):
        return {"known": True, "value": value, "virtual": True if value == "1" else "unknown"}
    if name == "hw.optional.arm64":
        if absent or value in ("0", "1"):
            return {"known": not absent, "value": None if absent else value, "apple_silicon": value == "1"}
        return {}
    if absent:
        return {"known": False, "value": None}
    if not value:
        return {}
    if name in _READ:
        return _from_rows({name: value}, set(), [name])
    return {"known": True, "value": value}


def _from_rows(rows: Mapping[str, str], unknown: set[str], names: list[str]) -> Facts:
    facts: Facts = {}
    brand = rows.get("machdep.cpu.brand_string", "")
    if re.match(r"Apple (?:M\d|A\d|processor)|.*Intel|VirtualApple", brand):
        facts |= chip_facts(brand)
        if names == ["machdep.cpu.brand_string"] or facts["chip"] is None or facts.get("virtual") is True:
            facts.setdefault("virtual", "unknown")
    for key, source in (("memory_bytes", "hw.memsize"), ("page_size", "hw.pagesize")):
        if rows.get(source, "").isdecimal():
            facts[key] = int(rows[source])
    cores = next((rows[key] for key in ("hw.physicalcpu", "machdep.cpu.core_count", "hw.ncpu") if key in rows), "")
    if cores.isdecimal():
        facts["cpu_cores"] = int(cores)
    if levels := _levels(rows):
        facts["cpu_levels"] = levels
    if model := rows.get("hw.model"):
        facts |= {"model": model, **({"virtual": True} if model.startswith("VirtualMac") else {})}
    if re.fullmatch(r"\d+(?:\.\d+)+", rows.get("kern.osproductversion", "")):
        facts["macos"] = rows["kern.osproductversion"]
    return facts | _translation(rows, names, facts.get("apple_silicon"))


def chip_facts(brand: str) -> Facts:
    """Return the chip behind a brand string; "(Virtual)" is a sure sign of a guest, its absence none of metal.

    >>> chip_facts("Apple M1 (Virtual)")
    {'chip': 'Apple M1', 'apple_silicon': True, 'virtual': True}
    >>> chip_facts("Apple processor")
    {'chip': None, 'apple_silicon': True}
    """
    if "Intel" in brand:
        return {"chip": brand, "apple_silicon": False}
    chip, virtual = re.subn(r"\s*\(Virtual\)$", "", brand)
    facts: Facts = {"chip": None if chip == "Apple processor" else chip, "apple_silicon": True}
    return facts | ({"virtual": True} if virtual else {})


def _levels(rows: Mapping[str, str]) -> dict[str, int]:
    levels = {}
    for index in range(8):
        name, count = rows.get(f"hw.perflevel{index}.name"), rows.get(f"hw.perflevel{index}.physicalcpu", "")
        if name and count.isdecimal():
            levels[name] = int(count)
    # A dump that was cut off shows fewer levels than there are; only a guest has a single one.
    expected = rows.get("hw.nperflevels")
    return levels if expected == str(len(levels)) or (expected is None and len(levels) > 1) else {}


def _translation(rows: Mapping[str, str], names: list[str], apple_silicon: Any) -> Facts:
    """Tell whether the asking process is translated, where these rows can tell."""
    if rows.get("sysctl.proc_translated") == "1":
        return {"rosetta": True}
    if apple_silicon is False or rows.get("machdep.cpu.vendor") == "GenuineIntel":
        return {"rosetta": False, "apple_silicon": False}
    cpu_type = rows.get("hw.cputype")
    if cpu_type == _ARM64:
        return {"rosetta": False, "apple_silicon": True}
    apple = apple_silicon is True or rows.get("hw.optional.arm64") == "1"
    x86_rows = any(name in rows for name in _X86_ONLY)
    if cpu_type == _X86_64 or x86_rows:
        return {"rosetta": True, "apple_silicon": True} if apple else {"rosetta": "unknown", "apple_silicon": "unknown"}
    if apple_silicon is None and rows.get("hw.optional.arm64") == "1":
        return {"apple_silicon": True}
    # The rows that only a translated process sees would be here; of a dump of `hw` as well, its end may be missing.
    return {"rosetta": False} if apple and names in (["machdep.cpu"], ["machdep"]) else {}
