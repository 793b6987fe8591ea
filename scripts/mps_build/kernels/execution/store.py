"""What was compiled before, on disk: one file each, believed only if it is whole and of this key and this user."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

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
