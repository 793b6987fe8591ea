"""What other tools report of a machine: collect_env, crash reports."""

from __future__ import annotations

import re

from packaging.version import Version

from .answers import Answer, Facts, first
from .sysctl import chip_facts
from .versions import is_beta_macos

# Where MPS really works, by torch release (knowledge of all wheels' machine code); 2.15 does not ask the OS.
_MPS_FLOORS = (("2.9", "14.0"), ("2.5", "13.0"), ("1.12", "12.3"))


def parse_collect_env(answer: Answer) -> Facts:
    """Read `torch.utils.collect_env`; what it leaves out it does not tell, and on MPS it says nothing."""
    text = "\n".join(re.sub(r"^\s*>\s?", "", line) for line in answer.stdout.splitlines())
    match = re.search(r"^\s*OS: (?:macOS|Mac OS ?X|MacOS) (\d+(?:\.\d+)+)\s+\((\w+)\)", text, re.MULTILINE)
    if not match:
        return {}
    system, arch = match.groups()
    facts: Facts = {"os": system, "arch": arch}
    torch = first(r"^\s*PyTorch version: (\S+)\s*$", text)
    facts["torch"] = None if torch == "N/A" else torch
    chip = first(r"^\s*CPU:[ \t]*\n?[ \t]*((?:Apple|Intel)\b.*?)\s*$", text)
    facts["chip"] = None if chip is None else chip_facts(chip)["chip"]
    facts["rosetta"] = _translated(arch, chip, system)
    facts["mps"] = False if torch == "N/A" or _below_floor(torch, system) else "unknown"
    if python := first(r"^\s*Python version: (\d+\.\d+(?:\.\d+)?\S*)", text):
        facts["python"] = python
    if re.search(r"^\s*Python platform: macOS-(?:10\.16|16\.0)-", text, re.MULTILINE):
        facts["compat"] = True
    if facts["torch"] is None and (pip := first(r"^\s*(?:\[pip3?\] )?torch==(\S+)", text)):
        facts["pip_torch"] = pip
    if "Versions of relevant libraries" not in text:
        facts["complete"] = False
    return facts


def _translated(arch: str, chip: str | None, system: str) -> bool | str:
    if arch.startswith("arm64"):
        return False
    if chip is not None:
        return chip.startswith("Apple")
    return False if Version(system) < Version("11") else "unknown"  # before 11 no Mac had Apple silicon


def _below_floor(torch: str | None, system: str) -> bool:
    if torch is None:
        return False
    try:
        release = Version(Version(torch).base_version)
    except ValueError:
        return False
    floor = next((floor for since, floor in _MPS_FLOORS if release >= Version(since)), None)
    return floor is None or Version(system) < Version(floor)


def parse_ips(text: str) -> Facts:
    """Read a crash report of two JSON documents key by key, so that one that was cut off still tells."""
    facts: Facts = {}
    if translated := first(r'"translated"\s*:\s*(true|false)', text):
        facts["rosetta"] = translated == "true"
    if cpu := first(r'"cpuType"\s*:\s*"([^"]+)"', text):
        facts["arch"] = {"X86-64": "x86_64", "ARM-64": "arm64"}.get(cpu, cpu.lower())
    if model := first(r'"modelCode"\s*:\s*"([^"]+)"', text):
        facts["model"] = model
    if match := re.search(r'"os_version"\s*:\s*"macOS (\d+(?:\.\d+)+) \((\w+)\)"', text):
        facts |= {"macos": match.group(1), "build": match.group(2), "beta": is_beta_macos(match.group(2))}
    whole = text.count("{") == text.count("}") and text.rstrip().endswith("}")
    return facts | {"complete": whole} if facts else {}


def parse_crash_text(text: str) -> Facts:
    """Read a crash report in words; "Translated Report" is only its heading, and no sign of Rosetta."""
    code = re.search(r"^\s*Code Type:\s+\S+ \((Native|Translated)\)", text, re.MULTILINE)
    system = re.search(r"^\s*OS Version:\s+(?:macOS|Mac OS X) (\d+(?:\.\d+)+) \((\w+)\)", text, re.MULTILINE)
    facts: Facts = {}
    if code:
        facts["rosetta"] = code.group(1) == "Translated"
    if system:
        facts |= {"macos": system.group(1), "build": system.group(2)}
    if sip := first(r"^\s*System Integrity Protection: (enabled|disabled)\s*$", text):
        facts["sip"] = sip
    tail = re.search(r"^\s*Model: (\w+,\d+), BootROM ([^,]+), proc (\d+)\S* processors, (\d+) GB", text, re.MULTILINE)
    if tail:
        model, firmware, cores, memory = tail.groups()
        facts |= {"model": model, "firmware": firmware, "cpu_cores": int(cores), "memory_gb": int(memory)}
    return facts | ({} if "Binary Images:" in text else {"complete": False}) if facts else {}
