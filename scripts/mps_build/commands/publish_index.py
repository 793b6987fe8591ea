"""Write a static package index of wheels, with hashes, receipts and attestations.

The wheels are those in DIR (default: wheelhouse/). Any web server can serve the index; pip and uv install from it.

Each torch with the torchvision and torchaudio built for it is a set, with an index of its own, so that
no other torch can be mixed in: sets/ID/simple/, with requirements.txt (pins and hashes), constraints.txt
and dependencies.txt. Receipts, attestations and PEP 658 metadata lie beside the wheels.

A published name keeps its bytes: others under the same name are refused (exit 21), unless the wheel was withdrawn
before by --yank. No link is followed; wheels are copied, and the copies are checked.

--base-url says where the wheels lie (a release's assets, say): the site then holds pages and metadata
only. --prune lets old nightlies go: yanked first, deleted from DIR 30 days later.

The new site takes the old one's place in one step, and a run that was killed loses nothing: the next one cleans up. A
second run with the same --output waits for the first.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from pathlib import Path
from urllib.parse import urlsplit

from mps_build.common.console import Console, human_bytes
from mps_build.common.errors import UsageError
from mps_build.common.files import write_whole
from mps_build.common.plain_text import Markdown, in_code, markdown_table, plain
from mps_build.common.reporting import Result, job_summary
from mps_build.common.wheels.wheel_file import BESIDE, MatchedSet, WheelFile, matched_sets, read_wheels
from mps_build.common.workspace import wheelhouse
from mps_build.publish.index.site import check_place, held, recover, write_site
from mps_build.publish.index.state import (
    STATE,
    Retention,
    after,
    as_published,
    check_names,
    is_deleted,
    read_state,
    retain,
    still_yanked,
    withdraw,
)

TASK = ("publish", 1)
FIRST = ("--output", "--base-url", "--prune", "--yank", "--dry-run")
EXITS = (21,)
DOCUMENT = "site:string dry_run:boolean sets:array wheels:array yanked:object deleted:array notes:array"
EXAMPLES = (
    "wheelhouse --output site",
    "wheelhouse --output site --base-url https://example.org/releases/download/v1/",
    "wheelhouse --output site --prune --dry-run",
    "wheelhouse --output site --yank torch-2.6.0-cp312-cp312-macosx_13_0_arm64.whl --reason 'wrong results'",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    folder: Path | None
    output: Path | None
    base_url: str | None
    prune: bool
    yank: tuple[str, ...]
    reason: str
    keep: tuple[str, ...]
    days: int
    today: date | None
    dry_run: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument(
        "folder",
        metavar="DIR",
        type=Path,
        nargs="?",
        help="the folder with the wheels and the files that belong to them (default: wheelhouse/)",
    )
    parser.add_argument("--output", metavar="SITE", type=Path, help="folder for the site (default: DIR/index)")
    parser.add_argument(
        "--base-url", metavar="URL", type=_base_url, help="the address of the wheels, if not in the site"
    )
    parser.add_argument(
        "--prune", action="store_true", help="yank old nightlies, and delete those that were yanked long ago"
    )
    parser.add_argument(
        "--yank",
        metavar="FILE",
        action="append",
        default=[],
        help="withdraw a published wheel: pip takes it by pin only",
    )
    parser.add_argument("--reason", metavar="TEXT", default="withdrawn", help="why, for --yank; clients show it")
    parser.add_argument("--keep", metavar="NAME", action="append", default=[], help="a version or file to keep")
    parser.add_argument("--days", metavar="N", type=int, default=30, help="keep all nightlies younger than this")
    parser.add_argument("--today", metavar="DATE", type=_date, help="the date to use as today (YYYY-MM-DD)")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be written, yanked and deleted")


def run(options: Options, console: Console) -> Result:
    """Write the site, or with `--dry-run` only show what would change.

    Raises:
        UsageError: a wheel is damaged, or every wheel would be deleted.
        RefusedForSafety: a published name has other bytes, or a file changed while it was copied.
    """
    folder = options.folder or wheelhouse()
    site = (options.output or folder / "index").absolute()
    check_place(site)
    if options.dry_run and not site.parent.is_dir():
        return _publish(options, folder, site, console)  # nothing there to hold, and nothing is made
    with held(site, on_wait=console.warn):
        if recover(site):
            console.warn(f"a run was killed while it replaced {site}: the site before it was put back")
        return _publish(options, folder, site, console)


def _publish(options: Options, folder: Path, site: Path, console: Console) -> Result:
    known = read_state(site)
    found = read_wheels(folder)
    wheels = tuple(wheel for wheel in found if not is_deleted(wheel, known))
    _check_keep(options.keep, wheels)
    today = options.today or datetime.now(timezone.utc).date()
    state = withdraw(known, options.yank, today=today, reason=plain(options.reason))
    wheels = as_published(wheels, options.yank, state, site)
    check_names(wheels, state)
    yanked = still_yanked(wheels, state)
    kept = Retention(yanked=yanked, deleted=())
    if options.prune:
        kept = retain(wheels, today=today, yanked=yanked, keep=options.keep, days=options.days)
        by_hand = {file: yanked[file] for file in state.reasons.keys() & yanked.keys() - set(kept.deleted)}
        kept = replace(kept, yanked={**kept.yanked, **by_hand})
    staying = tuple(wheel for wheel in wheels if wheel.file not in kept.deleted)
    if not staying:
        raise UsageError("every wheel would be deleted", hint="check --today, --days and --keep")
    sets, unmatched = matched_sets(staying)
    _print(sets, staying, kept, console)
    notes = (*(f"in no set: {note}" for note in unmatched), *_past_the_index(staying))
    for note in notes:
        console.warn(note)
    if options.dry_run:
        console.print(f"dry run: nothing written to {site}, nothing deleted")
    else:
        gone = [wheel for wheel in wheels if wheel.file in kept.deleted]
        gone += [wheel for wheel in found if is_deleted(wheel, known)]  # a killed run's, not done yet
        deleted = {wheel.file: wheel.sha256 for wheel in gone}
        then = after(state, staying, yanked=kept.yanked, deleted=deleted)
        write_site(site, wheels=staying, sets=sets, state=then, base_url=options.base_url)
        # After the site no longer names them: who reads the old one meanwhile still finds them.
        for wheel in gone:
            for suffix in (*BESIDE, ""):
                wheel.path.with_name(wheel.file + suffix).unlink(missing_ok=True)
        if gone:
            write_whole(site / STATE, replace(then, deleting={}).text())
        console.print(f"next: serve {site}; try it with `python -m http.server -d '{site}'`")
    _job_summary(sets, kept)
    return Result(document=_document(site, sets, staying, kept, notes, dry_run=options.dry_run))


def _print(sets: tuple[MatchedSet, ...], wheels: tuple[WheelFile, ...], kept: Retention, console: Console) -> None:
    rows = [
        (
            wheel.name,
            str(wheel.version),
            wheel.interpreter,
            human_bytes(wheel.size),
            _beside(wheel),
            _state(wheel, kept),
        )
        for wheel in wheels
    ]
    console.table(("project", "version", "python", "size", "beside it", ""), rows)
    for each in sets:
        console.print(f"set {each.id}: {', '.join(wheel.name for wheel in each.wheels)}")
    for file in kept.deleted:
        console.print(f"deleted: {file}")


def _past_the_index(wheels: tuple[WheelFile, ...]) -> tuple[str, ...]:
    return tuple(
        f"{wheel.file} needs {each}: installers take it from that address, past every index and unchecked"
        for wheel in wheels
        for each in wheel.direct_addresses
    )


def _beside(wheel: WheelFile) -> str:
    return ", ".join(name.removeprefix(f"{wheel.file}.").removesuffix(".json") for name in wheel.beside) or "-"


def _state(wheel: WheelFile, kept: Retention) -> str:
    return f"yanked since {kept.yanked[wheel.file]}" if wheel.file in kept.yanked else ""


def _document(
    site: Path,
    sets: tuple[MatchedSet, ...],
    wheels: tuple[WheelFile, ...],
    kept: Retention,
    notes: tuple[str, ...],
    *,
    dry_run: bool,
) -> dict[str, object]:
    return {
        "site": str(site),
        "dry_run": dry_run,
        "sets": [{"id": each.id, "wheels": [wheel.file for wheel in each.wheels]} for each in sets],
        "wheels": [{"file": wheel.file, "sha256": wheel.sha256, "size": wheel.size} for wheel in wheels],
        "yanked": {file: since.isoformat() for file, since in kept.yanked.items()},
        "deleted": list(kept.deleted),
        "notes": list(notes),
    }


def _job_summary(sets: tuple[MatchedSet, ...], kept: Retention) -> None:
    rows = [(in_code(each.id), Markdown(", ".join(in_code(wheel.file) for wheel in each.wheels))) for each in sets]
    lines = [
        *markdown_table(("set", "wheels"), rows),
        "",
        f"{len(kept.yanked)} yanked, {len(kept.deleted)} deleted",
        "",
    ]
    job_summary("\n".join(lines))


def _check_keep(keep: tuple[str, ...], wheels: tuple[WheelFile, ...]) -> None:
    known = {name for wheel in wheels for name in (wheel.file, str(wheel.version))}
    if unknown := sorted(set(keep) - known):
        raise UsageError(
            f"--keep {', '.join(unknown)}: no such version or file", hint="nothing was deleted: correct the name"
        )


def _base_url(text: str) -> str:
    if urlsplit(text).scheme not in ("http", "https") or not urlsplit(text).netloc:
        raise argparse.ArgumentTypeError(f"{text!r} is not an http or https address")
    return text if text.endswith("/") else f"{text}/"


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day: {error}") from error
