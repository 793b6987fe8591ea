"""Show disk usage of the work folder, the cache and nox's environments, and remove what is named.

Without WHAT it only shows. It removes nothing but what mps-build made itself, and no tree that a
build holds; wheels in the wheelhouse are yours and stay.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.console import Console, human_bytes
from mps_build.common.errors import UsageError
from mps_build.common.reporting import Result
from mps_build.common.workspace import CHECKOUT, Workspace, cache_folder, in_checkout, remove_tree, work_folder
from mps_build.host.disk_usage import Leftover, leftovers

from .shared.options import amount

TASK = ("host", 4)
DOCUMENT = "found:array chosen:array freed_bytes:integer"
EXAMPLES = ("", "work --dry-run", "work --older-than 14", "v2.6.0", "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    what: tuple[str, ...]
    older_than: float
    dry_run: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("what", nargs="*", metavar="WHAT", help="work, cache, nox, all, or names from the list")
    parser.add_argument(
        "--older-than", type=amount, default=0.0, metavar="DAYS", help="only what has not been used for this long"
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would be freed")


def run(options: Options, console: Console) -> Result:
    """List what lies in the folders, and remove what is named.

    Raises:
        UsageError: there is nothing of that name.
    """
    found = leftovers(work_folder(), cache_folder(), CHECKOUT / ".nox" if in_checkout() else None)
    chosen = _chosen(found, options)
    now = time.time()
    rows = []
    for each in found:
        mark = "free" if each in chosen else ""
        rows.append((each.kind, each.name, human_bytes(each.size), f"{(now - each.used) / 86400:.1f} days", mark))
    if rows:
        console.table(("where", "name", "size", "last used", ""), rows)
    freed = 0
    for each in chosen if not options.dry_run else ():
        if each.kind == "work":
            with Workspace(root=each.path).held():
                pass  # raises TreeInUse, which names the builder
        remove_tree(each.path)
        freed += each.size
    total = sum(each.size for each in found)
    would = sum(each.size for each in chosen)
    if options.what and options.dry_run:
        console.print(f"would free {human_bytes(would)} of {human_bytes(total)}")
    elif options.what:
        console.print(f"freed {human_bytes(freed)} of {human_bytes(total)}")
    else:
        console.print(f"{human_bytes(total)}; nothing was removed. They lie in {', '.join(map(str, _places(found)))}")
        if found:  # the largest is the first
            console.print(f"frees most: nox -s clean -- {found[0].name}  ({human_bytes(found[0].size)})")
    return Result(
        document={
            "found": [each.document() for each in found],
            "chosen": [str(each.path) for each in chosen],
            "freed_bytes": freed,
        }
    )


def _places(found: tuple[Leftover, ...]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(each.path.parent for each in found)) or (work_folder(), cache_folder())


def _chosen(found: tuple[Leftover, ...], options: Options) -> tuple[Leftover, ...]:
    wanted = set(options.what)
    known = {"work", "cache", "nox", "all"} | {each.name for each in found}
    unknown = sorted(wanted - known)
    if unknown:
        raise UsageError(
            f"there is nothing to remove called {', '.join(unknown)}", hint="`nox -s clean` lists the names"
        )
    oldest = time.time() - options.older_than * 86400
    return tuple(each for each in found if each.used <= oldest and wanted & {"all", each.kind, each.name})
