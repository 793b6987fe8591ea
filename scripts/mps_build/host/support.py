"""Work folder -> one file for an issue: recording, receipts, logs, records, versions; scrubbed, bounded, no links."""

from __future__ import annotations

import gzip
import importlib.metadata
import io
import json
import os
import platform
import stat
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from mps_build import __version__
from mps_build.common.json_text import parse_json
from mps_build.common.logs.text import clean_lines
from mps_build.common.process import Command, capture
from mps_build.common.scrubbing.identifiers import Identity
from mps_build.common.scrubbing.scrubber import Scrubber
from mps_build.common.workspace import CHECKOUT, in_checkout

from .host import observe
from .probes.probers import RecordingProber, recorded

_SUFFIXES = (".json", ".jsonl", ".log", ".txt", ".md")
# Trees of sources, environments and wheels: nothing in there tells how a run went.
_NO_TEXTS = frozenset({"source", "build", "environments", "venvs", "wheels", "backend", "tree", "node_modules", ".git"})
_OURS = frozenset({"verify", "bisect"})
# What a configure leaves: the file that entered it, the facts it wrote at its end, and CMake's own memory.
# setup.py builds in the tree itself, scikit-build-core in a folder of each profile.
_CONFIGURE = (
    "overrides.cmake",
    *(
        f"{folder}/{name}"
        for folder in ("build", "build/*", "source/build", "source/*/build")
        for name in ("mps-build-facts.json", "CMakeCache.txt", "overrides.cmake")
    ),
)
# What else lies in the caller's environment is nobody's business.
_RUNS_ON = frozenset(
    {"build", "delocate", "isal", "packaging", "pillow", "pip", "pydantic", "pydantic-core", "pyyaml", "rich", "uv"}
    | {"shtab", "sigstore", "ziglang"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One text of the bundle; `note` tells what of it was cut."""

    name: str
    data: bytes
    note: str = ""


@dataclass(slots=True)
class Bundle:
    """What goes into the file, what does not and why, and what was taken out of the texts."""

    entries: list[Entry] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    removed: Counter[str] = field(default_factory=Counter)


def collect(
    work: Path,
    cache: Path,
    *,
    names: tuple[str, ...] = (),
    log_bytes: int,
    total_bytes: int,
    identity: Identity | None = None,
    record_host: Callable[[Identity], tuple[dict[str, Any], Counter[str]]] | None = None,
) -> Bundle:
    """Return the bundle: versions and recording first, then texts of the work folder, the newest first."""
    identity = _with_folders(identity or Identity.of_this_machine(), work, cache)
    scrubber = Scrubber(identity)
    bundle = Bundle()
    recording, removed = (record_host or _record_host)(identity)
    bundle.removed += removed
    for name, document in (("versions.json", versions()), ("recording.json", recording)):
        bundle.entries.append(Entry(name=name, data=_json(scrubber.value(document))))
    found = [each for name, root in _roots(work, cache, names) for each in _texts(root, name, bundle)]
    spent = 0
    for name, path, _ in sorted(found, key=lambda each: (-each[2], each[0])):
        if spent >= total_bytes:
            bundle.left_out[name] = "the bundle is full (--total-size)"
            continue
        entry = _entry(name, path, min(log_bytes, total_bytes - spent), scrubber)
        if entry is None:
            bundle.left_out[name] = "cannot be read as a plain file"
            continue
        spent += len(entry.data)
        bundle.entries.append(replace(entry, name=_free(entry.name, {each.name for each in bundle.entries})))
    bundle.left_out = {scrubber.name(name): why for name, why in bundle.left_out.items()}
    bundle.removed += scrubber.removed
    return bundle


def write_bundle(bundle: Bundle, output: Path) -> None:
    """Write the file whole or not at all, for its owner's eyes; equal contents give equal bytes."""
    beside = output.with_name(f".{output.name}.{os.getpid()}")
    contents = [*bundle.entries, Entry(name="CONTENTS.txt", data=_contents(bundle))]
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with (
            os.fdopen(descriptor, "wb") as raw,
            gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as zipped,
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for entry in contents:
                info = tarfile.TarInfo(f"mps-build-support/{entry.name}")
                info.size, info.mode = len(entry.data), 0o644
                archive.addfile(info, io.BytesIO(entry.data))
        beside.replace(output)
    finally:
        beside.unlink(missing_ok=True)


@cache
def _packages() -> tuple[str, ...]:
    """Return what this tool runs on of its own Python's packages."""
    described = (found.metadata for found in importlib.metadata.distributions())  # each access reads the file anew
    found = (f"{each['Name']}=={each['Version']}" for each in described if str(each["Name"]).lower() in _RUNS_ON)
    return tuple(sorted(found))


def versions() -> dict[str, Any]:
    """Return what this tool runs on."""
    git = capture(Command(argv=("git", "--version")))
    head = capture(Command(argv=("git", "describe", "--always", "--dirty"), cwd=CHECKOUT)) if in_checkout() else None
    return {
        "mps_build": __version__,
        "checkout": head.stdout.strip() if head and head.ok else None,
        "python": sys.version,
        "platform": platform.platform(),
        "git": git.stdout.strip() or None,
        "packages": list(_packages()),
    }


def _record_host(identity: Identity) -> tuple[dict[str, Any], Counter[str]]:
    """Ask this machine every declared probe, as `doctor --record` does."""
    prober = RecordingProber()
    observe(prober)
    return recorded(prober, identity=identity)


def _with_folders(identity: Identity, work: Path, cache: Path) -> Identity:
    """Return the identity with our folders too: a path tells names that no rule knows (a disk's, a project's)."""
    folders = {str(work): "<work>", str(cache): "<cache>", str(CHECKOUT): "<mps-build>"}
    words = {folder: ("folder", instead) for folder, instead in folders.items() if len(folder) > 3}
    return Identity(words={**words, **identity.words})


def _roots(work: Path, cache: Path, names: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    if names:
        yield from ((f"work/{name}", work / name) for name in names)
        return
    for path in sorted(work.iterdir()) if work.is_dir() else ():
        # A build leaves receipts or its lock; anything else in the work folder is not ours to send.
        if path.name in _OURS or (path / "receipts").is_dir() or (path / "lock").is_file():
            yield f"work/{path.name}", path
    yield "cache/logs", cache / "logs"


def _texts(root: Path, name: str, bundle: Bundle) -> Iterator[tuple[str, Path, float]]:
    """Yield name, path and age of each text below a folder; links are listed and not followed."""
    if root.is_symlink():
        bundle.left_out[name] = "a link"
        return
    for folder, folders, files in os.walk(root, followlinks=False):
        here = Path(folder)
        prefix = f"{name}/{here.relative_to(root)}".removesuffix("/.")
        for each in [*folders, *files]:
            if (here / each).is_symlink():
                bundle.left_out[f"{prefix}/{each}"] = "a link"
        # Below the work folder come recipes (and verify, bisect); what they hold of sources and venvs is not a log.
        depth = len(here.relative_to(root).parts)
        kept = [each for each in folders if not (here / each).is_symlink() and each not in _NO_TEXTS]
        folders[:] = sorted(kept) if depth < 5 else []
        for each in sorted(files):
            path = here / each
            if each.endswith(_SUFFIXES) and not each.startswith(".") and not path.is_symlink():
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    yield f"{prefix}/{each}", path, status.st_mtime
    yield from _configure_evidence(root, name)


def _configure_evidence(root: Path, name: str) -> Iterator[tuple[str, Path, float]]:
    """Yield what configures left below a recipe's folder; no folder on the way may be a link."""
    for pattern in _CONFIGURE:
        for path in sorted(root.glob(pattern)):
            inner = path.relative_to(root)
            is_linked = any((root / part).is_symlink() for part in (inner, *inner.parents))
            if path.is_file() and not is_linked:
                yield f"{name}/{inner}", path, path.lstat().st_mtime


def _entry(name: str, path: Path, limit: int, scrubber: Scrubber) -> Entry | None:
    """Return a text scrubbed; of one that is longer than the limit (bytes) its end, from a whole line on."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            is_whole = size <= limit
            file.seek(0 if is_whole else size - limit)
            data = file.read(limit)
    except OSError:
        return None
    if not is_whole:
        data = data.partition(b"\n")[2] or data
    text = data.decode("utf-8", "replace")
    note = "" if is_whole else f"the last {len(data)} of {size} bytes"
    if is_whole and name.endswith(".json"):
        try:
            data = _json(scrubber.value(parse_json(text)))
            return Entry(name=scrubber.name(name), data=data)
        except ValueError:
            note = "no JSON"
    lines = "\n".join(line.text for line in clean_lines(text)) if "\x1b" in text else text
    data = scrubber.text(lines).encode("utf-8", "backslashreplace")
    return Entry(name=scrubber.name(name), data=data, note=note)


def _free(name: str, taken: set[str]) -> str:
    """Return a member's name that no other has: two names may have differed in what was removed."""
    stem, dot, suffix = name.rpartition(".")
    number, free = 2, name
    while free in taken:
        number, free = number + 1, f"{stem or name}-{number}{dot}{suffix}" if stem else f"{name}-{number}"
    return free


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def _contents(bundle: Bundle) -> bytes:
    lines = ["In it:", *(f"  {entry.name}  {len(entry.data)} bytes  {entry.note}".rstrip() for entry in bundle.entries)]
    lines += ["", "Left out:", *(f"  {name}: {why}" for name, why in bundle.left_out.items())]
    lines += ["", "Taken out of the texts:", *(f"  {kind}: {count}" for kind, count in sorted(bundle.removed.items()))]
    return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")
