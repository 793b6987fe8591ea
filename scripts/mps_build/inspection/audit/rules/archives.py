"""Z and R: the zip reads in one way only, and RECORD lists exactly what is in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..model import TRUSTED_HASHES, Level, WheelFacts
from ..releases import Wanted
from .rule import Hit, rule

# https://docs.python.org/3/library/site.html, https://peps.python.org/pep-0829/ (.start)
_STARTUP_SUFFIXES = (".pth", ".start")
_STARTUP_MODULES = ("sitecustomize", "usercustomize")


@rule("Z1", of_archive=True)
def archive_reads_in_one_way(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """two programs could unpack different files from this archive, or none"""
    for fault in facts.archive.faults:
        if fault.rule == "Z1":
            yield Hit(fault.member or None, fault.evidence)
    for member, damage in facts.damage.items():
        yield Hit(member, damage)


@rule("Z2", of_archive=True)
def names_are_plain_paths(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """a member must unpack inside the folder it is unpacked to"""
    return (Hit(fault.member, fault.evidence) for fault in facts.archive.faults if fault.rule == "Z2")


@rule("Z3", of_archive=True)
def members_are_files(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """a wheel holds files; a link could lead outside, and installers treat it differently"""
    return (Hit(fault.member, fault.evidence) for fault in facts.archive.faults if fault.rule == "Z3")


@rule("Z4")
def nothing_runs_at_start(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """Python runs or obeys such a file at every start, of every program, whether it imports the package or not"""
    # An editable install has its .pth file by intention.
    level: Level | None = "warning" if facts.is_installed else None
    for member in facts.modes:
        first, *inside = _in_site_packages(member.casefold())
        if first.split(".")[0] in _STARTUP_MODULES or (not inside and first.endswith(_STARTUP_SUFFIXES)):
            yield Hit(member, "is executed at every start of Python", level)


def _in_site_packages(member: str) -> list[str]:
    """Return the parts of a member's path in site-packages, which the wheel's .data folder is spread to as well."""
    parts = member.split("/")
    if len(parts) < 3 or not parts[0].endswith(".data"):
        return parts
    last = max((at for at, part in enumerate(parts[:-1]) if part in ("site-packages", "dist-packages")), default=1)
    return parts[last + 1 :]


@rule("R1")
def record_has_no_duplicates(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """RECORD must be there and list each file once"""
    record = f"{facts.info_folders[0]}/RECORD" if facts.info_folders else "RECORD"
    if facts.record_fault:
        yield Hit(record, facts.record_fault)
    if len({row.path for row in facts.record}) == len(facts.record):
        return
    for path, count in Counter(row.path for row in facts.record).items():
        if count > 1:
            yield Hit(path, f"{count} rows in RECORD")


@rule("R2")
def every_file_is_listed(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """a file that RECORD does not list is not hashed, and stays behind when the package is removed"""
    if not facts.record_fault:
        listed = {row.path for row in facts.record}
        yield from (Hit(member, "is not listed in RECORD") for member in facts.modes if member not in listed)


@rule("R3")
def every_listed_file_is_there(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """a file that RECORD lists must be in the wheel"""
    for row in facts.record:
        # An installer puts scripts beside site-packages, and compiles modules that have no hash.
        is_its_own = facts.is_installed and (not row.digest or row.path.startswith("../"))
        if row.path not in facts.modes and not is_its_own:
            yield Hit(row.path, "is listed in RECORD and not in the wheel")


@rule("R4")
def hashes_and_sizes_match(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """the data must have the hash and the size that RECORD gives"""
    info = facts.info_folders[0] if facts.info_folders else ""
    unhashed = {f"{info}/RECORD", f"{info}/RECORD.jws", f"{info}/RECORD.p7s"}
    for row in facts.record:
        if row.digest.startswith("sha256="):
            continue
        # What an installer adds (INSTALLER, compiled modules) has no hash, and needs none.
        if row.path in unhashed or (facts.is_installed and not row.digest):
            continue
        algorithm = row.digest.partition("=")[0]
        if algorithm not in TRUSTED_HASHES:
            yield Hit(row.path, f"RECORD gives {row.digest.partition('=')[0] or 'no hash'}; sha256 or longer is needed")
    yield from (Hit(member, evidence) for member, evidence in facts.record_mismatches.items())


RULES = (
    archive_reads_in_one_way,
    names_are_plain_paths,
    members_are_files,
    nothing_runs_at_start,
    record_has_no_duplicates,
    every_file_is_listed,
    every_listed_file_is_there,
    hashes_and_sizes_match,
)
