"""Pack recording, receipts, logs and versions into one scrubbed file for an issue.

Your name is not in it.

User name, home, host name, serial numbers, addresses and what looks like a password are taken out of every text; links
are not followed; of a long log its end is kept. What is in the file, and what was taken out, is printed: look at it
before you send it.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from mps_build.common.console import Console, human_bytes
from mps_build.common.errors import UsageError
from mps_build.common.reporting import Result
from mps_build.common.workspace import cache_folder, work_folder
from mps_build.host.support import collect, write_bundle

TASK = ("host", 3)
DOCUMENT = "output:string entries:array left_out:object removed:object"
EXAMPLES = ("", "--output support.tar.gz", "v2.6.0 --log-size 1000")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    name: tuple[str, ...]
    output: Path | None
    log_size: int
    total_size: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument(
        "name", nargs="*", metavar="NAME", help="only these folders of the work folder (such as v2.6.0, verify)"
    )
    parser.add_argument("--output", metavar="FILE", type=Path, help="the file (default: mps-build-support-DATE.tar.gz)")
    parser.add_argument("--log-size", metavar="KB", type=int, default=256, help="how much of each log's end to include")
    parser.add_argument(
        "--total-size",
        metavar="MB",
        type=int,
        default=20,
        help="size limit of all texts together; the newest come first",
    )


def run(options: Options, console: Console) -> Result:
    """Write the bundle and print its size and what was removed.

    Raises:
        UsageError: the file exists, or a named folder does not.
    """
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S")
    output: Path = (options.output or Path(f"mps-build-support-{stamp}.tar.gz")).absolute()
    _check(options, output)
    with console.step("Collect"):
        bundle = collect(
            work_folder(),
            cache_folder(),
            names=tuple(options.name),
            log_bytes=options.log_size * 1000,
            total_bytes=options.total_size * 1_000_000,
        )
    write_bundle(bundle, output)
    rows = [(entry.name, human_bytes(len(entry.data)), entry.note) for entry in bundle.entries]
    console.table(("in it", "size", ""), rows)
    console.table(("left out", "why"), list(bundle.left_out.items())) if bundle.left_out else None
    removed = [(kind, str(count)) for kind, count in sorted(bundle.removed.items())]
    console.table(("taken out", "times"), removed or [("nothing", "")])
    console.print(f"{output}: {human_bytes(output.stat().st_size)}; read it before you attach it")
    return Result(
        document={
            "output": str(output),
            "entries": [{"name": each.name, "bytes": len(each.data), "note": each.note} for each in bundle.entries],
            "left_out": dict(bundle.left_out),
            "removed": dict(bundle.removed),
        }
    )


def _check(options: Options, output: Path) -> None:
    if not output.name.endswith((".tar.gz", ".tgz")):
        raise UsageError(f"--output {output.name}: the bundle is a .tar.gz", hint="--output support.tar.gz")
    if output.exists() or output.is_symlink():
        raise UsageError(f"--output {output}: already exists", hint="name another file, or remove it")
    if not output.parent.is_dir():
        raise UsageError(f"--output {output}: there is no folder {output.parent}", hint="give an existing folder")
    if options.log_size < 1 or options.total_size < 1:
        raise UsageError("--log-size and --total-size take numbers from 1", hint="--log-size 256 --total-size 20")
    known = sorted(path.name for path in work_folder().iterdir() if path.is_dir()) if work_folder().is_dir() else []
    unknown = [name for name in options.name if name not in known]
    if unknown:
        raise UsageError(
            f"the work folder {work_folder()} has no {', '.join(unknown)}",
            hint=f"there: {', '.join(known) or 'nothing'}",
        )
