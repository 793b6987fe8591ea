"""A wheel file: its members in bounds, what an index must know of it, and which wheels belong together."""

from __future__ import annotations

import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from email.parser import HeaderParser
from pathlib import Path
from typing import IO, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from ..errors import UsageError, reason_of
from ..files import check_regular, machine_fault, open_regular
from ..json_text import read_json
from ..receipts import fingerprint_of

_END, _END64 = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q")
MOST_MEMBERS, MOST_DIRECTORY_BYTES = 65_000, 8_000_000
# METADATA has some 34 kB, torch/version.py 290 bytes, our bill of materials some 100 kB.
MOST_BYTES = 8 << 20


class UnsoundWheel(Exception):
    """The file is not a zip, or holds more than is read of one."""


class Members:
    """The members of one open wheel."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.names = tuple(archive.namelist())

    def read(self, name: str, *, most_bytes: int = MOST_BYTES) -> bytes:
        """Return a member's data.

        Raises:
            UnsoundWheel: it is damaged, encrypted, or larger than `most_bytes`, whatever its header says.
        """
        try:
            with self._archive.open(name) as member:
                data = member.read(most_bytes + 1)
        except (OSError, ValueError, RuntimeError, NotImplementedError, EOFError, KeyError) as error:
            raise UnsoundWheel(f"{name} cannot be read: {error}") from error
        except (zipfile.BadZipFile, zlib.error, struct.error) as error:
            raise UnsoundWheel(f"{name} is damaged: {error}") from error
        if len(data) > most_bytes:
            raise UnsoundWheel(f"{name} has more than {most_bytes} bytes")
        return data

    def read_all(self, names: Iterable[str], *, most_bytes: int) -> Iterator[tuple[str, bytes]]:
        """Yield the name and data of each of several members.

        Raises:
            UnsoundWheel: one of them cannot be read, or they have more than `most_bytes` together.
        """
        left = most_bytes
        for name in names:
            data = self.read(name, most_bytes=left)
            left -= len(data)
            yield name, data


@contextmanager
def open_wheel(path: Path) -> Iterator[Members]:
    """Give the wheel's members.

    Raises:
        UnsoundWheel: as for `members_of`; OSError: the file cannot be opened, or is not a file.
    """
    with open_regular(path) as file, members_of(file) as members:
        yield members


@contextmanager
def members_of(file: IO[bytes]) -> Iterator[Members]:
    """Give the members of a wheel that is open already.

    Raises:
        UnsoundWheel: the file is not a zip, or its directory is larger than any wheel's.
    """
    try:
        _check_directory(file)
        archive = zipfile.ZipFile(file)
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile, struct.error) as error:
        raise UnsoundWheel(f"is not a zip file: {error}") from error
    with archive:
        yield Members(archive)


def _check_directory(file: IO[bytes]) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 0xFFFF - _END.size - _END64.size - 20, 0))
    tail = file.read()
    at = tail.rfind(b"PK\5\6")
    if at < 0 or at + _END.size > len(tail):
        raise UnsoundWheel("is not a zip file: it has no end record")
    count, length = _END.unpack_from(tail, at)[4:6]
    wide = tail.rfind(b"PK\6\6", 0, at)
    if wide >= 0 and wide + _END64.size <= len(tail):
        wide_count, wide_length = _END64.unpack_from(tail, wide)[7:9]
        # The narrow fields are all ones where the wide ones count.
        count, length = max(count % 0xFFFF, wide_count), max(length % 0xFFFFFFFF, wide_length)
    if count > MOST_MEMBERS or length > MOST_DIRECTORY_BYTES:
        raise UnsoundWheel(f"its directory has {count} members in {length} bytes, more than is read")


# What may lie beside a wheel, by what is put after its whole name.
BESIDE = (".receipt.json", ".sigstore.json", ".provenance", ".publish.attestation")
# https://packaging.python.org/en/latest/specifications/binary-distribution-format/#file-name-convention
# Pages and terminals show such a name as it is: no character steers what is read, and none is invisible.
_NAME = re.compile(r"[A-Za-z0-9._+!-]+")
# The bill of materials, taken out of the wheel.
BILL = ".cdx.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFile:
    """One wheel in the folder; `beside` are the names of its receipt and its attestations, `bill` its SBOM."""

    path: Path
    name: str
    version: Version
    tags: frozenset[Tag]
    size: int
    sha256: str
    metadata: bytes
    bill: bytes | None
    requires_python: str | None
    requirements: tuple[Requirement, ...]
    beside: tuple[str, ...]

    @property
    def file(self) -> str:
        """The wheel's file name."""
        return self.path.name

    @property
    def direct_addresses(self) -> tuple[str, ...]:
        """What it needs from an address of its own choice, past any index: `NAME @ URL`."""
        return tuple(str(each) for each in self.requirements if each.url is not None)

    @property
    def interpreter(self) -> str:
        """The Python and ABI of its name: `cp312`, or `cp313t` where free-threaded."""
        python, abi = self.file.removesuffix(".whl").split("-")[-3:-1]
        return abi if abi.startswith(python) else python

    @property
    def built_on(self) -> date | None:
        """The day of a nightly, from its version (`2.16.0.dev20261120`); None for a release."""
        digits = str(self.version.dev) if self.version.dev is not None else ""
        try:
            return date(int(digits[:4]), int(digits[4:6]), int(digits[6:])) if len(digits) == 8 else None
        except ValueError:
            return None


