"""What a crashing, hanging or failing MPS process wrote, to a category and a verdict.

Pure, and without torch: `nox -s triage` uses it on files, the device suite's driver on its children. A device out of
memory is answered by the numbers of its own message; the text also says which Mac and which torch it is of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field

from ...common import strict_yaml
from ...common.known_issues import highest_floor_behind
from ...common.logs.text import clean_lines, squeeze
from .log import may_match, read_log
from .rules import load_catalogue

_POWERS = {"K": 10, "M": 20, "G": 30, "T": 40}
_UNITS: dict[str, int] = {"bytes": 1, "B": 1} | {
    f"{at}{unit}": 2**power for at, power in _POWERS.items() for unit in ("B", "iB")
}
# A limit this low is a small Mac's, or somebody's own ratio.
_SMALL = 4 * 2**30


def size_of(text: object) -> float | None:
    """Return the bytes of a size as torch prints it; None for what is none.

    >>> size_of("1.50 KB"), size_of("2.00 GiB"), size_of("many"), size_of("1.2.3 GB")
    (1536.0, 2147483648.0, None, None)
    """
    number, _, unit = str(text).partition(" ")
    try:
        return float(number) * _UNITS[unit]
    except (KeyError, ValueError):
        return None


def memory_advice(detail: Mapping[str, object]) -> str | None:
    """Return what the numbers of the message advise: allocated, other, max_allowed, tried; None if they say nothing.

    `allocated` is what torch's tensors hold, `other` what the process holds on the device beside them.
    """
    allocated, other = size_of(detail.get("allocated")), size_of(detail.get("other", "0 bytes"))
    allowed, tried = size_of(detail.get("max_allowed")), size_of(detail.get("tried"))
    if allocated is None or other is None or allowed is None or tried is None:
        return None
    limit = f"the limit of {detail['max_allowed']}"
    if tried > allowed:
        return f"this one tensor wants {detail['tried']}, more than {limit}: a smaller shape, or the work in parts"
    if allocated + other + tried <= allowed:
        return f"by these numbers there is room under {limit}: the system refused; close other programs, try again"
    if other > allocated:
        return (
            f"{detail['other']} of {limit} lie outside of tensors, which hold {detail['allocated']}: compiled graphs, "
            "one for each new shape, or another library on the GPU; pad inputs to few shapes, a newer torch, "
            "torch.mps.empty_cache(); a smaller batch alone hardly helps"
        )
    if allowed < _SMALL:
        return (
            f"{limit} is small: a Mac with little memory, or PYTORCH_MPS_HIGH_WATERMARK_RATIO was lowered; a smaller "
            "model or batch, float16, close other programs"
        )
    return (
        f"tensors hold {detail['allocated']} of {limit}: a smaller batch or model, float16, torch.no_grad() where "
        "nothing is trained; PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 only trades the error for swapping"
    )


_MACOS = re.compile(
    r"\b(?:ProductVersion: ?|OS: macOS |macOS: |macOS-(?=[\d.]{1,15}-(?:arm64|x86_64)))(\d{1,2}(?:\.\d{1,3}){0,3})"
)
_TORCH = re.compile(r"\bPyTorch version: (\d{1,2}\.\d{1,3}(?:\.\d{1,3})?)|\btorch==(\d{1,2}\.\d{1,3}(?:\.\d{1,3})?)")
# What a program that was linked to an old SDK is given, whatever the macOS is.
_COMPATIBILITY = "10.16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """Facts as printed; None: the text does not tell. `rosetta`: Intel code, on a Mac with Apple silicon."""

    macos: str | None = None
    torch: str | None = None
    intel: bool = False
    rosetta: bool = False


def read_printed(prose: str) -> Printed:
    """Return what a text (of one line, white space squeezed) tells of its host."""
    found = (match[1] for match in _MACOS.finditer(prose))
    torch = _TORCH.search(prose)
    macros = load_catalogue()
    intel = bool(macros.compiled("<intel_python>").search(prose))
    return Printed(
        macos=next((version for version in found if version != _COMPATIBILITY), None),
        torch=(torch[1] or torch[2]) if torch else None,
        intel=intel,
        rosetta=intel and bool(macros.compiled("<apple_silicon>").search(prose)),
    )


TABLE = Path(__file__).with_name("device_texts.yaml")
Verdict = Literal["case", "device", "ours_not", "noise", "stop", "unknown"]
Detail: TypeAlias = "str | int | None"

_CRASH_SIGNALS = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGTRAP"})
# Numbers of macOS; 7 is Linux's SIGBUS, which macOS uses for nothing a process dies of.
_SIGNALS = {4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 9: "SIGKILL", 10: "SIGBUS", 11: "SIGSEGV"}
# A warning of a process that ended with 0 is not a failure; a fallback is only ever reported by a warning.
_REPORTED_BY_WARNINGS = frozenset({"cpu_fallback", "noise"})
# Which Mac and which Python it was decides what these mean.
_OF_A_HOST = frozenset({"mps_unavailable", "os_too_old", "unsupported_feature", "not_built"})
_WARNING = re.compile(r"\b\w{0,60}Warning: |\bwarning: |^\s*\[W\d")
_LINUX = re.compile(
    r"\bdocker (?:compose |run |exec )|--platform[ =]linux/|\blinux-(?:x86_64|aarch64)\b|/home/|\bUbuntu\b|Linux-\d+\."
)
_FOREIGN_NSLOG = re.compile(
    r"^\s*(?![\w.-]*(?:[Pp]ython|pytest|torch))[A-Za-z][\w.+-]*\[\d+:[0-9a-f]+\] ", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceText:
    """What the text of one process means.

    Attributes:
        verdict: about the case, the device, nobody of us, nothing (noise), the whole run (stop), or unknown.
        stop: end the run now; every further case would say the same.
        origin: another Metal program that wrote it (mlx, ggml, other); None: torch, or unknown.
        detail: facts as printed: op, dtype, code, file, line, device, count, allocated, said_floor ...
    """

    category: str
    verdict: Verdict
    stop: bool
    origin: str | None
    detail: Mapping[str, Detail] = field(default_factory=dict)
    advice: str

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "category": self.category,
            "verdict": self.verdict,
            "stop": self.stop,
            "from": self.origin,
            "detail": dict(self.detail),
            "advice": self.advice,
        }


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Category(_Declared):
    verdict: Verdict
    stop: bool = False
    stop_if_repeated: bool = False
    advice: str


class _Rule(_Declared):
    category: str
    phrases: tuple[str, ...] = Field(min_length=1)
    unless: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    failing: bool = False
    ended_well: bool = False


class _Origin(_Declared):
    origin: Literal["mlx", "ggml", "other"]
    pattern: str


class _Table(_Declared):
    schema_version: Literal[1]
    floors: dict[str, str]
    languages: dict[str, str]
    origins: tuple[_Origin, ...]
    categories: dict[str, _Category]
    rules: tuple[_Rule, ...]


def classify_device_text(
    text: str, *, exit: int | None = None, signal: str | None = None, host: Mapping[str, Any] | None = None
) -> DeviceText:
    """Return what stdout and stderr of one process mean.

    Args:
        exit: as a shell gives it (128 + n for a signal) or as Python does (-n); None: not known.
        signal: its name, if known (`SIGSEGV`).
        host: what is known beside the text: `macos`, `torch`, `virtual`; what else it holds is not looked at.
    """
    table = load_table()
    log = read_log(text)
    prose = log.text
    host = host or {}
    rule, category = _rule(table, prose, exit=exit, signal=signal or _signal_of(exit))
    if exit == 0 and rule and category not in _REPORTED_BY_WARNINGS:
        calm = " ".join(squeeze(line.text) for line in log.lines if not _WARNING.search(line.text))
        rule, category = _rule(table, calm, exit=exit, signal=None)
        category = category if rule else "noise"
    detail = _details(rule, prose) if rule else {}
    printed = read_printed(prose) if category in _OF_A_HOST else Printed()
    stated = {"macos": printed.macos, "torch": printed.torch}
    host = {**{name: value for name, value in stated.items() if value}, **host}
    category, detail = _refine(table, category, detail, prose=prose, host=host)
    category, detail = _by_architecture(category, detail, printed, host)
    origin = _origin(table, prose, text)
    row = table.categories[category]
    verdict = row.verdict
    if category == "os_too_old" and "op" in detail:
        verdict = "case"
    if origin and verdict == "case":
        verdict = "ours_not"  # another program's failure says something of the GPU, nothing of torch
    repeated = isinstance(count := detail.get("count", 1), int) and count > 1
    return DeviceText(
        category=category,
        verdict=verdict,
        stop=row.stop or (row.stop_if_repeated and repeated),
        origin=origin,
        detail=detail,
        advice=_advice(category, detail, host, prose) or row.advice,
    )


@lru_cache(maxsize=1)
def load_table() -> _Table:
    """Return the table of texts; a fault in it is a UsageError."""
    return strict_yaml.load(TABLE, _Table)


def real_floor(torch: str | None) -> str | None:
    """Return the macOS from which MPS works in this torch; a nightly counts as its release.

    >>> real_floor("2.5.1"), real_floor("2.10.0.dev20251012")
    ('13.0', '14.0')
    """
    version = _version(torch)
    if version is None:
        return None
    floors = load_table().floors.items()
    fitting = [(Version(first), floor) for first, floor in floors if Version(version.base_version) >= Version(first)]
    return max(fitting)[1] if fitting else None


def _rule(table: _Table, prose: str, *, exit: int | None, signal: str | None) -> tuple[_Rule | None, str]:
    for rule in table.rules:
        if rule.category == "crash" and signal in _CRASH_SIGNALS:
            return rule, "crash"
        if (rule.failing and exit == 0) or (rule.ended_well and exit != 0):
            continue
        hit = any(may_match(phrase, prose) and re.search(phrase, prose) for phrase in rule.phrases)
        if hit and not any(re.search(pattern, prose) for pattern in rule.unless):
            return rule, rule.category
    return None, "unknown"


def _signal_of(exit: int | None) -> str | None:
    if exit is None:
        return None
    return _SIGNALS.get(-exit if exit < 0 else exit - 128)


def _details(rule: _Rule, prose: str) -> dict[str, Detail]:
    found: dict[str, Detail] = {}
    for pattern in rule.details:
        if match := re.search(pattern, prose):
            for name, value in match.groupdict().items():
                if value is not None and name not in found:
                    found[name] = int(value) if name == "line" else value.strip()
    return found


def _refine(
    table: _Table, category: str, detail: dict[str, Detail], *, prose: str, host: Mapping[str, Any]
) -> tuple[str, dict[str, Detail]]:
    """Return category and detail after what one phrase cannot tell: figures, lists, and the host."""
    match category:
        case "out_of_memory":
            return ("virtual_gpu_unusable" if _is_a_guest(detail, host) else category), detail
        case "virtual_gpu_unusable":
            return category, {name: None if value == "(null)" else value for name, value in detail.items()}
        case "wrong_architecture":
            return category, detail if detail else {"have": None, "need": None}
        case "gpu_fault":
            blocks = prose.count("command buffer exited with error status")
            errors = len(re.findall(r"\((?:[0-9a-fA-F]{8}:|IOAF code )", prose))
            return category, {**detail, "count": blocks or errors or 1}
        case "os_too_old":
            floor = table.languages.get(str(detail.get("metal_language")))
            return category, {**detail, "real_floor": floor} if floor else detail
        case "unsupported_feature":
            floor_said = detail.get("real_floor")
            return category, {**detail, "real_floor": _dotted(floor_said)} if floor_said else detail
        case "mps_unavailable":
            return _unavailable(detail, host)
        case "unsupported_op" if "Could not run" in prose:
            return _could_not_run(prose), detail
        case _:
            return category, detail


def _by_architecture(
    category: str, detail: dict[str, Detail], printed: Printed, host: Mapping[str, Any]
) -> tuple[str, dict[str, Detail]]:
    """Blame Intel code on Apple silicon where the text shows it: macOS hides its version and Metal's GPU from it."""
    if category not in _OF_A_HOST or not printed.intel:
        return category, detail
    if not printed.rosetta and not _is_new_enough(detail, host):
        return category, detail
    if category == "unsupported_feature" and "real_floor" not in detail:
        return category, detail
    return "wrong_architecture", {**detail, "have": "x86_64", "need": "arm64"}


