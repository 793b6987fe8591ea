"""Git: texts that are addresses, the source step's calls, the caller's settings, and the mirror in the cache.

Of the settings there is a list of what stays, since nobody can list what must go: any filter, attribute or `diff.*` of
a ~/.gitconfig may change what git writes, or what it says of it. docs/security.md shows the list.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from .environment import without_repository
from .errors import SourceError, UsageError
from .files import locked, said_of_machine
from .process import FETCH_SECONDS, Command, CommandFailed, capture, run_logged
from .workspace import remove_tree

# What a recipe and a command line may name.
SCHEMES = ("https", "ssh", "file")


def address_fault(text: str, *, schemes: tuple[str, ...] = SCHEMES) -> str | None:
    """Return why a text is not the address of a repository; None for https, ssh and file addresses, and for paths.

    >>> address_fault("https://github.com/pytorch/pytorch.git"), address_fault("git@github.com:pytorch/pytorch")
    (None, None)
    >>> address_fault("--upload-pack=touch x")
    'begins with a dash: git would take it for an option'
    """
    if not text or not text.isprintable():
        return "is empty, or holds a control character"
    if text.startswith("-"):
        return "begins with a dash: git would take it for an option"
    scheme, is_url, rest = text.partition("://")
    if "::" in text.partition("/")[0]:
        return f"runs a program, git-remote-{text.partition('::')[0]}"
    if is_url and "/" not in scheme:
        if scheme not in schemes:
            return f"is an address of {scheme}, not of {', '.join(schemes)}"
        return "names a host that begins with a dash" if rest.rpartition("@")[2].startswith("-") else None
    host = text.partition(":")[0] if ":" in text.partition("/")[0] else ""
    return "names a host that begins with a dash" if host.rpartition("@")[2].startswith("-") else None


def check_address(text: str, *, what: str, schemes: tuple[str, ...] = SCHEMES) -> None:
    """Refuse what is not the address of a repository.

    Raises:
        UsageError: naming the fault.
    """
    if fault := address_fault(text, schemes=schemes):
        raise UsageError(f"{what} {text!r} {fault}", hint="give an https, ssh or file address, or a path")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """The bare repository that stands for one address."""

    url: str
    path: Path
    environ: Mapping[str, str]
    log: Path

    def has(self, commit: str) -> bool:
        """True if the commit was fetched whole (its ref is written only after the fetch succeeded)."""
        if not (self.path / "HEAD").is_file():
            return False
        ask = git(
            "rev-parse", "-q", "--verify", f"refs/mps-build/{commit}^{{commit}}", cwd=self.path, environ=self.environ
        )
        return succeeds(ask)

    def fetch(
        self, commit: str, *, offline: bool = False, on_bytes: Callable[[int], None] = lambda count: None
    ) -> None:
        """Make the commit present.

        Raises:
            SourceError: offline and it is not here; or the network failed; or there is no such commit.
        """
        if self.has(commit):
            return
        if offline:
            raise SourceError(
                f"{commit[:12]} of {self.url} is not in the cache, and --offline does not allow fetching it",
                hint="run once without --offline",
            )
        with self._held():
            if not (self.path / "HEAD").is_file():
                answer(git("init", "-q", "--bare", "--template=", "--", str(self.path), environ=self.environ))
                answer(git("config", "uploadpack.allowAnySHA1InWant", "true", cwd=self.path, environ=self.environ))
            fetch = (
                "fetch",
                "--progress",
                "--no-tags",
                "--depth=1",
                "--",
                self.url,
                f"+{commit}:refs/mps-build/{commit}",
            )
            run_git(git(*fetch, cwd=self.path, environ=self.environ), log=self.log, on_bytes=on_bytes)

    def check_out(self, commit: str, destination: Path) -> None:
        """Put the commit's files into `destination`, a repository of its own (it outlives the mirror)."""
        destination.mkdir(parents=True, exist_ok=True)
        run_git(git("init", "-q", "--template=", "--", str(destination), environ=self.environ), log=self.log)
        fetch = git(
            "fetch", "-q", "--no-tags", "--depth=1", "--", str(self.path), commit, cwd=destination, environ=self.environ
        )
        run_git(fetch, log=self.log)
        checkout = git("checkout", "-q", "--force", "--detach", commit, "--", cwd=destination, environ=self.environ)
        run_git(checkout, log=self.log)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """One fetch at a time into one mirror, over threads and processes; what a killed one left is removed."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path.with_suffix(".held")):
            for stale in self.path.glob("*.lock"):
                stale.unlink()
            self._drop_half_packs()
            try:
                yield
            finally:
                self._drop_half_packs()

    def _drop_half_packs(self) -> None:
        """Remove packs that git was receiving: it leaves them, up to a gigabyte, when it is ended."""
        for half in self.path.glob("objects/pack/tmp_*"):
            half.unlink(missing_ok=True)

    def drop(self) -> None:
        """Remove this mirror, found damaged; the next fetch makes a new one."""
        remove_tree(self.path)


def mirror_of(url: str, *, cache: Path, environ: Mapping[str, str], log: Path) -> Mirror:
    """Return the mirror of an address; its folder's name tells the address to a person and is unique."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", url.removesuffix(".git")).strip("-")[-60:]
    name = f"{readable}-{hashlib.sha256(os.fsencode(url)).hexdigest()[:10]}.git"
    return Mirror(url=url, path=cache / "git" / name, environ=environ, log=log)