def read_wheels(folder: Path) -> tuple[WheelFile, ...]:
    """Return the folder's wheels, by name and version.

    Raises:
        UsageError: no wheel, or any that is not what its name or its receipt says; all faults at once.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder", hint="give the folder that holds the wheels")
    wheels, faults = [], []
    for path in sorted(folder.glob("*.whl")):
        try:
            wheels.append(read_wheel(path, follow=False))
        except UsageError as error:
            if (fault := machine_fault(error)) is not None:
                raise fault from error
            faults.append(str(error))
    if faults:
        listed = "\n  ".join(faults)
        raise UsageError(f"nothing was published: {len(faults)} wheels are damaged:\n  {listed}")
    if not wheels:
        raise UsageError(f"{folder} holds no wheel", hint="`nox -s build_wheel` puts wheels into wheelhouse/")
    return tuple(sorted(wheels, key=lambda wheel: (wheel.name, wheel.version, wheel.file)))


def read_wheel(path: Path, *, follow: bool = True) -> WheelFile:
    """Return what the index says of one wheel.

    All of the wheel comes from one opening of its file: what takes its place meanwhile is not mixed in.

    Args:
        follow: False refuses a symbolic link, as the wheel and as what lies beside it: whoever can put one into a
            folder would choose what is published from it.

    Raises:
        UsageError: its name is not a wheel's, its METADATA tells another name or version, its receipt another hash,
            or it, or what lies beside it, is not a file.
    """
    if not _NAME.fullmatch(path.name):
        raise UsageError(
            f"{path.name!a}: a wheel's name has ASCII characters, digits and . _ + ! - alone",
            hint="build it again, or give it the name that its METADATA says",
        )
    try:
        name, version, _, tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise UsageError(f"{path.name}: {error}") from error
    metadata, bill, printed = _contents(path, follow=follow)
    headers = HeaderParser().parsestr(metadata.decode("utf-8", "replace"))
    identity = (canonicalize_name(headers.get("Name", "")), headers.get("Version", ""))
    if identity[0] != name or identity[1] != str(version):
        raise UsageError(
            f"{path.name}: its METADATA says {identity[0] or 'no name'} {identity[1] or 'without a version'}"
        )
    beside = tuple(suffix for suffix in BESIDE if _lies_there(path.with_name(path.name + suffix), follow=follow))
    if ".receipt.json" in beside:
        _check_receipt(path, printed["sha256"])
    for field in ("Requires-Dist", "Requires-Python"):
        for text in headers.get_all(field, []):
            if not (text.isascii() and "".join(text.split()).isprintable()):
                raise UsageError(f"{path.name}: {field} has characters that it cannot have: {text!a}")
    try:
        requirements = tuple(map(Requirement, headers.get_all("Requires-Dist", [])))
    except InvalidRequirement as error:
        raise UsageError(f"{path.name}: Requires-Dist cannot be read: {error}") from error
    return WheelFile(
        path=path,
        name=name,
        version=version,
        tags=tags,
        size=printed["size"],
        sha256=printed["sha256"],
        metadata=metadata,
        bill=bill,
        requires_python=headers.get("Requires-Python"),
        requirements=requirements,
        beside=tuple(path.name + suffix for suffix in beside),
    )


def _contents(path: Path, *, follow: bool) -> tuple[bytes, bytes | None, dict[str, Any]]:
    """Return METADATA, the bill of materials where we put one (PEP 770), and the file's size and hash."""
    try:
        with open_regular(path, follow=follow) as file, members_of(file) as archive:
            members = [name for name in archive.names if _is_metadata(name.split("/"))]
            if len(members) != 1:
                raise UsageError(f"{path.name}: {len(members)} files called .dist-info/METADATA instead of one")
            bill = f"{members[0].split('/', maxsplit=1)[0]}/sboms/mps-build.cdx.json"
            read = archive.read(members[0]), archive.read(bill) if bill in archive.names else None
            return *read, fingerprint_of(file)
    except OSError as error:
        raise UsageError(f"{path.name}: cannot be read: {reason_of(error)}") from error
    except UnsoundWheel as error:
        raise UsageError(f"{path.name}: {error}", hint="build or download it again") from error


def _lies_there(path: Path, *, follow: bool) -> bool:
    """True for a file, False for nothing.

    Raises:
        UsageError: it is something else: a pipe, a folder.
    """
    try:
        check_regular(path, follow=follow)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UsageError(f"{path.name}: cannot be read: {reason_of(error)}") from error
    return True


def _is_metadata(parts: Iterable[str]) -> bool:
    folder, *rest = parts
    return folder.endswith(".dist-info") and rest == ["METADATA"]


