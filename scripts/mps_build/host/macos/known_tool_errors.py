"""What goes wrong with Apple's developer tools, known by its words: known_tool_errors.yaml, and which an answer is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from mps_build.common import strict_yaml

from .answers import Answer, Call, Facts, as_sentences, first, unwrapped

TABLE = Path(__file__).with_name("known_tool_errors.yaml")
_MACRO = re.compile(r"<([a-z_]+)>")


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KnownToolError(_Declared):
    """One row: how it is recognised, what it means and how to fix it; see the head of the table."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]+$")]
    phrases: tuple[str, ...]
    needs: str | None = None
    means: str
    fix: str | None
    link: Annotated[str, StringConstraints(pattern=r"^https://")]
    details: Mapping[str, str] = Field(default_factory=dict)
    fixed: Mapping[str, bool] = Field(default_factory=dict)
    fatal: bool = True
    metal: bool = False

    @field_validator("needs", "details")
    @classmethod
    def _compiles(cls, value: str | Mapping[str, str] | None) -> str | Mapping[str, str] | None:
        for pattern in (value,) if isinstance(value, str) else (value or {}).values():
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"is not a pattern: {pattern}: {error}") from error
        return value


class _Table(_Declared):
    schema_version: int = Field(ge=1, le=1)
    commands: dict[str, str]
    errors: tuple[KnownToolError, ...]

    @model_validator(mode="after")
    def _hangs_together(self) -> _Table:
        ids = [error.id for error in self.errors]
        if repeated := sorted({name for name in ids if ids.count(name) > 1}):
            raise ValueError(f"two rows of one id: {', '.join(repeated)}")
        named = {name for error in self.errors for name in _MACRO.findall(error.fix or "")}
        if unknown := sorted(named - set(self.commands)):
            raise ValueError(f"no such command: {', '.join(unknown)}")
        return self


@lru_cache(maxsize=4)
def load_table(path: Path = TABLE) -> tuple[tuple[KnownToolError, ...], Mapping[str, str]]:
    """Return the rows, their fixes with the commands filled in, and the commands; a fault is a UsageError."""
    table = strict_yaml.load(path, _Table)

    def filled(fix: str | None) -> str | None:
        return None if fix is None else _MACRO.sub(lambda match: table.commands[match[1]], fix)

    return tuple(row.model_copy(update={"fix": filled(row.fix)}) for row in table.errors), table.commands


KNOWN_TOOL_ERRORS, COMMANDS = load_table()
BY_ID: Mapping[str, KnownToolError] = {error.id: error for error in KNOWN_TOOL_ERRORS}

ACCEPT_LICENSE = COMMANDS["accept_license"]
DOWNLOAD_METAL = COMMANDS["download_metal"]
FIRST_LAUNCH = COMMANDS["first_launch"]
INSTALL_CLT = COMMANDS["install_clt"]


# These open a window where there is a screen, and say so.
_MAY_ASK = frozenset({"xcode_select_failed_to_locate", "no_developer_tools"})
_PHRASES = tuple((error, tuple(unwrapped(phrase) for phrase in error.phrases)) for error in KNOWN_TOOL_ERRORS)

_NOISE: tuple[tuple[str, str], ...] = (
    ("objc_duplicate_class", r"objc\[\d+\]:\s+Class\s+\S+\s+is\s+implemented\s+in\s+both"),
    ("extension_point_not_found", r"Requested\s+but\s+did\s+not\s+find\s+extension\s+point\s+with\s+identifier"),
    ("dvt_plugin_compatibility", r"DVTPlugInCompatibilityUUID|[Pp]lug-?in\s+compatibility\s+UUID"),
    ("cfurlrequest_cookie_policy", r"CFURLRequestSetHTTPCookieStorageAcceptPolicy"),
    ("result_bundle", r"Writing\s+(?:error\s+)?result\s+bundle\s+(?:at\s+path|to)\b"),
    ("xcrun_cache_not_writable", r"couldn't\s+create\s+cache\s+file\s+'[^']*xcrun_db"),
    ("coresimulatorservice_invalid", r"CoreSimulatorService\s+connection\s+(?:became\s+invalid|interrupted)"),
    ("log_store_not_writable", r"(?i)log\s?store[^\n]*(?:not\s+writ|permission|unable|could\s?n.t|failed)"),
    ("hw.cpufamily", r"system_profiler\[[\d:]+\]\s+hw\.cpufamily:"),
    ("runpy_warning", r"RuntimeWarning:\s+'[\w.]+'\s+found\s+in\s+sys\.modules"),
)


def diagnose(answer: Answer, calls: Sequence[Call] = ()) -> Facts | None:
    """Return the facts of the first known tool error whose words the answer holds, or None."""
    sentences = as_sentences(answer.text)
    squeezed = unwrapped(sentences)
    notice = _notice(squeezed)
    if any(call.has("runFirstLaunch") for call in calls) and "Symbolnotfound:_XPCTypeBool" in squeezed:
        return None  # the fix prints the trouble that it then fixes
    for error, phrases in _PHRASES:
        if any(phrase in squeezed for phrase in phrases) and (error.needs is None or re.search(error.needs, sentences)):
            return notice | _facts(error, sentences, answer, calls)
    return notice or None


def noise_in(answer: Answer) -> list[str]:
    """Return the ids of lines that say nothing, so that nobody takes them for trouble."""
    text = as_sentences(answer.text)
    return [name for name, pattern in _NOISE if re.search(pattern, text)]


def _facts(error: KnownToolError, text: str, answer: Answer, calls: Sequence[Call]) -> Facts:
    facts: Facts = {"error": error.id}
    if not error.fatal or _goes_on(error, text, answer):
        facts["fatal"] = False
    facts.update(error.fixed)
    for key, pattern in error.details.items():
        value = first(pattern, text)
        if value is not None and not _may_be_torn(key, value, text):
            facts[key] = value
    if error.metal and (code := _quoted_exit(text)) is not None:
        facts["tool_exit"] = code
    if error.id == "license_not_agreed" and re.search(r"Hit\s+the\s+Enter\s+key", text):
        facts["interactive"] = True
    if error.id in _MAY_ASK and re.search(r"requesting\s+install", text):
        facts["dialog"] = True
    if error.id == "xcode_system_resources_outdated" and "tool" not in facts:
        tool = first(r"^(\w[\w.+-]*): error: sh -c", text)
        facts.update({"tool": tool} if tool else {})
    return facts


def _may_be_torn(key: str, value: str, text: str) -> bool:
    """Say whether a path that nothing closes may go on in the next line of a wrapped message."""
    if key != "developer_dir" or value.endswith(("/Contents/Developer", "/CommandLineTools")):
        return False
    end = text.find(value) + len(value)
    return text[end : end + 1] in ("", "\n") and bool(text[end:].strip())


def _goes_on(error: KnownToolError, text: str, answer: Answer) -> bool:
    """A missing platform is a warning where the build said so, or ended well."""
    return error.id == "no_platform_in_clt" and (
        answer.exit == 0 or bool(re.search(r"^\s*warning:.*lookup item", text, re.MULTILINE))
    )


def _quoted_exit(text: str) -> int | None:
    code = first(r"\*\*\*\s+\[[^\]\n]*\]\s+Error\s+(\d+)", text) or first(
        r"^\s*Command\s+\S+\s+failed\s+with\s+exit\s+code\s+(\d+)", text
    )
    return int(code) if code else None


def _notice(squeezed: str) -> Facts:
    if "installrequestedforcommandlinedevelopertools" in squeezed:
        return {"notice": "clt_install_requested", "dialog": True}
    return {}