def _is_new_enough(detail: Mapping[str, Detail], host: Mapping[str, Any]) -> bool:
    """Whether the macOS that is known is what the message asks for."""
    floor = _version(str(detail.get("real_floor") or detail.get("said_floor") or ""))
    macos = _version(host.get("macos"))
    return floor is not None and macos is not None and macos >= floor


def _advice(category: str, detail: Mapping[str, Detail], host: Mapping[str, Any], prose: str) -> str | None:
    """Return advice that the facts give; None: the table's."""
    match category:
        case "out_of_memory":
            return memory_advice(detail)
        case "unsupported_op":
            package, _, name = str(detail.get("op", "aten::")).rpartition("::")
            if re.fullmatch(load_catalogue().macros["own_ops"], package):
                return None
            whose = f"{package}'s" if package else "a partner package's"
            return (
                f"{name} is {whose}, not torch's: a newer {package or 'release of it'} that has it for MPS, or built "
                "from source with its operators; else that step on the CPU"
            )
        case "unsupported_feature" | "os_too_old" if _is_new_enough(detail, host):
            return (
                f"macOS {host['macos']} is new enough for this: see which Python and torch run "
                "(platform.machine(), platform.mac_ver()); a newer torch, or float32"
            )
        case "not_built" if _LINUX.search(prose):
            return (
                "this is Linux, also in a container on a Mac: MPS is macOS's own; run it on macOS itself, or on the CPU"
            )
        case "os_too_old" if {"said_floor", "real_floor"} <= detail.keys() and not host.get("torch"):
            return (
                f"torch 2.5 and newer need macOS {detail['real_floor']}, whatever the message says: a newer macOS, or "
                "torch 2.4; if it is 2.4 or older already, run outside of a sandbox, SSH and guests"
            )
        case _:
            return None


