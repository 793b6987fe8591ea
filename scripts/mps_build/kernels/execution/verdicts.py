"""Verdicts of earlier runs: a kernel is run again only if its code, a companion, or anything of ours has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ...common.files import write_whole
from .store import make_private, own_file

PACKAGE = Path(__file__).resolve().parents[1]
# What a busy machine, and not the kernel, may be the cause of is asked again.
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
        write_whole(self._path, "".join(f"{_digest(line)} {line}\n" for line in lines), mode=0o600)
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
        if digest != _digest(line):
            continue
        key, row = json.loads(line)
        with suppress(ValidationError):
            kept = _Kept.model_validate(row)
            if kept.verdict.get("outcome") in _KEPT_OUTCOMES:
                rows[key] = kept.model_dump()
    return rows


def _digest(line: str) -> str:
    return hashlib.sha256(line.encode("utf-8", "replace")).hexdigest()[:32]
