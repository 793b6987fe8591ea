"""The pages and files of an index, written whole: beside its place first, then moved there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from mps_build.common.errors import UsageError
from mps_build.common.json_text import read_json
from mps_build.common.wheels.sets import MatchedSet
from mps_build.common.wheels.wheel_file import BILL, WheelFile
from mps_build.common.writable import check_writable

from . import pages

STATE = "index-state.json"


def read_yanked(site: Path) -> dict[str, date]:
    """Return what stood yanked in the site as it is, file -> since when.

    Raises:
        UsageError: the state cannot be read; without it a wheel could be deleted too early, or never.
    """
    path = site / STATE
    if not path.is_file():
        return {}
    try:
        yanked = read_json(path)["yanked"]
        return {str(file): date.fromisoformat(since) for file, since in yanked.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} cannot be read: {error!r}", hint="restore the last good one, or start in a new --output"
        ) from error


def check_place(site: Path) -> None:
    """Refuse a folder that is not an index of ours: it would be replaced whole.

    Raises:
        UsageError: it holds something else.
    """
    check_writable(site.parent, what="the index", hint="name another folder with --output")
    if site.exists() and not (site / STATE).is_file() and (not site.is_dir() or any(site.iterdir())):
        raise UsageError(
            f"{site} exists and is not an index made by mps-build", hint="name an empty folder with --output"
        )


def write_site(
    site: Path,
    *,
    wheels: Sequence[WheelFile],
    sets: Sequence[MatchedSet],
    yanked: Mapping[str, date],
    reason: str,
    base_url: str | None,
) -> None:
    """Write the index to `site`; `base_url` is where the wheels lie, None to put them into the site itself."""
    fresh = site.with_name(f".{site.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    reasons = dict.fromkeys(yanked, reason)
    # The metadata is looked for at the wheel's own address: it goes where the wheels go.
    _write_files(fresh / "wheels", wheels, with_wheels=base_url is None)
    _write_simple(fresh / "simple", wheels, base=base_url or "../../wheels/", yanked=reasons)
    for each in sets:
        folder = fresh / "sets" / each.id
        _write_simple(folder / "simple", each.wheels, base=base_url or "../../../../wheels/", yanked=reasons)
        _write(folder / "constraints.txt", each.constraints())
        _write(folder / "requirements.txt", each.requirements())
        _write(folder / "dependencies.txt", each.dependencies())
    _write(fresh / "index.html", pages.front_page(sets, wheels, base=base_url or "wheels/", yanked=reasons))
    state = {"yanked": {file: since.isoformat() for file, since in sorted(yanked.items())}}
    _write(fresh / STATE, json.dumps(state, indent=1) + "\n")
    old = site.with_name(f".{site.name}.{os.getpid()}.old")
    if site.exists():
        site.rename(old)
    fresh.rename(site)
    shutil.rmtree(old, ignore_errors=True)


def _write_simple(folder: Path, wheels: Sequence[WheelFile], *, base: str, yanked: Mapping[str, str]) -> None:
    names = sorted({wheel.name for wheel in wheels})
    _write(folder / "index.html", pages.project_list(names))
    _write(folder / "index.json", pages.list_json(names))
    for name in names:
        own = [wheel for wheel in wheels if wheel.name == name]
        _write(folder / name / "index.html", pages.project_page(name, own, base=base, yanked=yanked))
        _write(folder / name / "index.json", pages.project_json(name, own, base=base, yanked=yanked))


def _write_files(folder: Path, wheels: Sequence[WheelFile], *, with_wheels: bool) -> None:
    folder.mkdir(parents=True)
    for wheel in wheels:
        (folder / f"{wheel.file}.metadata").write_bytes(wheel.metadata)
        if wheel.bill is not None:
            (folder / f"{wheel.file}{BILL}").write_bytes(wheel.bill)
        for name in ((wheel.file,) if with_wheels else ()) + wheel.beside:
            source = wheel.path.with_name(name)
            try:
                os.link(source, folder / name)
            except OSError:  # another file system, or one without links
                shutil.copy2(source, folder / name)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
