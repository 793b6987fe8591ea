"""Which nightlies stay: a month of days, then one a week; the others are yanked first and deleted later."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from mps_build.common.wheels.wheel_file import WheelFile

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
        if first_of_week[(wheel.name, wheel.interpreter, *built.isocalendar()[:2])] == built:
            continue
        since = yanked.get(wheel.file, today)
        if (today - since).days >= yanked_days:
            deleted.append(wheel.file)
        else:
            now_yanked[wheel.file] = since
    return Retention(yanked=now_yanked, deleted=tuple(deleted))
