"""What an index has published and withdrawn so far: the only memory between two runs, and what it forbids.

Nightlies stay a month of days, then one a week; the others are yanked first and deleted later.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from mps_build.common.errors import RefusedForSafety, UsageError
from mps_build.common.json_text import head, read_json
from mps_build.common.wheels.wheel_file import WheelFile, read_wheel

STATE = "index-state.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """File -> the sha256 under which it was published, the day it was yanked, why (`--yank` alone gives a reason).

    A file that is in no page any more keeps its place here: whoever pinned its hash must never get other bytes.
    `deleting` holds the files (with their sha256) that went from the pages and still have to go from the folder of the
    wheels: a run that was killed in between must not publish them again as new ones.
    """

    published: Mapping[str, str] = field(default_factory=dict)
    yanked: Mapping[str, date] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    deleting: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return the state's file."""
        document = {
            **head("index_state"),
            "published": dict(sorted(self.published.items())),
            "yanked": {file: since.isoformat() for file, since in sorted(self.yanked.items())},
            "reasons": dict(sorted(self.reasons.items())),
            "deleting": dict(sorted(self.deleting.items())),
        }
        return json.dumps(document, indent=1) + "\n"


def read_state(site: Path) -> State:
    """Return the state of the site as it is; of a site that is not there, an empty one.

    Raises:
        UsageError: it cannot be read; without it a wheel could be deleted too early, or replaced.
    """
    path = site / STATE
    if not path.is_file():
        return State()
    try:
        document = read_json(path)
        # An older mps-build kept no hashes beside the pages.
        published = document["published"] if "published" in document else _in_pages(site)
        return State(
            published={str(file): str(sha256) for file, sha256 in published.items()},
            yanked={str(file): date.fromisoformat(since) for file, since in document["yanked"].items()},
            reasons={str(file): str(text) for file, text in document.get("reasons", {}).items()},
            deleting={str(file): str(sha256) for file, sha256 in document.get("deleting", {}).items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} cannot be read: {error!r}", hint="restore the last good one, or start in a new --output"
        ) from error


def check_names(wheels: Sequence[WheelFile], state: State) -> None:
    """Refuse other bytes under a name that is published: pip and uv keep its hash in lock files and its file in caches.

    Raises:
        RefusedForSafety: for all of them at once; a file that stands yanked may be replaced.
    """
    others = [
        f"{wheel.file}: published with sha256 {state.published[wheel.file]}, now {wheel.sha256}"
        for wheel in wheels
        if state.published.get(wheel.file, wheel.sha256) != wheel.sha256 and wheel.file not in state.yanked
    ]
    if others:
        listed = "\n  ".join(others)
        raise RefusedForSafety(
            f"nothing was published: {len(others)} names are published with other bytes:\n  {listed}",
            hint="give the new wheel a version or a build tag of its own; or withdraw the published one first"
            " (--yank FILE), and publish again",
        )


def withdraw(state: State, names: Collection[str], *, today: date, reason: str) -> State:
    """Return the state with these files yanked (PEP 592); one that is yanked already keeps its day.

    Raises:
        UsageError: one of them was never published.
    """
    if unknown := sorted(set(names) - state.published.keys()):
        raise UsageError(
            f"--yank {', '.join(unknown)}: no such file was published",
            hint="give the file's whole name, as it is listed",
        )
    return replace(
        state,
        yanked={**dict.fromkeys(names, today), **state.yanked},
        reasons={**state.reasons, **dict.fromkeys(names, reason)},
    )


def as_published(
    wheels: Sequence[WheelFile], names: Collection[str], state: State, site: Path
) -> tuple[WheelFile, ...]:
    """Return the wheels, and of each withdrawn one the bytes that were published: from the folder, or from the site.

    Raises:
        UsageError: neither has them.
    """
    found: dict[str, WheelFile] = {wheel.file: wheel for wheel in wheels}
    for name in names:
        if name not in found or found[name].sha256 != state.published[name]:
            found[name] = _from_site(site / "wheels" / name, state.published[name])
    return tuple(sorted(found.values(), key=lambda wheel: (wheel.name, wheel.version, wheel.file)))


