"""What names a person, a machine or a network: by its form in any text, and by the names this machine alone knows."""

from __future__ import annotations

import getpass
import platform
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import UsageError
from ..workspace import home_folder
from .secrets import rules

_ZERO_UUID = "00000000-0000-0000-0000-000000000000"
HOST_NAME = "mac.local"

# In the answers of probes.
MACHINE = rules(
    (
        "serial number",
        r"(?i)(serial[ _]?number[^:=\n]{0,80}\"?\s{0,8}[:=]\s{0,8}<?\"?)(?!X{10})[A-Z0-9][\w/.-]{4,}",
        r"\g<1>XXXXXXXXXX",
    ),
    (
        "serial number",
        r"(?i)(<key>serial_number</key>\s{0,40}<string>)(?!X{10})[^<]+",
        r"\g<1>XXXXXXXXXX",
    ),
    (
        "UUID",
        r"\b(?!0{8}-)[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}\b",
        _ZERO_UUID,
    ),
    ("UDID", r"\b(?!0{8}-)[0-9A-Fa-f]{8}-[0-9A-Fa-f]{16}\b", "00000000-0000000000000000"),
    ("hardware address", r"\b(?!00:00:00)(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b", "00:00:00:00:00:00"),
    ("network name", r"//(?!user@server/share)[^/@\s]{1,200}@[^/\s]{1,253}/\S*", "//user@server/share"),
    ("network name", r"(?m)^(?!server:/share)[\w.-]+:/\S+(?=\s+\d)", "server:/share"),
    (
        "mail address",
        r"(?<![\w.+-])(?!user@)[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{0,190}[a-z]\b",
        "user@example.org",
    ),
    (
        "name of a person, a machine or a network",
        r"(?im)^([ \t]{0,80}\"?(?:Computer Name|User Name|Local Host ?name|Host ?name|SSID|Current Network|Owner)"
        r"\"?[ \t]{0,8}[:=][ \t]{0,8})"
        r"(?!removed$)\S.*$",
        r"\g<1>removed",
    ),
    ("home folder", r"/(Users|home)/(?!user\b|Shared\b)[^/\s:'\")]+", r"/\g<1>/user"),
    ("host name", r"(?m)^(Darwin|Linux) (?!mac\.local )\S+ (?=\d)", rf"\g<1> {HOST_NAME} "),
)

# Ranges of addresses that no public machine has.
_PRIVATE = r"(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}(?!\d)"
_USER = r"(?!user\b|removed\b)[A-Za-z_][\w.-]{0,63}"
_HOST = r"(?!mac\b|removed\b)[A-Za-z0-9][\w-]{0,62}"

