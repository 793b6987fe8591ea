"""The environment that programs of ours get: given whole, by allow-list, never inherited.

In PyTorch 2.12 and 2.13 one `;` in *any* inherited variable silently drops USE_MPS=1
(https://github.com/pytorch/pytorch/pull/188242); Homebrew and conda headers leak in by CPATH.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import UsageError

if TYPE_CHECKING:  # pydantic's models cost a tenth of a second; an audit of a fetched wheel needs none of them
    from .recipe.model import Recipe

SYSTEM_PATH = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")
# Compilers need a home and a place for temporary files; nothing else of the caller's.
_BUILD_NAMES = frozenset({"HOME", "TMPDIR", "USER", "LOGNAME", "TERM", "GITHUB_ACTIONS"})
_BUILD_PREFIXES = ("CCACHE_", "SCCACHE_")
# pip and git need the way out: proxies, certificates, their own settings.
_FETCH_NAMES = _BUILD_NAMES | {
    "PATH",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "SSH_AUTH_SOCK",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    # git, otool, install_name_tool and codesign in /usr/bin are shims: each asks for the chosen Xcode.
    "DEVELOPER_DIR",
}
_FETCH_PREFIXES = ("PIP_", "UV_")
# Of git's variables only those that say how it reaches a server, which settings it reads and what it logs. The others
# name a repository, its index or its objects (set by hooks and in linked worktrees: git would work on that one), or a
# program to run. GIT_CONFIG_* can name programs too: it is the caller's own word, like his ~/.gitconfig.
# https://git-scm.com/docs/git#_environment_variables
_GIT_PASSES = re.compile(
    r"GIT_(?:CONFIG_(?:COUNT|KEY_\d+|VALUE_\d+|PARAMETERS|GLOBAL|SYSTEM|NOSYSTEM)|ATTR_NOSYSTEM"
    r"|SSH|SSH_COMMAND|SSH_VARIANT|ASKPASS|TERMINAL_PROMPT|PROTOCOL_FROM_USER|HTTP_\w+|SSL_\w+|PROXY_\w+"
    r"|TRACE(?:_\w+|2|2_\w+)?|TRANSFER_TRACE|CURL_VERBOSE|REDACT_COOKIES|FLUSH|OPTIONAL_LOCKS)"
)
_LOCALE = {"LC_ALL": "C.UTF-8" if os.uname().sysname != "Darwin" else "en_US.UTF-8"}
_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """The compilers of a build: what they add to PATH and to the environment, each with its reason."""

    name: str
    path: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)


def fetch_environ(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of pip and git."""
    git = {name: value for name, value in inherited.items() if _GIT_PASSES.fullmatch(name)}
    return _allowed(inherited, _FETCH_NAMES, _FETCH_PREFIXES) | git | _LOCALE


def without_repository(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for any program of ours, git among them: no variable leads git to another repository.

    >>> without_repository({"GIT_DIR": "/other/.git", "GIT_SSH": "ssh", "HOME": "/root"})
    {'GIT_SSH': 'ssh', 'HOME': '/root'}
    """
    return {
        name: value for name, value in inherited.items() if not name.startswith("GIT_") or _GIT_PASSES.fullmatch(name)
    }


def repair_environ(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of delocate: Apple's otool and codesign come before those of Homebrew and conda."""
    environ = fetch_environ(inherited)
    return environ | {"PATH": os.pathsep.join([*SYSTEM_PATH, *filter(None, [environ.get("PATH")])])}


def build_environ(
    recipe: Recipe,
    *,
    inherited: Mapping[str, str],
    venv: Path,
    toolchain: Toolchain,
    jobs: int,
    epoch: int,
    settings: Mapping[str, str],
    extra: Mapping[str, str],
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the compilers' whole environment, and the reason beside each variable that is not plain housekeeping.

    Later wins: the recipe's variables, the toolchain's, `extra` (the pipeline's own), `settings` (--set).
    """
    environ = _allowed(inherited, _BUILD_NAMES, _BUILD_PREFIXES) | _LOCALE
    environ["PATH"] = os.pathsep.join([str(venv / "bin"), *SYSTEM_PATH, *toolchain.path])
    environ["VIRTUAL_ENV"] = str(venv)
    environ["MAX_JOBS"] = environ["CMAKE_BUILD_PARALLEL_LEVEL"] = str(jobs)
    environ["SOURCE_DATE_EPOCH"] = str(epoch)
    # Bytecode of the venv would differ from run to run, and nothing needs it.
    environ["PYTHONDONTWRITEBYTECODE"] = "1"
    reasons = {
        "MAX_JOBS": "one job per 2 GB of memory",
        "SOURCE_DATE_EPOCH": "the commit's date: same inputs, same bytes",
    }
    for variable in recipe.environment:
        environ[variable.name], reasons[variable.name] = variable.value, variable.reason
    environ |= toolchain.variables
    reasons |= toolchain.reasons
    environ |= extra
    environ |= settings
    reasons |= dict.fromkeys(settings, "asked for with --set")
    return environ, reasons


def comparable(environ: Mapping[str, str], venv: Path, *, profile: str = "release") -> dict[str, str]:
    """Return the variables that decide what libtorch is: not the home, the job count, or one Python's names.

    In `develop` the version passes too: it says "dirty" from the first edit on, and a commit's name after each commit.
    """
    passing = {
        "SETUPTOOLS_EXT_SUFFIX",
        "HOME",
        "TMPDIR",
        "USER",
        "LOGNAME",
        "TERM",
        "MAX_JOBS",
        "CMAKE_BUILD_PARALLEL_LEVEL",
        "GITHUB_ACTIONS",
    } | ({"PYTORCH_BUILD_VERSION"} if profile == "develop" else set())
    return {
        name: value.replace(str(venv), "VENV")
        for name, value in sorted(environ.items())
        if name not in passing and not name.startswith(("CCACHE_", "SCCACHE_", "AWS_"))
    }


def parse_settings(texts: Iterable[str]) -> dict[str, str]:
    """Return NAME=VALUE arguments as a mapping.

    Raises:
        UsageError: an argument of another form, or a value that CMake's lists or a log line would tear apart.
    """
    settings: dict[str, str] = {}
    for text in texts:
        match = _SETTING.fullmatch(text)
        if not match:
            raise UsageError(f"--set {text!r} is not NAME=VALUE", hint="for example: --set USE_DISTRIBUTED=0")
        name, value = match.groups()
        if ";" in value or "\n" in value or "\0" in value:
            raise UsageError(
                f"--set {name}: the value holds a semicolon or a line break, which CMake takes for a list's separator",
                hint="separate folders with a colon",
            )
        settings[name] = value
    return settings


def check_path(path: Path, *, what: str) -> None:
    """Refuse a folder whose name no CMake project survives.

    Raises:
        UsageError: the path holds a semicolon, a line break, or a colon (PATH is split there).
    """
    bad = next((letter for letter in ";:\n\r\0" if letter in str(path)), None)
    if bad:
        raise UsageError(
            f"{what} {str(path)!r} holds {bad!r}: CMake and PATH split there",
            hint="set MPS_BUILD_WORK to a folder without it",
        )


def _allowed(inherited: Mapping[str, str], names: Iterable[str], prefixes: tuple[str, ...]) -> dict[str, str]:
    wanted = frozenset(names)
    return {name: value for name, value in inherited.items() if name in wanted or name.startswith(prefixes)}
