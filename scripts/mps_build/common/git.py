"""The git calls of the source step, as commands; their progress text, as numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from .errors import SourceError
from .process import Command, CommandFailed, capture, run_logged

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
)


_DAMAGE = ("corrupt", "bad object", "inflate:", "unable to unpack", "missing blob", "missing tree", "bad tree object")


class DamagedRepository(SourceError):
    """git found its own files broken: worth a fresh copy, where a dead network is not."""


def git(*arguments: str, cwd: Path | None = None, environ: Mapping[str, str]) -> Command:
    """Return a git call that asks nobody, reads no hooks and takes file:// submodules of our own mirror."""
    options = ("-c", "core.hooksPath=/dev/null", "-c", "protocol.file.allow=always", "-c", "gc.auto=0")
    return Command(argv=("git", *options, *arguments), cwd=cwd, environ={**environ, "GIT_TERMINAL_PROMPT": "0"})


def answer(command: Command, *, timeout_seconds: float = 60.0) -> str:
    """Return what git printed, without its last line break.

    Raises:
        SourceError: git failed; its own words are in the message.
    """
    captured = capture(command, timeout_seconds=timeout_seconds)
    if not captured.ok:
        raise SourceError(f"`{command}` failed: {captured.stderr.strip() or captured.exit}")
    return captured.stdout.strip("\n")


def succeeds(command: Command) -> bool:
    return capture(command, timeout_seconds=60.0).ok


def run_git(command: Command, *, log: Path, on_bytes: Callable[[int], None] = lambda count: None) -> None:
    """Run git for its work, telling the bytes received so far.

    Raises:
        SourceError: with a hint that tells a dead network from a missing commit.
    """

    def watch(line: str) -> None:
        if line.startswith("Receiving objects") and (match := _RECEIVED.search(line)):
            on_bytes(int(float(match[1]) * _UNIT[match[2]]))

    try:
        run_logged(command, log=log, on_line=watch)
    except CommandFailed as failure:
        text = " ".join(line for line in failure.tail if "Receiving objects" not in line).strip()
        kind = DamagedRepository if any(word in text for word in _DAMAGE) else SourceError
        raise kind(f"{text[-600:] or failure} (log: {log})", hint=_hint(text)) from failure


def _hint(text: str) -> str:
    lowered = text.lower()
    if any(words in lowered for words in _NETWORK):
        return "the network failed; the same command again goes on with what is still missing"
    if "not our ref" in lowered or "couldn't find remote ref" in lowered or "no such remote ref" in lowered:
        return "this repository has no such commit or ref: check --ref, or the recipe's commit"
    if "does not appear to be a git repository" in lowered or "not found" in lowered:
        return "no git repository is there: check --source or --repo"
    return "the log has git's whole output; the same command again goes on with what is still missing"
