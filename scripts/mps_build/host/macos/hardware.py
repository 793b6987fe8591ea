"""The machine: system_profiler's parts as text, XML or JSON, sysctl, the registry's GPUs, what other tools report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from .answers import Answer, Call, Facts, first
from .versions import is_beta_macos

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
    """Read `sysctl`, with names or (`-n`) values alone, in the order in which they were queried.

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


# GPUs from before Metal: the only ones whose record ends without a word on it.
_BEFORE_METAL = re.compile(
    r"HD Graphics(?: [23]000)?$|GMA\b|Radeon (?:HD )?[2-6]\d{3}M?\b|Radeon X\d"
    r"|GeForce (?:[89]\d{3}M?|(?:GT )?[123]\d{2}M?)\b"
)
_FIELD = re.compile(r"^([ \t]*)([^:\n]+):[ \t]*(.*?)[ \t]*$")


def parse_displays(answer: Answer, *, as_document: bool = False) -> Facts:
    """Return the GPUs, the cores of Apple's, and how many displays hang on them.

    A record of a GPU that has Metal says so in its end; where that is missing the text was cut
    off, and what is left is not the whole truth.

    Args:
        as_document: JSON or XML was requested, which is never empty.
    """
    if '"SPDisplaysDataType"' in answer.stdout or '"_name"' in answer.stdout:
        return _parse_json(answer)
    if not answer.stdout.strip():
        empty: Facts = {"gpus": [], "gpu_cores": None, "displays": 0, "virtual": "unknown"}
        return empty if answer.exit in (0, None) and not as_document else {}
    gpus, displays = _records(answer.stdout)
    if not gpus:
        return {}
    found = [_gpu(gpu) for gpu in gpus]
    facts: Facts = {"gpu_cores": _apple_cores(found)}
    if any(_is_cut(gpu) for gpu in found) or re.search(r":\s*$", answer.stdout):
        return facts | {"complete": False}
    facts |= {"gpus": found, "displays": displays}
    return facts | ({"virtual": True} if any("Paravirtual" in gpu["name"] for gpu in found) else {})


def _records(text: str) -> tuple[list[dict[str, str]], int]:
    """Return each GPU's own labels, and how many headings stand under its displays.

    A display may be called anything, a GPU's name included: a heading belongs to the next
    GPU if `Chipset Model` follows it. At the very end only its indent can tell.
    """
    gpus: list[dict[str, str]] = []
    displays, display_indent, heading_indent = 0, None, None
    for line in text.splitlines():
        match = _FIELD.match(line)
        if not match:
            continue
        indent, label, value = len(match.group(1)), match.group(2), match.group(3)
        if label == "Chipset Model":
            gpus.append({label: value})
            display_indent = heading_indent = None
            continue
        if heading_indent is not None:
            displays, heading_indent = displays + 1, None
        if label == "Displays" and gpus and not value:
            display_indent = indent
        elif display_indent is not None and not value:
            heading_indent = indent
        elif display_indent is None and gpus and value:
            gpus[-1].setdefault(label, value)
    if heading_indent is not None and display_indent is not None and heading_indent > display_indent:
        displays += 1
    return gpus, displays


def _gpu(labels: dict[str, str]) -> Facts:
    vendor = re.match(r"(.*?)\s*(?:\((0x[0-9a-fA-F]+)\))?$", labels.get("Vendor", ""))
    metal = next((value for label, value in labels.items() if re.fullmatch(r"Metal(?: Support| Family)?", label)), None)
    cores = labels.get("Total Number of Cores", "")
    return {
        "name": labels["Chipset Model"],
        "vendor": (vendor.group(1) if vendor else None) or None,
        "vendor_id": vendor.group(2) if vendor else None,
        "cores": int(cores) if cores.isdecimal() else None,
        "metal": metal,
        "metal_supported": _is_supported(metal),
    }


