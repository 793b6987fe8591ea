"""The pages and files of an index, written whole: beside its place first, then moved there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mps_build.common.errors import RefusedForSafety, UsageError, reason_of
from mps_build.common.files import copy_whole
from mps_build.common.opening import NotAFile
from mps_build.common.wheels.sets import MatchedSet
from mps_build.common.wheels.wheel_file import BILL, WheelFile, read_wheel
from mps_build.common.writable import check_writable

from . import pages
from .retention import REASON
from .state import STATE, State


def check_place(site: Path) -> None:
    """Refuse a folder that is not an index of ours: it would be replaced whole.

    Raises:
        UsageError: it holds something else.
    """
    if site.is_symlink():
        raise UsageError(f"{site} is a symbolic link", hint="name the folder that it leads to with --output")
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
    state: State,
    base_url: str | None,
) -> None:
    """Write the index to `site`; `base_url` is where the wheels lie, None to put them into the site itself.

    Raises:
        RefusedForSafety: a file changed since it was read; the site stays as it was.
    """
    fresh, old = (site.with_name(f".{site.name}.{os.getpid()}{end}") for end in ("", ".old"))
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        _fill(fresh, wheels, sets, state, base_url)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    if site.exists():
        site.rename(old)
    fresh.rename(site)
    shutil.rmtree(old, ignore_errors=True)


def _fill(
    fresh: Path, wheels: Sequence[WheelFile], sets: Sequence[MatchedSet], state: State, base_url: str | None
) -> None:
    reasons = {file: state.reasons.get(file, REASON) for file in state.yanked}
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
    _write(fresh / STATE, state.text())


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
        _copy(wheel, folder)
        if not with_wheels:
            (folder / wheel.file).unlink()
        (folder / f"{wheel.file}.metadata").write_bytes(wheel.metadata)
        if wheel.bill is not None:
            (folder / f"{wheel.file}{BILL}").write_bytes(wheel.bill)


def _copy(wheel: WheelFile, folder: Path) -> None:
    """Copy a wheel with what lies beside it, and ask of the copies all that was asked before.

    A hard link would publish what is written into the wheelhouse later, and between the check and the copy another file
    can take a name; what is in `folder` nobody else writes to.

    Raises:
        RefusedForSafety: the copies are not what was checked.
    """
    try:
        for name in (wheel.file, *wheel.beside):
            copy_whole(wheel.path.with_name(name), folder / name, follow=False)
        copied = replace(read_wheel(folder / wheel.file, follow=False), path=wheel.path)
        why = f"it had sha256 {wheel.sha256}, the copy has {copied.sha256}"
    except (FileNotFoundError, NotAFile) as error:
        copied, why = None, f"{Path(error.filename).name}: {reason_of(error)}"
    except UsageError as error:
        copied, why = None, str(error)
    if copied != wheel:
        raise RefusedForSafety(
            f"nothing was published: {wheel.file} changed while it was copied: {why}",
            hint="find out what writes to the folder of the wheels, then run the same command again",
        )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
