"""Which macOS, which kernel, which Python: sw_vers, SystemVersion.plist, uname, platform."""

from __future__ import annotations

import re

from .answers import Answer, Facts, first

ARCHITECTURES = ("arm64e", "arm64", "x86_64h", "x86_64", "i386")
_COMPAT = {"10.16": None, "16.0": 26}  # what a Python built with an old SDK sees, and what that proves


def parse_sw_vers(answer: Answer) -> Facts:
    """Return what `sw_vers` prints, each as printed: "26.0" stays two components."""
    labels = dict(re.findall(r"^\s*(Product\w+|BuildVersion):[ \t]*(\S.*?)\s*$", answer.stdout, re.MULTILINE))
    facts: Facts = {}
    if name := labels.get("ProductName"):
        facts["product"] = name
    version = labels.get("ProductVersion", "")
    if version in _COMPAT:
        facts |= {"macos": None, "compat": True}
    elif re.fullmatch(r"\d+(?:\.\d+)+", version):
        facts["macos"] = version
    if extra := labels.get("ProductVersionExtra"):
        facts["macos_extra"] = extra
    if re.fullmatch(r"\d+[A-Z]\d+[a-z]?", labels.get("BuildVersion", "")):
        facts |= {"build": labels["BuildVersion"], "beta": is_beta_macos(labels["BuildVersion"])}
    return facts


def parse_sw_vers_value(answer: Answer, option: str) -> Facts:
    """Read `sw_vers -productVersion` and its kin: one line."""
    line = answer.last_line
    name = option.lstrip("-").lower()
    if name == "productversion" and re.fullmatch(r"\d+(?:\.\d+)+", line):
        return {"macos": None, "compat": True} if line in _COMPAT else {"macos": line}
    if name == "buildversion" and re.fullmatch(r"\d+[A-Z]\d+[a-z]?", line):
        return {"build": line, "beta": is_beta_macos(line)}
    if (name == "productname" and line.startswith("Mac")) or line == "macOS":
        return {"product": line}
    return {}


def is_beta_build(build: str) -> bool:
    """Say whether a build of Xcode is a pre-release: four figures from 5000 up, and a lowercase character.

    A lowercase character alone is none: 13F17a, 14E300c, 15C500b were released. Every build of the
    specimens follows this but one (xcode.is_seed has it).

    >>> is_beta_build("25A5279m"), is_beta_build("17A5305f"), is_beta_build("15C500b")
    (True, True, False)
    """
    return bool(re.fullmatch(r"\d+[A-Z][5-9]\d{3}[a-z]", build))


def is_beta_macos(build: str) -> bool:
    """Say whether a build of macOS is a pre-release: it ends in a lowercase character.

    The six figures of a rapid security response end in one too, and are a release.

    >>> is_beta_macos("25A5279m"), is_beta_macos("20A4299v"), is_beta_macos("19A471t")
    (True, True, True)
    >>> is_beta_macos("25D771280a"), is_beta_macos("24D60")
    (False, False)
    """
    return bool(re.fullmatch(r"\d+[A-Z]\d{1,5}[a-z]", build))


def parse_system_plist(text: str) -> Facts:
    """Read SystemVersion.plist; a document without its end says so, and an application's version.plist is none."""
    if "<key>CFBundle" in text:
        return {}
    values = dict(re.findall(r"<key>([^<]+)</key>\s*<string>([^<]*)</string>", text))
    facts: Facts = {}
    for key, name in (("product", "ProductName"), ("macos", "ProductVersion"), ("build", "ProductBuildVersion")):
        if values.get(name):
            facts[key] = values[name]
    if facts and values.get("ProductVersionExtra"):
        facts["macos_extra"] = values["ProductVersionExtra"]
    if facts.get("macos") in _COMPAT:
        facts |= {"macos": None, "compat": True}
    if "build" in facts:
        facts["beta"] = is_beta_macos(facts["build"])
    return facts | {"complete": "</plist>" in text} if facts else {}


def macos_major_of_darwin(darwin: str) -> int:
    """Return the macOS that a Darwin release belongs to.

    >>> [macos_major_of_darwin(text) for text in ("19.4.0", "20.1.0", "24.3.0", "25.0.0")]
    [10, 11, 15, 26]
    """
    major = int(darwin.split(".", 1)[0])
    return 10 if major < 20 else major - 9 if major < 25 else major + 1


