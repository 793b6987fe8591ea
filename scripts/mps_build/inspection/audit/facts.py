"""Reads a wheel's facts: names and headers in a few milliseconds, everything else in one pass over the data.

An installed package has the same facts, read where pip has put the files.
"""

from __future__ import annotations

import binascii
import gc
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath

from mps_build.common.files import open_regular, read_text
from mps_build.common.reporting import Reporter
from mps_build.common.wheels.naming import WheelName, parse_wheel_name

from ..limits import (
    MOST_ALL_COMMAND_BYTES,
    MOST_ALL_KEPT_BYTES,
    MOST_BINARIES,
    MOST_FOLDS,
    MOST_LEAK_BYTES,
    MOST_LEAKS,
    MOST_RECORD_BYTES,
    MOST_TEXT_BYTES,
    Malformed,
)
from .archive import STORED, Archive, Member, read_archive
from .contents import Allowance, ContentsWatcher, hashers_for
from .macho import COMPILED, head_size, name_kind, parse_macho
from .model import BinaryFacts, Headers, RecordRow, WheelFacts, parse_headers, parse_literals, parse_record
from .releases import TORCH_CPU
from .stream import Damaged, FolderSource, Passed, Source, Watcher, Wish, ZipSource, pass_over

FIRST_HEAD_BYTES = 1 << 15
# A fat header is Java's class header too, so that it only counts under a library's name.
MACHO_HEADS = frozenset({b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xfe\xed\xfa\xcf", b"\x7fELF"})
_LIBRARY_SUFFIXES = (".so", ".dylib", ".bundle")
_VERSIONED_LIBRARY = re.compile(r".*\.so(?:\.\d+)+")
_HAS_SUFFIX = re.compile(r"\.[A-Za-z]\w*$")
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_INFO = re.compile(r"([^/]+\.dist-info)/.+")
_LEAK = re.compile(
    rb"(?<![\w.@}])(?:/Users/|/home/|/private/|/var/folders/|/opt/(?:homebrew|local|conda|miniconda\w*|llvm\S*)/|/tmp/|/Volumes/|/root/)[^\s\"';)<>\\]*"
)


def collect_facts(path: Path, *, quick: bool, reporter: Reporter, keep_strings: bool = False) -> WheelFacts:
    """Return the facts of the wheel at `path`; never raises for what the file holds.

    Args:
        quick: read names and headers only.
        keep_strings: keep `__cstring` of every binary (3 MB of libtorch_cpu), for comparing two wheels.
    """
    with collector_paused():
        return _collect_facts(path, quick=quick, reporter=reporter, keep_strings=keep_strings)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from walking again and again over 13 000 members, none of which is garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _collect_facts(path: Path, *, quick: bool, reporter: Reporter, keep_strings: bool) -> WheelFacts:
    archive = read_archive(path)
    facts = WheelFacts(
        file=path.name,
        size=path.stat().st_size,
        name=parse_wheel_name(path.name),
        archive=archive,
        modes={member.name: member.mode for member in archive.members if member.name[-1:] != "/"},
    )
    if not archive.is_readable:
        return facts
    with open_regular(path) as file:
        source = ZipSource(file.fileno())
        facts = read_heads(source, facts)
        return facts if quick else read_all(source, facts, reporter, keep_strings=keep_strings)


def read_heads(source: Source, facts: WheelFacts) -> WheelFacts:
    """Return the facts with what the text files and the headers of binaries tell."""
    members = {member.name: member for member in facts.archive.members}
    folders = sorted({match[1] for name in members if ".dist-info/" in name and (match := _INFO.fullmatch(name))})
    damage: dict[str, str] = {}

    def text(name: str, most_bytes: int = MOST_TEXT_BYTES) -> str:
        if name not in members:
            return ""
        if members[name].size > most_bytes:
            damage[name] = f"has {members[name].size} bytes; at most {most_bytes} are read"
            return ""
        try:
            return source.head(members[name], members[name].size).decode("utf-8")
        except (Damaged, UnicodeDecodeError) as error:
            damage[name] = f"cannot be read: {error}"
            return ""

    def headers(name: str) -> Headers:
        found = parse_headers(text(name))
        if any(value.count("\n") > MOST_FOLDS for values in found.values() for value in values):
            damage[name] = f"has a header of more than {MOST_FOLDS} lines"
        return found

    info = folders[0] if folders else ""
    record_fault = None if f"{info}/RECORD" in members else "is not there"
    record: tuple[RecordRow, ...] = ()
    try:
        record = parse_record(text(f"{info}/RECORD", MOST_RECORD_BYTES))
    except ValueError as error:
        record_fault = str(error)
    return replace(
        facts,
        info_folders=tuple(folders),
        metadata=headers(f"{info}/METADATA"),
        wheel=headers(f"{info}/WHEEL"),
        record=record,
        record_fault=record_fault,
        version_literals=parse_literals(text(f"{facts.distribution}/version.py")),
        binaries=_read_binaries(source, facts.archive.members, damage),
        damage=damage,
    )


def _read_binaries(source: Source, members: Iterable[Member], damage: dict[str, str]) -> dict[str, BinaryFacts]:
    """Return every member that is called a library, and every program: what `bin` holds and is not a text.

    The first that is one too many goes to `damage`, and none behind it is read.
    """
    binaries: dict[str, BinaryFacts] = {}
    for member in members:
        name = member.name
        if name.endswith(_LIBRARY_SUFFIXES) or (".so." in name and _VERSIONED_LIBRARY.fullmatch(name)):
            binaries[name] = _read_binary(source, member)
        elif ("bin/" in name or ".data/scripts/" in name) and name.rpartition("/")[0].endswith(("bin", "scripts")):
            program = _read_binary(source, member)
            # Scripts, modules of a package that is called bin, test data: all that is not built like a program.
            is_other = program.kind == "text" or (member.is_directory or _HAS_SUFFIX.search(name))
            if program.kind in COMPILED or not is_other:
                binaries[name] = program
        if name in binaries and (fault := _excess(binaries)):
            damage[name] = fault
            break
    return binaries


def _excess(binaries: Mapping[str, BinaryFacts]) -> str | None:
    """Return what is too much about these compiled files, None if nothing is."""
    command_bytes = sum(binary.macho.commands_end for binary in binaries.values() if binary.macho)
    if len(binaries) <= MOST_BINARIES and command_bytes <= MOST_ALL_COMMAND_BYTES:
        return None
    return f"is compiled file {len(binaries)}, with {command_bytes} bytes of load commands in all"


def _read_binary(source: Source, member: Member) -> BinaryFacts:
    facts = BinaryFacts(member=member.name, size=member.size, mode=member.mode, kind="unreadable")
    try:
        head = source.head(member, FIRST_HEAD_BYTES)
        facts = replace(facts, kind=name_kind(head))
        if facts.kind != "macho":
            return facts
        if (needed := head_size(head)) > len(head):
            head = source.head(member, needed)
        return replace(facts, macho=parse_macho(head))
    except (Damaged, Malformed) as error:
        return replace(facts, malformed=str(error))


def read_all(source: Source, facts: WheelFacts, reporter: Reporter, *, keep_strings: bool) -> WheelFacts:
    """Return the facts with what one pass over all data tells."""
    kept = Allowance(left=MOST_ALL_KEPT_BYTES)
    contents = {
        name: ContentsWatcher(
            macho, size=binary.size, kept=kept, keep_strings=keep_strings, reads_imports=name == TORCH_CPU
        )
        for name, (binary, macho) in facts.machos.items()
    }
    seen = Allowance(left=MOST_LEAK_BYTES)
    texts = {name: _LeakWatcher(seen) for name in facts.modes if name.endswith(".cmake")}
    watchers: dict[str, Watcher] = {**texts, **contents}
    total = sum(member.size for member in facts.archive.members)
    reporter.started(f"Audit {facts.file}", total=total, unit="bytes")
    wish = Wish(watchers=watchers, algorithms=_algorithms(facts.record), heads=MACHO_HEADS)
    passed = pass_over(source, facts.archive.members, wish, advanced=reporter.advanced)
    members = {member.name: member for member in facts.archive.members}
    # A compiled file under a name that says nothing is one all the same; there are none in real wheels.
    binaries, hidden, damage = dict(facts.binaries), {}, {}
    for name in sorted(passed.heads - facts.binaries.keys()):
        if fault := _excess(binaries):
            damage[name] = fault
            break
        binaries[name] = hidden[name] = _read_binary(source, members[name])
    found = {name: watcher.finish() for name, watcher in contents.items()}
    for name, (binary, macho) in replace(facts, binaries=hidden).machos.items():
        watcher = ContentsWatcher(macho, size=binary.size, kept=kept)
        _watch_again(source, members[name], (watcher,))
        found[name] = watcher.finish()
        contents[name] = watcher
    for name, watcher in contents.items():
        _hash_again(source, members[name], watcher)
    leaks = {name: watcher.paths() for name, watcher in texts.items()}
    reporter.done()
    return replace(
        facts,
        is_full=True,
        binaries={name: replace(binary, contents=found.get(name)) for name, binary in binaries.items()},
        damage={**facts.damage, **damage, **dict(sorted(passed.damage.items()))},
        record_mismatches=_record_mismatches(facts.record, facts.archive, passed),
        leaks={name: paths for name, paths in leaks.items() if paths},
    )


def _hash_again(source: Source, member: Member, watcher: ContentsWatcher) -> None:
    """Hash the pages as the signature wants it, where the first pass guessed otherwise (SHA-1, another page size)."""
    if watcher.found.unhashed:
        hashers = hashers_for(watcher.found.unhashed)
        _watch_again(source, member, hashers)
        watcher.judge_pages(hashers, watcher.found.unhashed)


def _watch_again(source: Source, member: Member, watchers: Iterable[Watcher]) -> None:
    try:
        for data in source.pieces(member):
            for watcher in watchers:
                watcher.update(data)
    except Damaged:
        return  # reported already by the first pass


class _LeakWatcher:
    """Collects a text file, to look for the builder's own paths in it, as far as the allowance for all of them goes."""

    def __init__(self, allowance: Allowance) -> None:
        self._data = bytearray()
        self._allowance = allowance

    def update(self, data: bytes) -> None:
        self._data += data[: self._allowance.left]
        self._allowance.left = max(self._allowance.left - len(data), 0)

    def paths(self) -> tuple[str, ...]:
        return find_leaks(bytes(self._data))


def find_leaks(data: bytes) -> tuple[str, ...]:
    """Return the paths in `data` that only the building machine has, each once, in order."""
    found = islice(_LEAK.finditer(data), MOST_LEAKS)
    return tuple(dict.fromkeys(match[0].decode("utf-8", "backslashreplace") for match in found))


def _algorithms(record: Iterable[RecordRow]) -> dict[str, str]:
    algorithms = {row.path: row.digest.partition("=")[0] for row in record}
    return {path: name for path, name in algorithms.items() if name in {"sha384", "sha512"}}


def _record_mismatches(record: Iterable[RecordRow], archive: Archive, passed: Passed) -> Mapping[str, str]:
    """Return, by member, how its data differs from its row of RECORD."""
    sizes = {member.name: member.size for member in archive.members}
    mismatches: dict[str, str] = {}
    digests, encode = passed.digests, binascii.b2a_base64
    for path, promised, size in record:
        digest = digests.get(path)
        if digest is None or not promised:
            continue
        found = encode(digest, newline=False).translate(_URL_SAFE).rstrip(b"=").decode()
        if not promised.endswith(found) or promised.partition("=")[2] != found:
            mismatches[path] = f"RECORD says {promised}, the data has {found}"
        elif size != str(sizes[path]):
            mismatches[path] = f"RECORD says {size or 'no'} bytes, there are {sizes[path]}"
    return mismatches


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
