"""How pip is called where it queries a network, within limits; and the newest pre-release that an index has.

What it fetches is printed as well: file, host and hash. What runs (`EXECUTED`) must come with a hash of the index.
Nobody has tried the pre-releases on the real index of nightlies: the tests query one on this machine.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from packaging.version import Version

from ..errors import RefusedForSafety, SourceError, UsageError
from ..json_text import parse_json
from ..process import FETCH_SECONDS, Command, capture, run_logged
from ..workspace import expanded
from .limited_pip import FETCH, PAUSE

_CONSTRAINT = re.compile(r"The user requested \(constraint\) (\S.*)")
_UNCHECKED = re.compile(r"(\S+ gives no sha256 of .+?: it would run unchecked)")
# OpenSSL's words, and those of the systems' own verifiers.
_CERTIFICATE = re.compile(
    r"certificate[ _]verify[ _]failed|SSLCertVerificationError|problem confirming the ssl certificate", re.IGNORECASE
)
_ITS_FAULT = (
    re.compile(r"certificate verify failed: ([^(\n'\"]+)"),
    re.compile(r"confirming the ssl certificate: ([^(\n'\"]+)"),
)
_HOST = re.compile(r"(?:host='|Could not fetch URL https?://)([\w.-]+)")
_PROGRAM = Path(__file__).with_name("limited_pip.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a package server may ask of us.

    Attributes:
        pause_seconds: the longest pause taken between two tries; a server that asks for more (Retry-After) is reported.
        window_seconds: over so long a wait for one answer, `least_rate` bytes a second must come.
        page_bytes: of one page of an index, or a file's metadata.
        body_bytes: of one file; torch for CUDA has 1 GB.
        total_seconds: of one call of pip.
        needs_hash: refuse a file of which the index gives no sha256 or stronger: it is going to run.
    """

    pause_seconds: float = 60.0
    window_seconds: float = 60.0
    least_rate: float = 1000.0
    page_bytes: int = 64 << 20
    body_bytes: int = 8 << 30
    total_seconds: float = FETCH_SECONDS
    needs_hash: bool = False


LIMITS = Limits()
# Of what will run: what the index's owner did not put there is not fetched.
EXECUTED = replace(LIMITS, needs_hash=True)
# Of a call whose output is read at its end: a longer pause could not be reported while it is taken.
QUESTION = replace(LIMITS, pause_seconds=5.0)


def limited_pip(python: Path | str, *, limits: Limits = LIMITS, beside: Path | None = None) -> tuple[str, ...]:
    """Return how the pip of an interpreter is called where it asks a network; `python -m pip`, held to limits.

    Args:
        beside: a folder that the interpreter can read, where it cannot read ours (it runs in a root of its own).
    """
    program = _PROGRAM
    if beside is not None:
        program = Path(shutil.copy2(_PROGRAM, beside))
    numbers = (limits.pause_seconds, limits.window_seconds, limits.least_rate, limits.page_bytes, limits.body_bytes)
    return (str(python), str(program), ",".join(map(str, (*numbers, int(limits.needs_hash)))))


def limits_of_run(*, trust: bool) -> Limits:
    """Return the limits of a pip whose files will run; `trust` takes them without a hash too."""
    return LIMITS if trust else EXECUTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A file that pip fetched: from which host, and its hash by the index (`sha256:…`); None: no strong one."""

    file: str
    host: str
    hash: str | None
    weak: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What is printed of it."""
        if self.hash is not None:
            return f"{self.file} from {self.host}, {self.hash.replace(':', ' ', 1)}"
        only = f"only its {' and '.join(self.weak)}" if self.weak else "no hash of it"
        return f"{self.file} from {self.host}, which gives {only}: what was fetched may be another file"


def run_pip(
    command: Command,
    *,
    log: Path,
    tell: Callable[[str], None],
    on_line: Callable[[str], None] | None = None,
    limits: Limits = LIMITS,
    wrap: Callable[[Command], Command] = lambda command: command,
    every: bool = True,
) -> tuple[Fetched, ...]:
    """Run a `limited_pip` for its work; `tell` hears of each pause that a server asks for, and of what is fetched.

    Args:
        every: tell of every file; else of those alone of which the index gives no hash.

    Raises:
        CommandFailed: pip failed, or a limit was passed: its last lines say which, and what the server did.
    """
    found: list[Fetched] = []

    def watch(line: str) -> None:
        if line.startswith(FETCH):
            reported = parse_json(line.removeprefix(FETCH))
            found.append(
                Fetched(
                    file=reported["file"],
                    host=reported["host"],
                    hash=reported["hash"],
                    weak=tuple(map(str, reported["weak"])),
                )
            )
            if every or found[-1].hash is None:
                tell(found[-1].words)
        elif line.startswith(PAUSE):
            tell(line.removeprefix(PAUSE))
        elif on_line is not None:
            on_line(line)

    environ: Mapping[str, str] = command.environ if command.environ is not None else os.environ
    # A pip that is killed leaves what it was fetching in its temporary folder.
    with tempfile.TemporaryDirectory(prefix="mps-build-pip-") as folder:
        held = replace(command, environ={**environ, "TMPDIR": folder})
        run_logged(wrap(held), log=log, on_line=watch, timeout_seconds=limits.total_seconds)
    return tuple(found)


def refused_unchecked(text: str, *, wanted: object) -> RefusedForSafety | None:
    """Return the error if a file was refused because the index gives no hash of it; None if none was."""
    if (found := _UNCHECKED.search(text)) is None:
        return None
    return RefusedForSafety(
        f"{wanted}: {found[1]}",
        hint="--trust runs it all the same; or download the wheel from a place that you trust, and give the file",
    )


