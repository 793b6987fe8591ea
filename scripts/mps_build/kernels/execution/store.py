"""What earlier runs left on disk: compiled code and verdicts, believed if whole, of their key, and of this user."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ...common.errors import BuildEnvironmentError
from ...common.files import write_whole
from ..code.compiled import Code, Fault, Refused, Variable
from ..read.metadata import Metadata, is_bounded
from .frames import as_json

_DIGEST = 32
_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)


class _Head(BaseModel):
    model_config = _STRICT
    metadata: Metadata | None
    body: str
    fault: Fault | None
    reason: str
    variables: tuple[Variable, ...]
    is_cooperative: bool


class Entries:
    """Bytes by key in a folder of one's own (0700); links, files of others and damaged files are no entries."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, key: str) -> Path:
        """Return where an entry is kept."""
        return self._folder / key[:2] / key[2:]

    def load(self, key: str) -> bytes | None:
        """Return what was saved under a key, or None."""
        data = own_file(self.path(key))
        is_whole = data is not None and data[:_DIGEST] == _digest(key, data[_DIGEST:])
        return data[_DIGEST:] if data is not None and is_whole else None

    def save(self, key: str, data: bytes) -> None:
        """Keep bytes; written beside and renamed, so that two runs may do it at once."""
        path = self.path(key)
        make_private(self._folder)
        make_private(path.parent)
        write_whole(path, _digest(key, data) + data, mode=0o600)


def own_file(path: Path) -> bytes | None:
    """Return a file's bytes if it is this user's, and no other can write to it; no link is followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o022:
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def make_private(folder: Path) -> None:
    """Make a folder that this user alone may enter.

    Raises:
        BuildEnvironmentError: it is there, and another user's.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = folder.stat()
    if about.st_uid != os.geteuid():
        raise BuildEnvironmentError(
            f"{folder} belongs to another user, who could put code there that runs here",
            hint="MPS_BUILD_CACHE names a folder of your own",
        )
    if about.st_mode & 0o077:
        folder.chmod(0o700)


def _digest(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + data).digest()


class Store:
    """Compiled kernels by bitcode, translator and machine."""

    def __init__(self, folder: Path, version: str) -> None:
        self._entries, self._version = Entries(folder), version

    def key(self, bitcode: bytes) -> str:
        """Return the key of a kernel's code: of the compiler's version, and of every byte of its bitcode."""
        return hashlib.sha256(self._version.encode() + bitcode).hexdigest()[:40]

    def path(self, bitcode: bytes) -> Path:
        """Return where the compiled code of a kernel is kept."""
        return self._entries.path(self.key(bitcode))

    def load(self, bitcode: bytes) -> Code | Refused | None:
        """Return what was compiled before, or None."""
        data = self._entries.load(self.key(bitcode))
        if data is None:
            return None
        size = int.from_bytes(data[:4], "little")
        try:
            head = _Head.model_validate_json(data[4 : 4 + size])
        except ValidationError:
            return None
        if head.metadata is not None and not is_bounded(head.metadata):
            return None
        if head.fault is not None:
            return Refused(reason=head.reason, fault=head.fault, metadata=head.metadata, body=head.body)
        if head.metadata is None:
            return None
        return Code(
            metadata=head.metadata,
            body=head.body,
            variables=head.variables,
            is_cooperative=head.is_cooperative,
            objectcode=data[4 + size :],
        )

    def save(self, bitcode: bytes, code: Code | Refused) -> None:
        """Keep what was compiled."""
        head = {
            "metadata": code.metadata,
            "body": code.body,
            "fault": code.fault if isinstance(code, Refused) else None,
            "reason": code.reason if isinstance(code, Refused) else "",
            "variables": code.variables if isinstance(code, Code) else (),
            "is_cooperative": isinstance(code, Code) and code.is_cooperative,
        }
        text = as_json(head)
        objectcode = code.objectcode if isinstance(code, Code) else b""
        self._entries.save(self.key(bitcode), len(text).to_bytes(4, "little") + text + objectcode)


# Verdicts of earlier runs: a kernel is run again only if its code, a companion, or anything of ours has changed.

PACKAGE = Path(__file__).resolve().parents[1]
# What a busy machine, and not the kernel, may be the cause of is tested again.
_KEPT_OUTCOMES = ("passed", "wrong", "out_of_bounds", "race", "not_bound", "same")
_MOST_FILES = 6


def state_of(*parts: object) -> str:
    """Return a digest of this package's files (sources, contracts, references) and of what else decides a verdict."""
    digest = hashlib.sha256(repr(parts).encode())
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in (".py", ".yaml", ".c", ".h"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def key_of(bitcodes: Iterable[bytes]) -> str:
    """Return the key of a kernel's verdict: its own bitcode, then that of each companion."""
    digest = hashlib.sha256()
    for each in bitcodes:
        digest.update(hashlib.sha256(each).digest())
    return digest.hexdigest()[:32]


class Verdicts:
    """What runs of one state found, in one file of JSON lines."""

    def __init__(self, folder: Path, state: str) -> None:
        self._path = folder / f"{state}.jsonl"
        self._new: dict[str, Mapping[str, Any]] = {}
        self.known = _read(self._path)

    def add(self, key: str, row: Mapping[str, Any]) -> None:
        """Keep a row (`verdict`, `body`, `family`, `operator`, `is_compiled`) if its outcome is the kernel's own."""
        if key and key not in self.known and row["verdict"]["outcome"] in _KEPT_OUTCOMES:
            self._new[key] = row

    def save(self) -> None:
        """Write what is new; the oldest states' files go."""
        if not self._new:
            return
        rows = {**_read(self._path), **self._new}
        make_private(self._path.parent)
        lines = [json.dumps([key, row], separators=(",", ":")) for key, row in rows.items()]
        write_whole(self._path, "".join(f"{_line_digest(line)} {line}\n" for line in lines), mode=0o600)
        files = sorted(self._path.parent.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
        for path in files[:-_MOST_FILES]:
            path.unlink(missing_ok=True)


class _Kept(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    verdict: dict[str, Any]
    body: str = ""
    family: str = ""
    operator: str = ""
    is_compiled: bool = True


def _read(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the rows of a file of this user's own; a line that is not whole, or not of ours, is none."""
    rows: dict[str, Mapping[str, Any]] = {}
    for text in (own_file(path) or b"").decode("utf-8", "replace").splitlines():
        digest, _, line = text.partition(" ")
        if digest != _line_digest(line):
            continue
        key, row = json.loads(line)
        with suppress(ValidationError):
            kept = _Kept.model_validate(row)
            if kept.verdict.get("outcome") in _KEPT_OUTCOMES:
                rows[key] = kept.model_dump()
    return rows


def _line_digest(line: str) -> str:
    return hashlib.sha256(line.encode("utf-8", "replace")).hexdigest()[:32]
