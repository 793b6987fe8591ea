"""Taking out of a recording what names a person or a machine, and finding what was left in."""

from __future__ import annotations

import getpass
import platform
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mps_build import __version__

from ..probes.probers import Prober
from .recording import recording_document

_ZERO_UUID = "00000000-0000-0000-0000-000000000000"
HOST_NAME = "mac.local"
# Words that are user names of half the world, or of the tools: as a bare word they name nobody.
NOBODY = frozenset(
    {
        "root",
        "admin",
        "user",
        "users",
        "shared",
        "public",
        "runner",
        "build",
        "mac",
        "macos",
        "apple",
        "python",
        "xcode",
    }
    | {"test", "local", "torch", "homebrew", "linuxbrew", "work", "actions-runner"}
)

# What is taken out wherever it stands: its name, a pattern, what takes its place. A place that was taken matches
# again and gives itself, so that "nothing changes" is the proof that a text is scrubbed.
_PATTERNS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    (
        "serial number",
        re.compile(r"(?i)(serial[ _]?number[^:=\n]{0,80}\"?\s{0,8}[:=]\s{0,8}<?\"?)(?!X{10})[A-Z0-9][\w/.-]{4,}"),
        r"\g<1>XXXXXXXXXX",
    ),
    (
        "serial number",
        re.compile(r"(?i)(<key>serial_number</key>\s{0,40}<string>)(?!X{10})[^<]+"),
        r"\g<1>XXXXXXXXXX",
    ),
    (
        "UUID",
        re.compile(r"\b(?!0{8}-)[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}\b"),
        _ZERO_UUID,
    ),
    ("UDID", re.compile(r"\b(?!0{8}-)[0-9A-Fa-f]{8}-[0-9A-Fa-f]{16}\b"), "00000000-0000000000000000"),
    ("hardware address", re.compile(r"\b(?!00:00:00)(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"), "00:00:00:00:00:00"),
    ("network name", re.compile(r"//(?!user@server/share)[^/@\s]{1,200}@[^/\s]{1,253}/\S*"), "//user@server/share"),
    ("network name", re.compile(r"(?m)^(?!server:/share)[\w.-]+:/\S+(?=\s+\d)"), "server:/share"),
    (
        "mail address",
        re.compile(r"(?<![\w.+-])(?!user@)[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{0,190}[a-z]\b"),
        "user@example.org",
    ),
    (
        "name of a person, a machine or a network",
        re.compile(
            r"(?im)^([ \t]{0,80}\"?(?:Computer Name|User Name|Local Host ?name|Host ?name|SSID|Current Network|Owner)"
            r"\"?[ \t]{0,8}[:=][ \t]{0,8})"
            r"(?!removed$)\S.*$"
        ),
        r"\g<1>removed",
    ),
    ("home folder", re.compile(r"/(Users|home)/(?!user\b|Shared\b)[^/\s:'\")]+"), r"/\g<1>/user"),
    ("host name", re.compile(r"(?m)^(Darwin|Linux) (?!mac\.local )\S+ (?=\d)"), rf"\g<1> {HOST_NAME} "),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Words that name this person or machine, and what takes their place."""

    words: Mapping[str, tuple[str, str]]

    @classmethod
    def of_this_machine(cls) -> Identity:
        """Return the names to take out of a recording made here: home, host name, user and full name."""
        words: dict[str, tuple[str, str]] = {}
        home = str(Path.home())
        if len(home) > 1 and home != "/root":
            words[home] = ("home folder", "/Users/user")
        for name in {platform.node(), platform.node().split(".", 1)[0]}:
            if len(name) >= 3 and name.lower() not in NOBODY:
                words[name] = ("host name", HOST_NAME)
        user = _user_name()
        if len(user) >= 3 and user.lower() not in NOBODY:
            words[user] = ("user name", "user")
        return cls(words=words)


def scrub(document: Mapping[str, Any], identity: Identity) -> tuple[dict[str, Any], Counter[str]]:
    """Return a recording's document without what names anybody, and how often each kind was taken out."""
    removed: Counter[str] = Counter()

    def clean(text: str) -> str:
        for word, (kind, instead) in sorted(identity.words.items(), key=lambda item: -len(item[0])):
            # A user's name stands in file names beside digits too (jdoe2026.log); capitals may follow (jdoeBuild).
            digit = "" if kind == "user name" and len(word) >= 4 else "0-9"
            text, count = re.subn(rf"(?<![A-Za-z{digit}])(?i:{re.escape(word)})(?![a-z{digit}])", instead, text)
            removed[kind] += count
        for kind, pattern, instead in _PATTERNS:
            text, count = pattern.subn(instead, text)
            removed[kind] += count
        return text

    probes = [
        {**probe, "argv": [clean(word) for word in probe["argv"]]}
        | {key: clean(probe.get(key) or "") for key in ("stdout", "stderr")}
        for probe in document["probes"]
    ]
    return {**document, "probes": probes}, +removed


def recorded(prober: Prober, *, identity: Identity | None = None) -> tuple[dict[str, Any], Counter[str]]:
    """Return all that a prober's host answered, scrubbed, as a recording's document, and what was taken out."""
    document = recording_document(
        (answer for answer, _ in prober.answers()),
        recorded_on=datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        tool=f"mps-build {__version__}",
    )
    return scrub(document, identity or Identity.of_this_machine())


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOver:
    """Something in a recording that names a person or a machine."""

    kind: str
    argv: tuple[str, ...]
    line: str


def left_over(document: Mapping[str, Any]) -> tuple[LeftOver, ...]:
    """Return what is still in a recording, line by line; nothing that only its owner could know."""
    found = []
    for probe in document["probes"]:
        texts = [*map(str, probe.get("argv", ())), str(probe.get("stdout") or ""), str(probe.get("stderr") or "")]
        for line in (line for text in texts for line in text.splitlines()):
            kinds = [kind for kind, pattern, instead in _PATTERNS if pattern.sub(instead, line) != line]
            if kinds:
                found.append(LeftOver(kind=kinds[0], argv=tuple(map(str, probe.get("argv", ()))), line=line.strip()))
    return tuple(found)


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no entry in the user database, as in a container
        return ""
