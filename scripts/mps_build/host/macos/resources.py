"""What is left of disk, memory and power, how hot it is; what a build's helpers say: git, caches, variables."""

from __future__ import annotations

import re

from .answers import Answer, Facts, first
from .known_tool_errors import noise_in

_UNITS = {"": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def bytes_of(text: str) -> int | None:
    """Return what `df -h` means by a size: powers of 1024 with an i, of 1000 without.

    >>> bytes_of("8.7Gi"), bytes_of("402Gi") == 402 * 2**30, bytes_of("12G")
    (9341553868, True, 12000000000)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)(i?)B?", text)
    if not match:
        return None
    number, unit, binary = match.groups()
    if not unit:
        return int(float(number))
    return int(float(number) * (1024 if binary else 1000) ** _UNITS[unit])


def parse_df(answer: Answer, *, listing: bool = True) -> Facts:
    """Return what is free on the Data volume where it is listed, else on `/` (or on the one volume requested).

    Args:
        listing: no volume was requested by name, so that all must be there.
    """
    header = re.search(r"^\s*Filesystem\s+(\S+)\s.*\bMounted on", answer.stdout, re.MULTILINE)
    if not header:
        return {}
    row = r"^\s*(\S.*?)\s+(\S+)\s+(\S+)\s+(\S+)\s+\d+%(?:\s+\S+\s+\S+\s+(?:\d+%|-))?\s+(/.*?)\s*$"
    rows = [m.groups() for m in re.finditer(row, answer.stdout[header.end() :], re.MULTILINE)]
    volumes = {mount: (size, used, free) for _, size, used, free, mount in rows}
    mount = next((name for name in ("/System/Volumes/Data", "/") if name in volumes), None)
    mount = mount or (next(iter(volumes)) if len(volumes) == 1 else None)
    if mount is None:
        return {}
    size, used, free = volumes[mount]
    facts: Facts = {"mount": mount}
    if blocks := re.fullmatch(r"(\d+)(K?)-blocks", header.group(1)):
        if not free.isdecimal():
            return {}
        facts["free_bytes"] = int(free) * int(blocks.group(1)) * (1024 if blocks.group(2) else 1)
    else:
        facts["free"] = free
    # A listing goes on after `/` with devfs; and where `/` holds little of what is taken, with the Data volume.
    if listing and mount == "/" and (len(rows) == 1 or _shares_its_disk(size, used, free)):
        if answer.exit is not None or len(rows) == 1:
            facts.pop("mount")
        facts["complete"] = False
    return facts


def _shares_its_disk(size: str, used: str, free: str) -> bool:
    whole, own, left = bytes_of(size), bytes_of(used), bytes_of(free)
    return whole is not None and own is not None and left is not None and own + left < 0.8 * whole


def parse_diskutil_info(answer: Answer) -> Facts:
    """Read `diskutil info` as text: mount point, file system, free bytes."""
    text = answer.stdout
    facts: Facts = {}
    for key, pattern in (
        ("mount", r"^\s*Mount Point:\s+(/|/.*\S)\s*$"),
        ("fs", r"^\s*Type \(Bundle\):\s+(\w+)\s*$"),
        ("free_bytes", r"^\s*(?:Volume Free Space|Container Free Space):.*?\((\d+) Bytes\)"),
    ):
        if value := first(pattern, text):
            facts[key] = int(value) if key == "free_bytes" else value
    names = re.findall(r"^\s*(?:File System Personality|Name \(User Visible\)):\s+(\S.*?)\s*$", text, re.MULTILINE)
    if names:
        facts["case_sensitive"] = any(re.search(r"case-sensitive", name, re.IGNORECASE) for name in names)
    return facts


def parse_apfs_list(answer: Answer) -> Facts:
    """Read `diskutil apfs list`: free bytes of the container, and whether names are case-sensitive."""
    text = answer.stdout
    free = first(r"Capacity Not Allocated:\s+(\d+) B\b", text)
    if not free:
        return {}
    facts: Facts = {"free_bytes": int(free), "fs": "apfs"}
    if states := re.findall(r"\((Case-(?:in)?sensitive)\)", text, re.IGNORECASE):
        facts["case_sensitive"] = any(state.lower() == "case-sensitive" for state in states)
    last_volume = text.rsplit("+-> Volume", 1)[-1]
    if not re.search(r"FileVault:", last_volume):
        facts["complete"] = False
    return facts


def parse_thermal(answer: Answer) -> Facts:
    """Read `pmset -g therm` or `thermlog`: the last limit counts; three notes do not prove that it is cool."""
    limits = re.findall(r"CPU_Speed_Limit\s*=\s*(\d+)", answer.stdout)
    if limits:
        return {"cpu_speed_limit": int(limits[-1]), "throttled": int(limits[-1]) < 100}
    if re.search(r"Note: No .* has been recorded", answer.stdout):
        return {"cpu_speed_limit": None, "throttled": "unknown"}
    return {}


def parse_thermal_pressure(answer: Answer) -> Facts:
    """Read `notifyutil -g com.apple.system.thermalpressurelevel`: 0 nominal, 1 moderate, 2 heavy, 3 and 4 worse.

    The levels are those of Apple's OSThermalNotification.h; no record of the tool's own words exists.
    """
    level = first(r"com\.apple\.system\.thermalpressurelevel[ :=]+(\d+)\s*$", answer.stdout.rstrip())
    if level is None or int(level) > 4:
        return {}
    return {"thermal_pressure": int(level), "throttled": int(level) > 0}


def parse_battery(answer: Answer) -> Facts:
    """Read `pmset -g batt`: "AC" or "battery", and the charge in percent."""
    source = first(r"Now drawing from '(AC|Battery) Power'", answer.stdout)
    if not source:
        return {}
    percent = first(r"InternalBattery.*?\s(\d+)%", answer.stdout)
    return {"power_source": "AC" if source == "AC" else "battery", "battery_percent": int(percent) if percent else None}


def parse_low_power(answer: Answer) -> Facts:
    """Read `lowpowermode` of `pmset -g`; where it differs by power source, the answer is not one."""
    values = set(re.findall(r"^\s*lowpowermode\s+([01])\s*$", answer.stdout, re.MULTILINE))
    return {"low_power_mode": values == {"1"}} if len(values) == 1 else {}


def parse_vm_stat(answer: Answer) -> Facts:
    """Read `vm_stat`: the page's size in bytes, and the number of free pages."""
    facts: Facts = {}
    if size := first(r"page size of (\d+) bytes", answer.stdout):
        facts["page_size"] = int(size)
    if free := first(r"^\s*Pages free:\s+(\d+)\.\s*$", answer.stdout):
        facts["free_pages"] = int(free)
    return facts


def parse_meminfo(answer: Answer) -> Facts:
    """Read Linux' /proc/meminfo."""
    total = first(r"^MemTotal:\s+(\d+) kB", answer.stdout)
    return {"memory_bytes": int(total) * 1024} if total else {}


def parse_session(answer: Answer) -> Facts:
    """Read `launchctl managername`: Background over SSH, also when someone is logged in at the screen."""
    line = answer.last_line
    if line in ("Aqua", "Background", "LoginWindow", "StandardIO", "System"):
        return {"session": line, "gui": line == "Aqua"}
    return {}


def parse_bootstrap(answer: Answer) -> Facts:
    """Read `launchctl print gui/UID`: whether there is a session on the screen; error 125 says there is none."""
    if answer.exit == 125 or "125: Domain does not support specified action" in answer.text:
        return {"session": None, "gui": False}
    return {}


def parse_csrutil(answer: Answer) -> Facts:
    """Read `csrutil status`: a custom configuration wins over the printed word."""
    match = re.search(r"System Integrity Protection status: (\w+)( \(Custom Configuration\))?\.?", answer.stdout)
    if not match:
        return {}
    if not match.group(2):
        return {"sip": match.group(1)} if match.group(1) in ("enabled", "disabled") else {}
    switches = re.findall(r"^\s+(\S[^:\n]*):\s+(enabled|disabled)\s*$", answer.stdout[match.end() :], re.MULTILINE)
    return {"sip": "custom", "sip_off": [name for name, state in switches if state == "disabled"]}


def parse_tool_version(answer: Answer, tool: str) -> Facts:
    """Return `{tool: version}`, or None as its version where there is no such program."""
    if noise_in(answer):
        return {}  # what stands beside it matters more
    if answer.exit == 127 or re.search(r"command not found|No such file or directory", answer.text):
        return {tool: None}
    version = first(rf"^\s*{tool}\s+(?:version\s+)?v?(\d+(?:\.\d+)+)", answer.text)
    return {tool: version} if version else {}


def parse_nproc(answer: Answer) -> Facts:
    """Read `nproc` (or `getconf`): the number of cores."""
    return {"cpu_cores": int(answer.last_line)} if answer.last_line.isdecimal() else {}


def parse_linux_kernel(answer: Answer) -> Facts:
    """Read `uname -a` of a Linux host: all we need is that it is one, and its architecture."""
    match = re.search(r"^Linux\s.*?\b(x86_64|aarch64|arm64|i686|riscv64|ppc64le)\b", answer.stdout, re.MULTILINE)
    return {"system": "Linux", "arch": match.group(1)} if match else {}


def parse_leaks(answer: Answer) -> Facts:
    """Read our own listing of variables (probe_table.LEAKS); without its last line it is not whole."""
    if "variables: all listed" not in answer.stdout:
        return {}
    return {
        "variables": re.findall(r"^\s*set: (\w+)\s*$", answer.stdout, re.MULTILINE),
        "semicolons": re.findall(r"^\s*semicolon: (\w+)\s*$", answer.stdout, re.MULTILINE),
    }


def parse_header_folders(answer: Answer) -> Facts:
    """Read the listing of folders whose headers a compiler takes by itself."""
    return {"header_folders": re.findall(r"^\s*(/\S*/include)/?\s*$", answer.stdout, re.MULTILINE)}