def certificate_fault(text: str, *, wanted: object) -> tuple[str, str] | None:
    """Return what is wrong and a hint, if pip said that a server's certificate is not accepted; else None.

    >>> certificate_fault("x host='a.org', port=443): x [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "
    ...                   "self-signed certificate (_ssl.c:1006)", wanted="torch")[0]
    'torch: the certificate of a.org is not accepted: self-signed certificate'
    """
    if not (found := _CERTIFICATE.search(text)):
        return None
    host = next((match[1] for match in _HOST.finditer(text, 0, found.end() + 2000)), "the package index")
    said = next((match[1].strip().rstrip(".") for each in _ITS_FAULT if (match := each.search(text))), None)
    reason = said or "it cannot be verified"
    return (
        f"{wanted}: the certificate of {host} is not accepted: {reason}",
        "whoever answers may not be that host: check the address; behind a proxy with an authority of its own, "
        "name that authority's file in PIP_CERT (and SSL_CERT_FILE)",
    )


def forbidden_by_settings(text: str, *, wanted: object) -> UsageError | None:
    """Return the error if pip said that a constraint of the user's own settings forbids it; None if it did not.

    pip reads constraints from PIP_CONSTRAINT and its settings: https://pip.pypa.io/en/stable/topics/configuration/
    """
    if (found := _CONSTRAINT.search(text)) is None:
        return None
    return UsageError(
        f"pip's own settings do not allow {wanted}: a constraint says {found[1].strip()}",
        hint="`pip config list` names the file; PIP_CONSTRAINT=/dev/null before the command leaves it out once",
    )


VARIABLE = "MPS_BUILD_NIGHTLY_INDEX"
_LISTED = re.compile(r"^Available versions: (.*)$", re.MULTILINE)


def index_arguments(index: str | None) -> tuple[str, ...]:
    """Return pip's arguments for a folder of wheels, a folder that is a package index, or an address.

    Raises:
        UsageError: it is neither.
    """
    if index is None:
        return ()
    folder = expanded(index)
    if folder.is_dir():
        if (folder / "torch" / "index.html").is_file():
            return ("--index-url", folder.resolve().as_uri())
        if not any(folder.glob("torch-*.whl")):
            raise UsageError(f"--index {index}: holds no wheel of torch", hint="a folder of wheels, or an address")
        return ("--no-index", "--find-links", str(folder.resolve()))
    if urlsplit(index).scheme not in ("http", "https", "file"):
        raise UsageError(
            f"--index {index}: is neither a folder nor an address", hint="a folder of wheels, or an address"
        )
    return ("--index-url", index)


def nightly_index(given: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the index of nightlies: the one given, else the one configured; None leaves it to pip's settings."""
    return given or environ.get(VARIABLE) or None


def index_variables(index: str | None) -> dict[str, str]:
    """Return pip's variables with which it finds a nightly, and what the nightly requires in the usual index.

    The nightly itself is requested by its exact version, so that the second index puts nothing else in its place.
    """
    arguments = index_arguments(index)
    if not arguments:
        return {}
    return {"PIP_FIND_LINKS" if arguments[0] == "--no-index" else "PIP_EXTRA_INDEX_URL": arguments[-1]}


def newest_nightly(
    name: str, *, pip: tuple[str, ...], pythons: Iterable[str], platform: str | None, index: str | None
) -> tuple[Version, str]:
    """Return the newest pre-release of a project, and the first of `pythons` for which there is one.

    Args:
        pip: how pip is called.
        pythons: `3.14`, `3.13t`, ..., the wished one first.
        platform: a platform tag of pip's; None is this machine's.

    Raises:
        UsageError: the index has no pre-release for any of them.
        SourceError: the index cannot be queried.
    """
    queried = []
    for python in pythons:
        queried.append(python)
        versions = [each for each in _versions(name, pip, python, platform, index) if each.is_prerelease]
        if versions:
            return max(versions), python
    where = index or "the index of pip's settings"
    raise UsageError(
        f"{where} has no pre-release of {name} for Python {', '.join(queried)}",
        hint=f"give the index of nightlies with --index ADDRESS, or in {VARIABLE}",
    )


def _versions(
    name: str, pip: tuple[str, ...], python: str, platform: str | None, index: str | None
) -> tuple[Version, ...]:
    abi = f"cp{python.replace('.', '')}"
    short = python.removesuffix("t")
    target: tuple[str, ...] = ("--python-version", short, "--implementation", "cp", "--abi", abi, "--only-binary=:all:")
    target += ("--platform", platform) if platform else ()
    options = ("--disable-pip-version-check", "--no-input", "--retries=2")
    argv = (*pip, *options, "index", "versions", name, "--pre", *target, *index_arguments(index))
    answer = capture(Command(argv=argv, environ={**os.environ, "PIP_NO_COLOR": "1"}), timeout_seconds=180)
    if listed := _LISTED.search(answer.stdout):
        return tuple(version for text in listed[1].split(", ") if (version := _version(text)) is not None)
    if fault := certificate_fault(answer.stderr, wanted=f"the versions of {name}"):
        raise SourceError(fault[0], hint=fault[1])
    if "No matching distribution" in answer.stderr:
        return ()
    raise SourceError(
        f"pip cannot list the versions of {name}: {answer.stderr.strip()[-400:] or 'no answer'}",
        hint="check the network and --index; `pip config list` shows pip's own settings",
    )


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except ValueError:
        return None
