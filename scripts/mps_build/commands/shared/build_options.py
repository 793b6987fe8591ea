"""The options of `build_wheel` and `shell`, and those that every build of C++ takes."""

from __future__ import annotations

import argparse
from pathlib import Path

from .numbers import count


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
    parser.add_argument(
        "--jobs", metavar="N", type=count, help="number of compilers at once (default: from cores and memory)"
    )


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
    parser.add_argument("--dry-run", action="store_true", help="only show what would be built, and whether it can be")
    parser.add_argument(
        "--host", metavar="FILE", type=Path, help="with --dry-run: check a recorded host instead of this one"
    )
    parser.add_argument("--offline", action="store_true", help="use no network, only the cache")
