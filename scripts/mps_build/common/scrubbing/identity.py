"""The names of this person and this machine, which only they know: home folder, host name, user name."""

from __future__ import annotations

import getpass
import platform
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import UsageError
from ..home import home_folder
from .identifiers import HOST_NAME

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
