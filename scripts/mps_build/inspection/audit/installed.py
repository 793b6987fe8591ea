"""The facts of an installed package: what a wheel's are, read where pip has put the files."""

from __future__ import annotations

import stat
from pathlib import Path, PurePosixPath

from mps_build.common.files import read_text
from mps_build.common.reporting import Reporter
from mps_build.common.wheels.naming import WheelName, parse_wheel_name

from .archive import STORED, Archive, Member
from .facts import read_all, read_heads
from .limits import MOST_RECORD_BYTES, MOST_TEXT_BYTES
from .metadata import parse_headers, parse_record
from .model import WheelFacts
from .sources import FolderSource


def collect_installed(root: Path, info: str, *, quick: bool, reporter: Reporter) -> WheelFacts:
    """Return the facts of the package whose `.dist-info` folder `info` lies in `root`.

    Only what RECORD lists is looked at: site-packages is shared.
    """
    members = tuple(_members(root, info))
    facts = WheelFacts(
        file=str(root / info),
        size=sum(member.size for member in members),
        name=_name(root, info),
        archive=Archive(members=members, faults=(), is_readable=True),
        modes={member.name: member.mode for member in members},
        is_installed=True,
    )
    source = FolderSource(root)
    facts = read_heads(source, facts)
    return facts if quick else read_all(source, facts, reporter, keep_strings=False)


def _members(root: Path, info: str) -> list[Member]:
    try:
        rows = parse_record(_text(root / info / "RECORD", MOST_RECORD_BYTES))
    except (OSError, ValueError):
        return []  # R1 tells it
    members = []
    for path in dict.fromkeys(row.path for row in rows):
        # Scripts lie beside site-packages (`../../../bin/torchrun`) and are the installer's.
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            continue
        try:
            status = (root / path).stat()
        except (OSError, ValueError):
            continue  # R3 tells it
        if not stat.S_ISREG(status.st_mode):
            continue  # a pipe would be waited for
        members.append(Member(path, status.st_size, status.st_size, 0, STORED, status.st_mode, 0))
    return members


def _text(path: Path, most_bytes: int) -> str:
    """Return a text file, "" if it is larger than any of its name is: `read_heads` tells it."""
    return read_text(path) if path.stat().st_size <= most_bytes else ""


def _name(root: Path, info: str) -> WheelName | None:
    """Return the name that the wheel must have had."""
    try:
        metadata = parse_headers(_text(root / info / "METADATA", MOST_TEXT_BYTES))
        wheel = parse_headers(_text(root / info / "WHEEL", MOST_TEXT_BYTES))
    except (OSError, UnicodeDecodeError):
        return None
    tags, build = wheel.get("tag", ()), wheel.get("build", ())
    names, versions = metadata.get("name", ("",)), metadata.get("version", ("",))
    if not tags:
        return None
    python, abi, _ = [*tags[0].split("-"), "", ""][:3]
    platforms = ".".join(dict.fromkeys(tag.rpartition("-")[2] for tag in tags))
    parts = [names[0].replace("-", "_"), versions[0], *build[:1], python, abi, platforms]
    return parse_wheel_name("-".join(parts) + ".whl")
