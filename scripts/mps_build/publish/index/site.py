"""The pages and files of an index, written whole: beside its place first, then put there."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mps_build.common.errors import HostError, RefusedForSafety, UsageError, reason_of
from mps_build.common.files import NotAFile, copy_whole
from mps_build.common.wheels.wheel_file import BILL, MatchedSet, WheelFile, read_wheel

from . import pages
from .place import next_place, take_place
from .retention import REASON
from .state import STATE, State, read_state


def write_site(
    site: Path,
    *,
    wheels: Sequence[WheelFile],
    sets: Sequence[MatchedSet],
    state: State,
    base_url: str | None,
) -> None:
    """Write the index to `site`, which the caller holds.

    Args:
        base_url: where the wheels lie; None puts them into the site itself.

    Raises:
        RefusedForSafety: a file changed since it was read; the site stays as it was.
        HostError: what was written is not read back; the site stays as it was.
    """
    fresh = next_place(site)
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        _fill(fresh, wheels, sets, state, base_url)
        if read_state(fresh) != state:
            raise HostError(
                f"{fresh / STATE} reads otherwise than it was written; {site} stays as it was",
                hint="check the disk, or what else writes there, then run the same command again",
            )
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    take_place(site)


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
    _write(fresh / STATE, state.text())  # last: a site that has it is whole


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