# In logs and other texts besides.
IDENTIFIERS = rules(
    (
        "user name",  # what stands behind a word that says so
        rf"(?i)((?<![\w.-])(?:user ?name|(?:sudo_)?user|logname|login|owner)[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']?){_USER}",
        r"\g<1>user",
    ),
    ("user name", rf"(?i)(\blogged in as |\buid=\d{{1,10}}\(){_USER}", r"\g<1>user"),
    ("user name", rf"(?m)^([bcdlps-][r-][w-][-\w]{{7}}[@+.]?\s{{1,8}}\d{{1,9}} ){_USER}(?=\s)", r"\g<1>user"),
    (
        "user name",  # a shell's prompt
        r"(?m)^(?!user@mac )(\(\w{1,40}\) )?[A-Za-z_][\w.-]{0,63}@[\w-]{1,63}(?= [^\s%$#]{1,200} [%$#](?: |$))",
        r"\g<1>user@mac",
    ),
    (
        "host name",
        r"(?i)((?<![A-Za-z])(?:host_?name|computer_?name|localhostname|nodename|(?:runner|machine)[ _]name)"
        rf"[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']?){_HOST}",
        r"\g<1>mac",
    ),
    ("host name", rf"(?i)((?:resolve|to|on) host(?:name)?:? ){_HOST}(?![\w.-])", r"\g<1>mac"),
    (
        "host name",  # a line of the system's log
        rf"(?m)^([A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d ){_HOST}(?= [\w.-]{{1,80}}\[\d)",
        r"\g<1>mac",
    ),
    ("IP address", rf"(?<=@){_PRIVATE}", "0.0.0.0"),
    ("IP address", rf"(?<![\d.])(?<!==)(?!10\.){_PRIVATE}", "0.0.0.0"),
    ("IP address", r"\bip-(?!0-0-0-0)(?:\d{1,3}-){3}\d{1,3}\b", "ip-0-0-0-0"),
    (
        "network name",
        r"(?<![\w.+/-])(?!user@)[\w.+-]{1,64}@[\w.-]{1,253}:(?!removed\b)(?=\d*[^\d\s])[\w~./-]+",
        "user@host:removed",
    ),
    (
        "IP address",
        r"(?<![\w.@-])(?<!version )(?<!Version )(?<!==)(?!0\.0\.0\.0(?!\d)|127\.|255\.)"
        r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w-]|\.\w)",
        "0.0.0.0",
    ),
    (
        "IP address",
        r"(?<![\w:.])(?:[23][0-9A-Fa-f]{3}|[fF][c-fC-F][0-9A-Fa-f]{2}):[0-9A-Fa-f:]{1,36}"
        r"(?:(?:\d{1,3}\.){3}\d{1,3})?(?:%\w{1,16})?(?![\w:])",
        "::",
    ),
    (
        "host name",
        r"(?<![\w.-])(?<![^/]/)(?!mac\.local\b)[A-Za-z0-9][\w-]{0,62}\.(?:local|lan|home|internal|intranet|corp|localdomain|fritz\.box)(?![\w-]|\.\w)",
        "mac.local",
    ),
    (
        "host name",
        r"(?<![\w-])(?!mac-)[A-Za-z0-9]{2,32}-(?:MacBook|iMac|Mac-?mini|Mac-?Studio|Mac-?Pro)(?:-[\w-]{1,32}|\b)",
        "mac",
    ),
    ("host name", r"\b[A-Z]\w{1,30}['\u2019]s (?:MacBook|iMac|Mac)(?: (?:Pro|Air|mini|Studio))?", "a Mac"),
    (
        "name of a disk",
        r"(/Volumes/)(?!disk\b|Macintosh HD\b)(?:[^/\n:'\"()]{1,100}(?=/)|[^/\s:'\"()]+)",
        r"\g<1>disk",
    ),
    (
        "home folder",
        r"(?i)(\b[A-Z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/))(?!user\b|Public\b)[^\\/\s:'\"]+",
        r"\g<1>user",
    ),
    ("hardware address", r"\b(?!00-00-00)(?:[0-9a-fA-F]{2}-){5}[0-9a-fA-F]{2}\b", "00-00-00-00-00-00"),
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Words that name this person or machine, and what takes their place."""

    words: Mapping[str, tuple[str, str]]

    @classmethod
    def of_this_machine(cls) -> Identity:
        """Return the names to take out of a recording made here: home, host name, user and full name."""
        words: dict[str, tuple[str, str]] = {}
        home = _home()
        if len(home) > 1 and home != "/root":
            words[home] = ("home folder", "/Users/user")
        for name in {platform.node(), platform.node().split(".", 1)[0]}:
            if len(name) >= 3 and name.lower() not in NOBODY:
                words[name] = ("host name", HOST_NAME)
        user = _user_name()
        if len(user) >= 3 and user.lower() not in NOBODY:
            words[user] = ("user name", "user")
        return cls(words=words)

    def take_out(self, text: str, removed: Counter[str]) -> str:
        """Return the text without these words; `removed` counts them by kind."""
        for word, (kind, instead) in sorted(self.words.items(), key=lambda item: -len(item[0])):
            # A user's name stands in file names beside digits too (jdoe2026.log); capitals may follow (jdoeBuild).
            digit = "" if kind == "user name" and len(word) >= 4 else "0-9"
            text, count = re.subn(rf"(?<![A-Za-z{digit}])(?i:{re.escape(word)})(?![a-z{digit}])", instead, text)
            removed[kind] += count
        return text


def _home() -> str:
    try:
        return str(home_folder())
    except UsageError:  # without one, no path can name it
        return ""


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no entry in the user database, as in a container
        return ""