def _is_a_guest(detail: Mapping[str, Detail], host: Mapping[str, Any]) -> bool:
    """Whether it is not a lack of memory: nothing is in use, and less was tried than is allowed."""
    if host.get("virtual") is True:
        return True
    if detail.get("allocated") != "0 bytes" or detail.get("other", "0 bytes") != "0 bytes":
        return False
    tried, allowed = size_of(detail.get("tried")), size_of(detail.get("max_allowed"))
    return tried is not None and allowed is not None and tried <= allowed


def _unavailable(detail: dict[str, Detail], host: Mapping[str, Any]) -> tuple[str, dict[str, Detail]]:
    """Blame the macOS only where it is really too old: the sentence is a catch-all for "no device"."""
    said = detail.get("said_floor")
    real = real_floor(host.get("torch")) if host.get("torch") else highest_floor_behind(str(said))
    floor, macos = _version(real or str(said)), _version(host.get("macos"))
    too_old = floor is not None and macos is not None and macos < floor
    # Without the torch's version the floor is what could lie behind the message: worth telling where it decides.
    tells = too_old or (said and host.get("torch"))
    facts = {**detail, "real_floor": real} if real and tells else detail
    return ("os_too_old" if too_old else "mps_unavailable"), facts


def _could_not_run(prose: str) -> str:
    """Tell a build without MPS kernels (MPS is in the list of back ends) from a missing operator."""
    requested = re.search(r"with arguments from the \\?'(\w+)", prose)
    listed = re.search(r"only available for these backends: \[([^\]]*)(\]?)", prose)
    if listed and requested and re.search(rf"\b{requested[1]}\b", listed[1]):
        return "not_built"
    return "unsupported_op" if listed and listed[2] else "unknown"


def _origin(table: _Table, prose: str, text: str) -> str | None:
    for row in table.origins:
        if may_match(row.pattern, prose) and re.search(row.pattern, prose):
            return row.origin
    lines = "\n".join(line.text for line in clean_lines(text[:200_000]))
    return "other" if _FOREIGN_NSLOG.search(lines) else None


def _version(text: str | None) -> Version | None:
    try:
        return Version(text) if text else None
    except ValueError:
        return None


def _dotted(version: Detail) -> str:
    dotted = str(version).replace("_", ".")
    return dotted if "." in dotted else f"{dotted}.0"
