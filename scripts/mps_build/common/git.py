"""The git calls of the source step, as commands; their progress text, as numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from .addresses import SCHEMES
from .errors import SourceError, UsageError
from .faults import said_of_machine
from .git_settings import NEUTRAL, neutral_environ
from .process import FETCH_SECONDS, Command, CommandFailed, capture, run_logged

# What git itself may speak, where a mirror of the caller's leads it.
TRANSPORTS = (*SCHEMES, "http", "git")
SETTINGS = (
    *NEUTRAL,
    "protocol.file.allow=always",
    # A server that drips: GIT_HTTP_LOW_SPEED_LIMIT and _TIME, which pass to git, say otherwise.
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=120",
)
# A commit of PyTorch and its submodules have 1 GB.
MOST_BYTES = 32 << 30
_RECEIVED = re.compile(r"(\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB)")
_UNIT = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_NETWORK = (
    "could not resolve host",
    "unable to connect",
    "connection refused",
    "connection reset",
    "could not read from remote",
    "early eof",
    "the remote end hung up",
    "network is unreachable",
    "operation timed out",
    "failed to connect",
    "rpc failed",
    "unexpected disconnect",
    "operation too slow",
)


_DAMAGE = ("corrupt", "bad object", "inflate:", "unable to unpack", "missing blob", "missing tree", "bad tree object")


class DamagedRepository(SourceError):
    """git found its own files broken: worth a fresh copy, where a dead network is not."""


def git(*arguments: str, cwd: Path | None = None, environ: Mapping[str, str]) -> Command:
    """Return a git call that asks nobody, runs no hook, and reads only those of the caller's settings that stay.

    Transports that run a program named in an address (ext::, fd::) are off for all it fetches, submodules too;
    file:// submodules of our own mirror are taken.

    Raises:
        SourceError: the caller's settings cannot be read.
    """
    options = tuple(word for setting in SETTINGS for word in ("-c", setting))
    own = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": ":".join(TRANSPORTS)}
    return Command(argv=("git", *options, *arguments), cwd=cwd, environ={**neutral_environ(environ), **own})


def check_ref(ref: str) -> None:
    """Refuse a ref that git could take for an option or a range.

    Raises:
        UsageError: it begins with a dash, or holds what no ref may (https://git-scm.com/docs/git-check-ref-format).
    """
    if ref.startswith("-") or not re.fullmatch(r"[^\x00-\x20\x7f~^:?*\[\\]+", ref) or ".." in ref or "@{" in ref:
        raise UsageError(f"{ref!r} is not a branch, a tag or a commit", hint="give a branch, a tag, or all 40 digits")


def answer(command: Command, *, timeout_seconds: float = 60.0, errors: str = "replace") -> str:
    """Return what git printed, without its last line break.

    Args:
        errors: what becomes of bytes that are not UTF-8; names of files keep them by "surrogateescape".

    Raises:
        SourceError: git failed; its own words are in the message.
    """
    captured = capture(command, timeout_seconds=timeout_seconds, errors=errors)
    if not captured.ok:
        said = captured.stderr.strip()
        check_machine(said, during="while git works")
        raise SourceError(f"`{_short(command)}` failed: {said or captured.exit}", hint=_hint(said) if said else None)
    return captured.stdout.strip("\n")


def check_machine(said: str, *, during: str) -> None:
    """Raise what git said of the disk.

    Raises:
        DiskFull: no space is left.
        HostError: the disk fails.
    """
    if (fault := said_of_machine(said, during=during)) is not None:
        raise fault


def ask_remote(repository: str, *references: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a repository's branches and tags of these names stand for: name -> commit.

    Raises:
        SourceError: it cannot be reached, or there is none.
    """
    command = git("ls-remote", "--", repository, *references, environ=environ)
    captured = capture(command, timeout_seconds=60.0)
    said = captured.stderr.strip()
    if captured.timed_out or (not captured.ok and _is_network(said)):
        last = said.splitlines()[0] if said else "no word"
        raise SourceError(
            f"{repository} cannot be reached, and the cache does not have it: {last}",
            hint="check the network; set https_proxy for a proxy; to build your own tree without one: --source FOLDER",
        )
    if not captured.ok:
        raise SourceError(f"`{_short(command)}` failed: {said or captured.exit}", hint=_hint(said))
    rows = (line.partition("\t") for line in captured.stdout.splitlines())
    return {name: commit for commit, _, name in rows if name}


def succeeds(command: Command) -> bool:
    """Say whether git ends well.

    Raises:
        SourceError: it did not answer in time, which is neither yes nor no.
    """
    captured = capture(command, timeout_seconds=60.0)
    if captured.timed_out:
        raise SourceError(
            f"`{_short(command)}`: {captured.stderr}",
            hint="check whether the disk or a network folder is slow, then run the same command again",
        )
    return captured.ok


def run_git(
    command: Command,
    *,
    log: Path,
    on_bytes: Callable[[int], None] = lambda count: None,
    most_bytes: int = MOST_BYTES,
    timeout_seconds: float = FETCH_SECONDS,
) -> None:
    """Run git for its work, telling the bytes received so far.

    Raises:
        SourceError: with a hint that tells a dead network from a missing commit; or a limit was passed.
        DiskFull: no space is left.
        HostError: the disk fails.
    """

    def watch(line: str) -> None:
        if line.startswith("Receiving objects") and (match := _RECEIVED.search(line)):
            received = int(float(match[1]) * _UNIT[match[2]])
            if received > most_bytes:
                raise SourceError(
                    f"`{_short(command)}` received {received} bytes; the limit is {most_bytes}",
                    hint="check that the address is the repository's; --source FOLDER builds a tree that you have",
                )
            on_bytes(received)

    try:
        run_logged(command, log=log, on_line=watch, timeout_seconds=timeout_seconds)
    except CommandFailed as failure:
        text = " ".join(line for line in failure.tail if "Receiving objects" not in line).strip()
        check_machine("\n".join(failure.tail), during="while git works")
        kind = DamagedRepository if any(word in text for word in _DAMAGE) else SourceError
        raise kind(f"{text[-600:] or failure} (log: {log})", hint=_hint(text)) from failure


def no_git_hint(text: str) -> str | None:
    """Return what to do where Apple's shim speaks in git's place; None where git itself did.

    >>> no_git_hint("xcode-select: note: No developer tools were found, requesting install.")
    '/usr/bin/git found no developer tools: `nox -s doctor` says what to install, in order'
    """
    if re.search(r"(?m)^(?:xcrun|xcode-select): |Xcode(?:/iOS| and Apple SDKs)? license", text):
        return "/usr/bin/git found no developer tools: `nox -s doctor` says what to install, in order"
    return None


def _short(command: Command) -> str:
    """Return a call without the settings that all of them have."""
    return str(replace(command, argv=("git", *command.argv[1 + 2 * len(SETTINGS) :])))


def _is_network(text: str) -> bool:
    lowered = text.lower()
    return any(words in lowered for words in _NETWORK)


def _hint(text: str) -> str:
    lowered = text.lower()
    if hint := no_git_hint(text):
        return hint
    if _is_network(text):
        return "the network failed; run the same command again to fetch what is missing"
    if "not our ref" in lowered or "couldn't find remote ref" in lowered or "no such remote ref" in lowered:
        return "this repository has no such commit or ref: check --ref, or the recipe's commit"
    if "does not appear to be a git repository" in lowered or "not found" in lowered:
        return "there is no git repository at this address: check --source or --repo"
    return "the log has git's whole output; run the same command again to fetch what is missing"