def _check_receipt(path: Path, sha256: str) -> None:
    receipt = path.with_name(f"{path.name}.receipt.json")
    try:
        recorded = read_json(receipt)["wheel"]["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{receipt.name} is not a receipt: {error!r}") from error
    if recorded != sha256:
        raise UsageError(f"{path.name} does not match its receipt: it has sha256 {sha256}, the receipt has {recorded}")


_OF_ONE_PYTHON = re.compile(r".+-cp3(\d{1,3})-(?:cp3\1[mt]?|none)-[^-]+\.whl")  # none: the official ones for macOS
_CPYTHON = re.compile(r"cp3(\d{1,3})[mt]?")
COMPANIONS = ("torchvision", "torchaudio")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedSet:
    """One torch with its companions; its index holds nothing else, so nothing else can be mixed in."""

    torch: WheelFile
    companions: tuple[WheelFile, ...]

    @property
    def id(self) -> str:
        """The name of its folder: characters that need no escape in an address."""
        return f"torch-{str(self.torch.version).replace('+', '-')}-{self.torch.interpreter}"

    @property
    def wheels(self) -> tuple[WheelFile, ...]:
        """All wheels of the set, torch first."""
        return (self.torch, *self.companions)

    def constraints(self) -> str:
        """Return the pins, for `pip install -c`."""
        return "".join(f"{wheel.name}=={wheel.version}\n" for wheel in self.wheels)

    def requirements(self) -> str:
        """Return the pins with their hashes, for `pip install --no-deps -r`: pip then takes no other file."""
        return "".join(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n" for wheel in self.wheels)

    def dependencies(self) -> str:
        """Return what the set needs from elsewhere, less the set's own members and extras."""
        own = {wheel.name for wheel in self.wheels}
        needed = {
            str(requirement)
            for wheel in self.wheels
            for requirement in wheel.requirements
            if requirement.name not in own and not _is_extra(requirement)
        }
        return "".join(f"{each}\n" for each in sorted(needed))


def matched_sets(wheels: Sequence[WheelFile]) -> tuple[tuple[MatchedSet, ...], tuple[str, ...]]:
    """Return the sets, and a line for each companion that belongs to none or to several.

    A companion belongs to the torch that its own metadata pins (torch==2.6.0, or a local version of it),
    for the same Python. One that fits several builds of one version (two commits) goes into no set:
    its C++ was compiled for one of them, and its name does not tell which.

    Raises:
        UsageError: a torch is not for one version of CPython alone, as every torch is.
    """
    torches = [wheel for wheel in wheels if wheel.name == "torch"]
    if wrong := [wheel.file for wheel in torches if not _OF_ONE_PYTHON.fullmatch(wheel.file)]:
        raise UsageError(
            f"not a torch for one version of CPython (cp312-cp312, cp313-cp313t, cp312-none): {', '.join(wrong)}",
            hint="torch is built for each version; take these wheels out of the folder, or build them again",
        )
    members: dict[str, list[WheelFile]] = {torch.file: [] for torch in torches}
    notes = []
    for wheel in wheels:
        if wheel.name not in COMPANIONS:
            continue
        fitting = [torch for torch in torches if _built_for(wheel, torch)]
        if len(fitting) == 1:
            members[fitting[0].file].append(wheel)
        elif fitting:
            notes.append(f"{wheel.file} fits {len(fitting)} torches: {', '.join(torch.file for torch in fitting)}")
        else:
            notes.append(f"{wheel.file} pins no torch that is here for {wheel.interpreter}")
    sets, crowded = [], []
    for torch in torches:
        newest = {wheel.name: wheel for wheel in sorted(members[torch.file], key=lambda each: each.version)}
        crowded += [
            f"{wheel.file} is older than {newest[wheel.name].file}, which the set has"
            for wheel in members[torch.file]
            if newest[wheel.name] is not wheel
        ]
        sets.append(MatchedSet(torch=torch, companions=tuple(newest[name] for name in COMPANIONS if name in newest)))
    return tuple(sets), (*notes, *crowded)


def _built_for(companion: WheelFile, torch: WheelFile) -> bool:
    pins = [each for each in companion.requirements if each.name == "torch" and not _is_extra(each)]
    exact = [each for each in pins if any(clause.operator in ("==", "===") for clause in each.specifier)]
    return (
        bool(exact)
        and _runs_on(companion, torch)
        and all(each.specifier.contains(torch.version, prereleases=True) for each in exact)
    )


def _runs_on(companion: WheelFile, torch: WheelFile) -> bool:
    """True for the same Python, and for a wheel of no Python in particular (torchvision from 0.29: py3-none)."""
    if companion.interpreter == torch.interpreter or any(tag.interpreter == "py3" for tag in companion.tags):
        return True
    wanted = _CPYTHON.fullmatch(torch.interpreter)
    if wanted is None or torch.interpreter.endswith("t"):
        return False
    matches = (_CPYTHON.fullmatch(tag.interpreter) for tag in companion.tags if tag.abi == "abi3")
    return any(int(match[1]) <= int(wanted[1]) for match in matches if match)


def _is_extra(requirement: Requirement) -> bool:
    return requirement.marker is not None and "extra" in str(requirement.marker)