def parse_uname(answer: Answer) -> Facts:
    """Read `uname -a` or `-v`: the kernel names the machine, the last word the process that runs it."""
    text = answer.stdout
    facts: Facts = {}
    darwin = first(r"Darwin Kernel Version (\d+(?:\.\d+)+)", text)
    if darwin:
        facts |= {"darwin": darwin, "macos_major": macos_major_of_darwin(darwin)}
    match = re.search(r"/(RELEASE_(ARM64|X86_64)\w*)(?:[ \t]+(\w+))?[ \t]*$", text, re.MULTILINE)
    if not match:
        return facts or _short_uname(text)
    kernel, family, arch = match.groups()
    facts |= {"kernel": kernel, "apple_silicon": family == "ARM64", "virtual": _virtual_of_kernel(kernel)}
    if arch in ARCHITECTURES:
        facts |= {"arch": arch, "rosetta": family == "ARM64" and arch.startswith("x86_64")}
    return facts


def _short_uname(text: str) -> Facts:
    """Read `uname -srm` and its kin."""
    match = re.search(r"^\s*Darwin (?:\S+ )?(\d+\.\d+\.\d+) (arm64|x86_64)\s*$", text, re.MULTILINE)
    if not match:
        return {}
    darwin, arch = match.groups()
    native: Facts = {"apple_silicon": True, "rosetta": False}
    unknown: Facts = {"apple_silicon": "unknown", "rosetta": "unknown"}
    facts: Facts = {"darwin": darwin, "macos_major": macos_major_of_darwin(darwin), "arch": arch}
    return facts | (native if arch == "arm64" else unknown)


def _virtual_of_kernel(kernel: str) -> bool | str:
    if kernel.endswith("VMAPPLE"):
        return True
    return False if re.search(r"_ARM64_T\d+$", kernel) else "unknown"


def parse_machine(answer: Answer) -> Facts:
    """Read `uname -m` or `platform.machine()`: the asking process, never the machine."""
    line = next((word for word in reversed(answer.stdout.split("\n")) if word.strip() in ARCHITECTURES), "").strip()
    if not line:
        return {}
    if line.startswith("arm64"):
        return {"arch": line, "apple_silicon": True, "rosetta": False}
    return {"arch": line, "apple_silicon": "unknown", "rosetta": "unknown"}


def parse_uname_value(answer: Answer, option: str) -> Facts:
    """Read `uname -r` or `-v`: the Darwin version and the macOS that it belongs to."""
    line = answer.last_line
    if option == "-r" and re.fullmatch(r"\d+(?:\.\d+)+", line):
        return {"darwin": line, "macos_major": macos_major_of_darwin(line)}
    return parse_uname(answer) if option == "-v" else {}


def parse_mac_ver(answer: Answer) -> Facts:
    """Read `platform.mac_ver()`, perhaps with Python's version before it; 10.16 and 16.0 name no macOS."""
    match = re.search(r"\('(\d+(?:\.\d+)*)', \('[^']*', '[^']*', '[^']*'\), '(\w*)'\)", answer.stdout)
    if not match:
        return {}
    facts = {**_compat(match.group(1)), **_arch_of_process(match.group(2))}
    if python := first(r"^\s*(?:Python )?([23]\.\d+(?:\.\d+)?\S*)\s*$", answer.stdout[: match.start()]):
        facts["python"] = python
    return facts


def parse_python_platform(answer: Answer) -> Facts:
    """Read `python -m platform`: Darwin's number before 3.8, macOS's since, 10.16 or 16.0 with an old SDK."""
    match = re.search(r"^\s*(Darwin|macOS)-(\d+(?:\.\d+)+)-(arm64|x86_64)\b", answer.stdout, re.MULTILINE)
    if not match:
        return {}
    name, version, arch = match.groups()
    if name == "Darwin":
        return {"darwin": version, "macos_major": macos_major_of_darwin(version), "arch": arch}
    return {**_compat(version), "arch": arch}


def _compat(version: str) -> Facts:
    if version in _COMPAT:
        return {"compat": True, "macos": None, "macos_major": _COMPAT[version]}
    return {"compat": False, "macos": version, "macos_major": int(version.split(".", 1)[0])}


def _arch_of_process(arch: str) -> Facts:
    if arch not in ARCHITECTURES:
        return {}
    return {"arch": arch, **({} if arch.startswith("arm64") else {"rosetta": "unknown"})}


def parse_python_version(answer: Answer) -> Facts:
    """Read `python3 --version`; Python 2 printed it to stderr."""
    version = first(r"^\s*Python (\d+\.\d+\.\d+\S*)\s*$", answer.text)
    return {"python": version} if version else {}


def parse_binary(answer: Answer) -> Facts:
    """Read `file` or `lipo`: the slices of a Mach-O file, each once, in order (macOS doubles the type)."""
    text = " ".join(
        match.group(1) for match in re.finditer(r"(?:Mach-O|are:|architecture:)(.*)$", answer.stdout, re.MULTILINE)
    )
    if not text and re.fullmatch(rf"(?:(?:{'|'.join(ARCHITECTURES)})\s*)+", answer.last_line):
        text = answer.last_line  # lipo -archs
    found = list(dict.fromkeys(re.findall("|".join(ARCHITECTURES), text)))
    return {"archs": found} if found else {}
