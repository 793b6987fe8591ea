"""What an index must know of one wheel: its name, its hash, its metadata, and what lies beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from ..errors import UsageError, reason_of
from ..faults import machine_fault
from ..json_text import read_json
from ..opening import check_regular, open_regular
from ..receipts import fingerprint_of
from .members import UnsoundWheel, members_of

# What may lie beside a wheel, by what is put after its whole name.
BESIDE = (".receipt.json", ".sigstore.json", ".provenance", ".publish.attestation")
# https://packaging.python.org/en/latest/specifications/binary-distribution-format/#file-name-convention
# Pages and terminals show such a name as it is: no letter steers what is read, and none is invisible.
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
            f"{path.name!a}: a wheel's name has ASCII letters, digits and . _ + ! - alone",
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
                raise UsageError(f"{path.name}: {field} has letters that it cannot have: {text!a}")
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
