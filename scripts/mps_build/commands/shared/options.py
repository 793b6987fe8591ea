"""Options that several commands take, each declared once; and the numbers on a command line, with their limits."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mps_build.common.errors import UsageError

# Python reads no number of 4,301 digits, no float holds one of 309, and no file's name is as long.
_MOST_DIGITS = 256
_WEEK = 7 * 24 * 3600


def check_digits(text: str) -> None:
    """Refuse an argument that holds a number no program can read, wherever it would be read.

    Raises:
        UsageError: it does.
    """
    if found := re.search(rf"\d{{{_MOST_DIGITS},}}", text):
        raise UsageError(f"{text[:40]}…: holds a number of {len(found[0])} digits", hint="give a shorter one")


class Listed(argparse.Action):
    """A list with commas, `ID[,ID]`: given again it becomes longer."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Put the words behind those that are there."""
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, f"{before},{values}" if before else values)


def amount(text: str) -> float:
    """Return a number from 0 on: of seconds, days or gigabytes.

    Raises:
        argparse.ArgumentTypeError: it is none, or beyond a billion.
    """
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to a billion")
    return found


def count(text: str) -> int:
    """Return a whole number from 1 on.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def duration(text: str) -> float:
    """Return the seconds of a time above 0: `90`, `90s`, `10m` or `1h`.

    Raises:
        argparse.ArgumentTypeError: it is none, or longer than a week.

    >>> duration("90"), duration("1.5m"), duration("1h")
    (90.0, 90.0, 3600.0)
    """
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smh]?)", text)
    seconds = float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]] if found else 0.0
    if not 0 < seconds <= _WEEK:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: seconds, 10m or 1h")
    return seconds


_SERVED = "also run what the package index serves without a sha256 (a file is yours)"


def add_trust(parser: argparse.ArgumentParser, text: str = _SERVED) -> None:
    """Add the option; where it is given, what the index gives no hash of may run (`limits_of_run`)."""
    parser.add_argument("--trust", action="store_true", help=text)


def add_offline(parser: argparse.ArgumentParser) -> None:
    """Add the option that forbids the network."""
    parser.add_argument("--offline", action="store_true", help="use no network, only the cache")


def add_jobs(parser: argparse.ArgumentParser, *, default: int | None) -> None:
    """Add how many compilers run at once; None: what cores and memory allow."""
    more = "" if default else " (default: from cores and memory)"
    parser.add_argument("--jobs", metavar="N", type=count, default=default, help=f"number of compilers at once{more}")


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add what only shows what would be built, on this machine or on a recorded one."""
    parser.add_argument("--dry-run", action="store_true", help="only show what would be built, and whether it can be")
    parser.add_argument(
        "--host", metavar="FILE", type=Path, help="with --dry-run: check a recorded host instead of this one"
    )


def add_junit(parser: argparse.ArgumentParser) -> None:
    """Add the report that CI servers read."""
    parser.add_argument("--junit", metavar="FILE", type=Path, help="also write JUnit XML")


def add_findings(parser: argparse.ArgumentParser) -> None:
    """Add the reports of findings that CI servers and GitHub read."""
    add_junit(parser)
    parser.add_argument("--sarif", metavar="FILE", type=Path, help="also write the findings as SARIF, for GitHub")


def add_accept(parser: argparse.ArgumentParser) -> None:
    """Add what makes known issues alone a success."""
    parser.add_argument("--accept", choices=("known",), help="known: exit with 0 if only known issues failed")


class Renamed(argparse.Action):
    """An option's old name: it works for one more release, and says the new one. It is not in --help."""

    def __init__(self, *, new: str, **given: Any) -> None:
        super().__init__(help=argparse.SUPPRESS, **given)
        self.new = new

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Take the value as the new option would."""
        setattr(namespace, self.dest, values)
        print(f"note: {option} is now {self.new}; the old name goes with the next release", file=sys.stderr)


def add_inject(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the option that injects a fault, which the command is to notice."""
    parser.add_argument("--inject", metavar="FILE.py:NAME", help=text)
    parser.add_argument("--plant", action=Renamed, new="--inject", dest="inject", metavar="FILE.py:NAME")


def add_compiler_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what every build of C++ takes: variables, and how many compilers run at once."""
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="set a variable of the build (repeatable)",
    )
    add_jobs(parser, default=None)


def add_build_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which source is built, how, and for which Pythons."""
    parser.add_argument("recipe", nargs="?", metavar="RECIPE", help="v2.6.0, 2.6, sample, nightly, a path")
    parser.add_argument("--python", metavar="X.Y[,X.Y]", help="Pythons to build for (default: the recipe's)")
    parser.add_argument("--profile", choices=("release", "develop"), help="default: release; develop with --editable")
    parser.add_argument(
        "--source", metavar="SOURCE", help="your own tree as it stands, a tarball, or an address at HEAD"
    )
    parser.add_argument("--repo", metavar="URL", help="another repository: a folder, file:// or https://")
    parser.add_argument("--ref", metavar="REF", help="another commit, branch or tag of the repository")
    parser.add_argument(
        "--patch",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="a patch to apply after the recipe's (repeatable)",
    )
    add_compiler_arguments(parser)
    parser.add_argument(
        "--allow-jit-shaders", action="store_true", help="allow Metal kernels that are compiled at first use"
    )
    parser.add_argument("--without-metal4", action="store_true", help="allow a wheel without the Metal 4 kernels")
    parser.add_argument("--version-label", metavar="WORD", help="a word to add to the wheel's local version")
    parser.add_argument("--wheelhouse", metavar="DIR", type=Path, help="folder for the wheel (default: wheelhouse/)")
    parser.add_argument("--cache", choices=("ccache", "sccache"), help="use a compiler cache")
    parser.add_argument(
        "--shared-cache", action="store_true", help="with --cache sccache: use the fleet's store for a release too"
    )
    parser.add_argument(
        "--editable", action="store_true", help="build in place for editing, without a wheel (implies develop)"
    )
    add_dry_run(parser)
    add_offline(parser)
