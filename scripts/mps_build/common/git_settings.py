"""What git gets of the caller's settings: how it reaches a server, and nothing that changes a byte or hides a file.

A list of what stays, since nobody can list what must go: any filter, attribute or `diff.*` of a ~/.gitconfig may change
what git writes, or what it says of it. docs/security.md shows the list.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from .environment import without_repository
from .errors import SourceError
from .process import Command, capture

# Ways to a server, who one is there, and whose repositories may be read. https://git-scm.com/docs/git-config#_variables
STAYING = (
    "http.*",
    "credential.*",
    "url.*",
    "core.sshCommand",
    "core.askPass",
    "core.gitProxy",
    "ssh.variant",
    "safe.*",
)
_STAYS = re.compile("|".join(re.escape(name).replace(r"\*", ".+") for name in STAYING), re.IGNORECASE | re.DOTALL)
# In the caller's repository and for git before 2.32, which knows no GIT_CONFIG_GLOBAL: what has one name.
NEUTRAL = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.autocrlf=false",
    "core.eol=lf",
    "core.safecrlf=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.sharedRepository=false",
    "core.quotePath=true",
    "color.ui=false",
    "log.showSignature=false",
    "submodule.recurse=false",
    "gc.auto=0",
)
_ROOT = Path(os.sep)
_CONFIGURED = re.compile(r"GIT_CONFIG(?:_\w+)?")
# All that decides which files git takes settings from.
_WHERE = ("HOME", "XDG_CONFIG_HOME", "PATH", "DEVELOPER_DIR")


def neutral_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which git reads no settings but those of the caller's that stay.

    They go through variables, never through arguments, which everybody on the machine can read: they may hold a token.

    Raises:
        SourceError: the caller's settings cannot be read.
    """
    own = without_repository(environ)
    where = tuple((name, value) for name, value in sorted(own.items()) if name in _WHERE or _CONFIGURED.fullmatch(name))
    stays = _staying(where)
    return {
        **{name: value for name, value in own.items() if not _CONFIGURED.fullmatch(name)},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": os.devnull,
        "GIT_CONFIG_COUNT": str(len(stays)),
        **{f"GIT_CONFIG_KEY_{number}": name for number, (name, _) in enumerate(stays)},
        **{f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(stays)},
    }


@lru_cache(maxsize=32)
def _staying(where: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    # Not in the folder where the caller stands: a repository there has settings of its own.
    command = Command(argv=("git", "config", "--list", "--null", "--includes"), cwd=_ROOT, environ=dict(where))
    answer = capture(command, timeout_seconds=60.0)
    if "fatal:" in answer.stderr and "config" in answer.stderr:
        raise SourceError(
            f"git cannot read your settings: {answer.stderr.strip()}",
            hint="correct the file that it names; `git config --list --show-origin` lists them",
        )
    if not answer.ok:
        return ()  # no git, or Apple's shim: the call that follows says it better
    rows = (entry.partition("\n") for entry in filter(None, answer.stdout.split("\0")))
    return tuple((name, value if newline else "true") for name, newline, value in rows if _STAYS.fullmatch(name))
