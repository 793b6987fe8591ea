"""The environment that programs of ours get: given whole, by allow-list, never inherited.

In PyTorch 2.12 and 2.13 one `;` in *any* inherited variable silently drops USE_MPS=1
(https://github.com/pytorch/pytorch/pull/188242); Homebrew and conda headers leak in by CPATH.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """The compilers of a build: what they add to PATH and to the environment, each with its reason."""

    name: str
    path: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)


def compiler_environ(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return what compilers get of the caller's variables."""
    return _allowed(inherited, _BUILD_NAMES, _BUILD_PREFIXES) | _LOCALE


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


def _allowed(inherited: Mapping[str, str], names: Iterable[str], prefixes: tuple[str, ...]) -> dict[str, str]:
    wanted = frozenset(names)
    return {name: value for name, value in inherited.items() if name in wanted or name.startswith(prefixes)}
