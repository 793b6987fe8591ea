"""The machine: system_profiler's hardware and software parts, as text, XML or JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .answers import Answer, Facts
from .sysctl import chip_facts

_IDENTIFIER = re.compile(r"(?:MacBook(?:Pro|Air)?|Macmini|MacPro|iMac(?:Pro)?|VirtualMac|Xserve|Mac|ADP)\d+,\d+")
_NAMED = {
    "machine_name": "Model Name",
    "machine_model": "Model Identifier",
    "chip_type": "Chip",
    "cpu_type": "Processor Name",
    "physical_memory": "Memory",
    "boot_rom_version": "Boot ROM Version",
}


def parse_hardware(answer: Answer) -> Facts:
    """Return the facts of the machine; a document that was cut off says `complete: False`."""
    text = answer.stdout
    stripped = text.lstrip()
    if stripped.startswith("{") or re.search(r'"SPHardwareDataType"|"machine_model"|"boot_rom_version"', text):
        pairs = dict(re.findall(r'"(\w+)"\s*:\s*"([^"\n]*)"', text))
        return _structured(pairs, whole=stripped.rstrip().endswith("}"))
    if "<plist" in text or "<key>" in text:
        pairs = dict(re.findall(r"<key>(\w+)</key>\s*<string>([^<]*)</string>", text))
        return _structured(pairs, whole="</plist>" in text)
    labels = labels_of(text)
    facts = _software(labels) | _hardware(labels)
    if not _hardware(labels):
        return facts
    if "Hardware Overview:" not in text or not any("Serial Number" in key or "UUID" in key for key in labels):
        facts["complete"] = False
    return facts


def names_a_model(text: str) -> bool:
    """Say whether a text holds the identifier of a Mac, or the label of one."""
    return "Model Identifier" in text or "machine_model" in text or _IDENTIFIER.search(text) is not None


def labels_of(text: str) -> dict[str, str]:
    """Return `Label: value` lines, split at the first colon (a full-width one in East Asian windows)."""
    rows = re.findall(r"^[ \t]*([^:：\n]+?)[ \t]*[:：][ \t]*(\S.*?)[ \t]*$", text, re.MULTILINE)
    labels: dict[str, str] = {}
    for label, value in rows:
        labels.setdefault(label, value)
    return labels


def _structured(pairs: Mapping[str, str], *, whole: bool) -> Facts:
    facts = _hardware({label: pairs[key] for key, label in _NAMED.items() if pairs.get(key)})
    # `proc 10:8:2`: all, then each kind. What the kinds are called is printed in the text form only.
    if match := re.match(r"proc (\d+):", pairs.get("number_processors", "")):
        facts["cpu_cores"] = int(match.group(1))
    return facts | {"complete": whole} if facts else {}


def _hardware(labels: Mapping[str, str]) -> Facts:
    facts: Facts = {}
    identifier = labels.get("Model Identifier", "")
    if name := labels.get("Model Name"):
        facts["model_name"] = name
    if _IDENTIFIER.fullmatch(identifier):
        facts["model"] = identifier
    brand = labels.get("Chip") or labels.get("Processor Name")
    if brand and re.match(r"Apple|.*Intel", brand):
        facts |= chip_facts(brand)
    firmware = next((labels[key] for key in ("System Firmware Version", "Boot ROM Version") if key in labels), None)
    if firmware:
        facts["firmware"] = firmware
    virtual = _virtual(identifier, facts, firmware or "")
    if virtual is not None:
        facts["virtual"] = virtual
    facts |= _cores(labels.get("Total Number of Cores", ""))
    if memory := _memory_gb(labels.get("Memory", "")):
        facts["memory_gb"] = memory
    return facts


def _virtual(identifier: str, facts: Facts, firmware: str) -> bool | str | None:
    """Tell a guest from a machine; a spoofed identifier of an Intel Mac proves nothing."""
    if identifier.startswith("VirtualMac") or facts.get("virtual") is True or firmware.startswith("VMW"):
        return True
    if facts.get("apple_silicon") is True and identifier:
        return False
    return "unknown" if "apple_silicon" in facts else None


def _memory_gb(text: str) -> int | None:
    match = re.fullmatch(r"(\d+(?:[.,]\d+)?)\s*(GB|Go|ГБ|TB|To|ТБ)", text)
    if not match:
        return None
    return int(float(match.group(1).replace(",", ".")) * (1 if match.group(2) in ("GB", "Go", "ГБ") else 1024))


def _cores(text: str) -> Facts:
    """Read "10 (8 performance and 2 efficiency)": levels by their printed names, in lower case."""
    match = re.fullmatch(r"(\d+)(?:\s*[(（]([^)）]*)[)）])?", text)
    if not match:
        return {}
    levels = {name.lower(): int(count) for count, name in re.findall(r"(\d+)\s+([^\W\d]+)", match.group(2) or "")}
    return {"cpu_cores": int(match.group(1)), **({"cpu_levels": levels} if levels else {})}


def _software(labels: Mapping[str, str]) -> Facts:
    facts: Facts = {}
    if match := re.match(r"(?:macOS|Mac OS X|OS X) (\d+(?:\.\d+)+) \((\w+)\)", labels.get("System Version", "")):
        facts |= {"macos": match.group(1), "build": match.group(2)}
    if match := re.match(r"Darwin (\d+(?:\.\d+)+)", labels.get("Kernel Version", "")):
        facts["darwin"] = match.group(1)
    if labels.get("System Integrity Protection") in ("Enabled", "Disabled"):
        facts["sip"] = labels["System Integrity Protection"].lower()
    return facts
