"""The suite over several releases, one after another: what is there is taken, what was interrupted goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from mps_build.common.console import Console
from mps_build.common.errors import CompileError, MpsBuildError, OwnFault, UsageError
from mps_build.common.known_issues import macos_floor
from mps_build.common.records.device_record import Record, Simulated, load_record
from mps_build.common.wheels.download import NoSuchWheel
from mps_build.simulation.official import session

from ..request import VerifyRequest
from ..simulated_suites import OfficialSuite
from ..verification import Verification
from .table import Run

# What a release takes that was not here yet: the wheel, unpacked, its environment, and Python's byte code.
RELEASE_BYTES = 1_200_000_000
# Until one was run: what the known issues of a release took on two cores that others used as well.
_FIRST_SECONDS = (240.0, 600.0)


def chosen(text: str, listed: Callable[[], tuple[Version, ...]]) -> tuple[str, ...]:
    """Return the releases that `2.4.1`, `1.12.1..2.15.0` or a list of both names, from the oldest to the newest.

    Between the two ends of a range stands the newest patch release of each minor one: `2.3.0` has to be named.

    Args:
        listed: gives every release of the package index; called for a range alone.

    Raises:
        UsageError: what is no release with MPS, a range that is empty, or nothing at all.
    """
    found: set[Version] = set()
    for part in filter(None, (each.strip() for each in text.split(","))):
        first, dots, last = part.partition("..")
        ends = [_release(end, part) for end in (first, last)[: 2 if dots else 1]]
        found |= {*ends}
        if not dots:
            continue
        if ends[0] > ends[1]:
            raise UsageError(f"--releases {part}: {ends[0]} is newer than {ends[1]}", hint=f"{ends[1]}..{ends[0]}")
        newest: dict[tuple[int, ...], Version] = {}
        for each in sorted(listed()):
            if ends[0] < each < ends[1] and not each.is_prerelease:
                newest[each.release[:2]] = each
        found |= {each for minor, each in newest.items() if all(minor != end.release[:2] for end in ends)}
    if not found:
        raise UsageError(
            "--releases names no release", hint="nox -s verify_mps -- --releases 2.4.1..2.15.0 --simulated"
        )
    return tuple(str(each) for each in sorted(found))


def _release(text: str, part: str) -> Version:
    try:
        version = Version(text.strip())
    except InvalidVersion as error:
        raise UsageError(
            f"--releases {part}: {text.strip() or 'nothing'} is not a version of torch", hint="such as 2.4.1..2.15.0"
        ) from error
    if macos_floor(str(version)) is None or version.local:
        raise UsageError(f"--releases {part}: torch {version} has no MPS", hint="1.12 is the first that has it")
    return version


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The same cases over each release.

    Args:
        request: what is run of the suite; release and folder are filled in here.
        folder: holds a folder with a record for each release.
    """

    request: VerifyRequest
    releases: tuple[str, ...]
    macos: str
    folder: Path
    console: Console

    def check(self) -> None:
        """Refuse a machine that runs no macOS wheel.

        Raises:
            HostError: it is not Linux on x86-64.
        """
        session.check(session.Request(target="torch"))

    def kept(self) -> dict[str, Run]:
        """Return the releases that were run to their end with the same options; one without a case is run anew."""
        found = ((release, self._record(release)) for release in self.releases)
        runs = {at: _run_of(at, record) for at, record in found if record is not None and not record.partial}
        return {at: run for at, run in runs.items() if run.record is not None}

    def estimate(self, kept: dict[str, Run]) -> str:
        """Return what the rest will take, before it is begun."""
        left = len(self.releases) - len(kept)
        if not left:
            return f"{len(self.releases)} releases, all of them are there"
        took = [run.record.seconds for run in kept.values() if run.record is not None]
        low, high = (min(took), max(took)) if took else _FIRST_SECONDS
        free = shutil.disk_usage(_existing(self.folder)).free
        return (
            f"{len(self.releases)} releases, {len(kept)} of them are there; the rest takes {_minutes(low * left)} to "
            f"{_minutes(high * left)}, and up to {left * RELEASE_BYTES / 1e9:.0f} GB of disk "
            f"({free / 1e9:.0f} GB are free), of which 0.05 to 0.14 GB each are fetched"
        )

    def run(self) -> Iterator[Run]:
        """Yield each release when it is done; a fault of ours is its outcome, and the next one follows.

        Raises:
            MpsBuildError: nothing can be run now: network, disk, machine. UsageError: the suite has no such case.
            KeyboardInterrupt: the same command goes on.
        """
        kept = self.kept()
        for release in self.releases:
            yield kept[release] if release in kept else self._run(release)

    def _run(self, release: str) -> Run:
        self.console.started(f"torch {release}")
        earlier = self._record(release)
        request = replace(
            self.request,
            simulated=Simulated(release=release, macos=self.macos, official=True),
            folder=self.folder / release,
            resume=earlier is not None and earlier.partial and bool(earlier.cases),
        )
        assert request.simulated is not None
        try:
            with OfficialSuite(request, request.simulated, wheel=f"torch=={release}") as suite:
                record = Verification(request, self.console, suite).run()
        except (OwnFault, CompileError, NoSuchWheel) as error:
            return Run(release=release, cause=_line(error))
        finally:
            self.console.done()
        if record.cause == UsageError.cause:  # no release can answer what was not a question
            raise UsageError(record.message or "the suite refuses its options", hint=record.hint)
        return _run_of(release, record)

    def _record(self, release: str) -> Record | None:
        """Return what there is of a release, if it is of the same cases, macOS and kind of device."""
        try:
            record = load_record(self.folder / release / "record.json")
        except UsageError:  # none, or a damaged one: it is run anew
            return None
        wanted = Simulated(release=release, macos=self.macos, official=True)
        is_same = record.simulated == wanted and _unordered(record.selection) >= _unordered(self.request.selection())
        return record if is_same and record.torch.wheel is not None and record.torch.wheel.sha256 else None


def _unordered(selection: Mapping[str, Any]) -> frozenset[str]:
    """Return what was chosen of the suite: in which order ids were named makes no difference."""
    return frozenset(
        f"{name}: {sorted(value) if isinstance(value, list) else value}" for name, value in selection.items()
    )


def _run_of(release: str, record: Record) -> Run:
    if any(not case.is_event for case in record.cases):
        return Run(release=release, record=record)
    return Run(release=release, cause=f"{record.cause}: {record.message or 'no case was run'}")


def _line(error: MpsBuildError) -> str:
    """Return a cause in one line: what stands in the way is in the last words."""
    return " ".join(f"{error.cause}: {error}".split())[-300:]


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)