def still_yanked(wheels: Sequence[WheelFile], state: State) -> dict[str, date]:
    """Return which of the wheels stand yanked; new bytes under a withdrawn name do not."""
    return {
        wheel.file: state.yanked[wheel.file]
        for wheel in wheels
        if wheel.file in state.yanked and state.published.get(wheel.file, wheel.sha256) == wheel.sha256
    }


def is_deleted(wheel: WheelFile, state: State) -> bool:
    """True for a wheel that an earlier run took out of the pages, and was killed before it deleted the file."""
    return state.deleting.get(wheel.file) == wheel.sha256


def after(
    state: State, wheels: Sequence[WheelFile], *, yanked: Mapping[str, date], deleted: Mapping[str, str]
) -> State:
    """Return the state once `wheels` are published, `yanked` of them withdrawn; what is deleted frees its name.

    Args:
        deleted: file -> sha256 of the wheels that go from their folder next.
    """
    here = {wheel.file: wheel.sha256 for wheel in wheels}
    published = {file: sha256 for file, sha256 in {**state.published, **here}.items() if file not in deleted}
    gone = {file: since for file, since in state.yanked.items() if file in published and file not in here}
    all_yanked = {**gone, **yanked}
    return State(
        published=published,
        yanked=all_yanked,
        reasons={file: text for file, text in state.reasons.items() if file in all_yanked},
        deleting=deleted,
    )


def _in_pages(site: Path) -> dict[str, str]:
    rows: list[dict[str, Any]] = []
    for page in sorted(site.glob("simple/*/index.json")):
        rows += read_json(page)["files"]
    return {row["filename"]: row["hashes"]["sha256"] for row in rows}


def _from_site(path: Path, sha256: str) -> WheelFile:
    hint = "put the published file into the folder of the wheels, then run the same command again"
    try:
        wheel = read_wheel(path, follow=False)
    except UsageError as error:
        raise UsageError(f"--yank {path.name}: the published bytes are not here: {error}", hint=hint) from error
    if wheel.sha256 != sha256:
        raise UsageError(f"--yank {path.name}: the site's copy was changed: it has sha256 {wheel.sha256}", hint=hint)
    return wheel


REASON = "an old nightly; it will be deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What becomes of the wheels: file -> the day it was yanked, and the files whose time is over."""

    yanked: Mapping[str, date]
    deleted: tuple[str, ...]


def retain(
    wheels: Sequence[WheelFile],
    *,
    today: date,
    yanked: Mapping[str, date],
    keep: Collection[str] = (),
    days: int = 30,
    yanked_days: int = 30,
) -> Retention:
    """Return what is yanked and what is deleted today.

    Releases stay, and whatever `keep` names (a file, or a version: the ends of a bisection, what an
    issue names). Of nightlies older than `days`, the first of each week stays. A wheel is deleted only
    after it stood yanked for `yanked_days` (PEP 592), so that who pinned it has time to see it.
    """
    old = [
        wheel
        for wheel in wheels
        if wheel.built_on is not None
        and (today - wheel.built_on).days > days
        and wheel.file not in keep
        and str(wheel.version) not in keep
    ]
    first_of_week: dict[tuple[str, str, int, int], date] = {}
    for wheel in old:
        built = wheel.built_on or today
        week = (wheel.name, wheel.interpreter, *built.isocalendar()[:2])
        first_of_week[week] = min(built, first_of_week.get(week, built))
    now_yanked: dict[str, date] = {}
    deleted = []
    for wheel in old:
        built = wheel.built_on or today
        week = (wheel.name, wheel.interpreter, *built.isocalendar()[:2])
        if first_of_week[week] == built:
            continue
        since = yanked.get(wheel.file, today)
        if (today - since).days >= yanked_days:
            deleted.append(wheel.file)
        else:
            now_yanked[wheel.file] = since
    return Retention(yanked=now_yanked, deleted=tuple(deleted))