def _is_supported(metal: str | None) -> bool | str:
    if metal is None:
        return "unknown"
    return not re.search(r"not supported|unsupported", metal, re.IGNORECASE)


def _is_cut(gpu: Facts) -> bool:
    if gpu["vendor"] is None:
        return True
    return gpu["metal"] is None and not _BEFORE_METAL.search(gpu["name"]) and "Paravirtual" not in gpu["name"]


def _apple_cores(gpus: list[Facts]) -> int | None:
    return next((gpu["cores"] for gpu in gpus if gpu.get("cores") is not None and "Apple" in str(gpu["name"])), None)


def _parse_json(answer: Answer) -> Facts:
    """Read the JSON form pair by pair, so that a document that was cut off still tells what it holds."""
    text = answer.stdout
    whole = text.rstrip().endswith("}") and text.count("{") == text.count("}")
    gpus: list[Facts] = []
    displays, depth, display_depth = 0, 0, None
    for match in re.finditer(r'"(\w[\w-]*)"\s*:\s*"([^"\n]*)"|"(spdisplays_ndrvs)"|([{\[])|([}\]])', text):
        key, value, drivers, opening, closing = match.groups()
        if opening:
            depth += 1
        elif closing:
            depth -= 1
            if display_depth is not None and depth <= display_depth:
                display_depth = None
        elif drivers:
            display_depth = depth
        elif display_depth is not None:
            displays += key == "_name"
        elif key == "_name":
            gpus.append({"name": value})
        elif gpus:
            gpus[-1] |= _json_field(key, value)
    if not gpus:
        return {}
    if not whole and (answer.exit == 0 or not all("metal" in gpu for gpu in gpus)):
        return {"complete": False}  # which part of a record came through is chance
    facts: Facts = {"gpus": gpus, "gpu_cores": next((gpu["cores"] for gpu in gpus if "cores" in gpu), None)}
    return facts | ({"displays": displays} if whole else {}) | {"complete": whole}


def _json_field(key: str, value: str) -> Facts:
    if key in ("spdisplays_mtlgpufamilysupport", "spdisplays_metalfamily", "spdisplays_metal"):
        return {"metal": value, "metal_supported": _is_supported(value)}
    if key == "sppci_cores" and value.isdecimal():
        return {"cores": int(value)}
    if key == "sppci_model":
        return {"name": value}
    if key == "spdisplays_vendor":
        match = re.match(r"(?:sppci_vendor_)?(.*?)\s*(?:\((0x[0-9a-fA-F]+)\))?$", value)
        return {"vendor": match.group(1), **({"vendor_id": match.group(2)} if match.group(2) else {})} if match else {}
    return {}


def parse_ioreg(answer: Answer) -> Facts:
    """Read the registry: cores by level as little-endian data, the GPU's as a plain number."""
    text = answer.stdout
    levels = {
        level: int.from_bytes(bytes.fromhex(data), "little")
        for level, data in re.findall(r'"([a-z])-core-count" = <([0-9a-f]{8})>', text)
    }
    cores = re.search(r'"gpu-core-count" = (\d+)', text)
    # Every Apple chip has two kinds of cores: one alone is half an answer.
    facts: Facts = {"cpu_levels": levels} if len(levels) > 1 else {}
    accelerators = re.findall(r"\+-o (\S+)\s+<class \S*(?:Accelerator|AGX)\S*", text)
    if cores:
        facts["gpu_cores"] = int(cores.group(1))
    if accelerators:
        counts = [int(cores.group(1))] if cores and len(accelerators) == 1 else [None] * len(accelerators)
        apple = any(name.startswith("AGX") for name in accelerators)
        facts |= {
            "gpus": [{"name": name, "cores": count} for name, count in zip(accelerators, counts, strict=False)],
            "apple_silicon": True if apple else "unknown",
        }
        if not re.search(r"^\s*[|\s]*}\s*$", text, re.MULTILINE):
            facts["complete"] = False
    return facts


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
