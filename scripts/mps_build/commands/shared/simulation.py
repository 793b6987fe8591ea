"""What `simulate` and `verify_mps --simulated` both take: a release or a wheel, and what the device answers as."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mps_build.common.workspace import expanded
from mps_build.simulation import DEFAULT_MACOS


@dataclass(frozen=True, kw_only=True)  # without slots, it can stand beside another base
class MacosOption:
    """What a simulated device answers as; None where the command line does not say."""

    macos: str | None

    @property
    def system(self) -> str:
        """The macOS that it answers as."""
        return self.macos or DEFAULT_MACOS


@dataclass(frozen=True, kw_only=True)
class SimulationOptions(MacosOption):
    """What a simulated device is of; None where the command line does not say."""

    source: Path | None
    torch: Literal["debian", "built"] | None

    @property
    def tree(self) -> Path | None:
        """The whole path of the user's tree, if there is one."""
        return expanded(self.source).absolute() if self.source else None


def add_macos(parser: argparse.ArgumentParser) -> None:
    """Add which macOS a simulated device answers as."""
    parser.add_argument(
        "--macos", metavar="X.Y", help=f"the macOS that a simulated device answers as (default: {DEFAULT_MACOS})"
    )


def add_simulation_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which simulated device it is, beside the release or the wheel."""
    add_macos(parser)
    parser.add_argument(
        "--source", metavar="TREE", type=Path, help="simulate your PyTorch tree of the release (default: Debian's)"
    )
    parser.add_argument(
        "--torch",
        choices=("debian", "built"),
        help="Linux's torch below it: Debian's, or built from TREE (default: Debian's where there is one)",
    )


def names_wheel(target: str) -> bool:
    """Whether it names a macOS wheel, where a recipe has a version or a path of its own.

    >>> names_wheel("torch==2.15.0"), names_wheel("torch-2.6.0.whl"), names_wheel("torch/r.yaml")
    (True, True, False)
    """
    return target.endswith(".whl") or re.match(r"\s*torch\s*($|[^\w\s./-])", target, re.IGNORECASE) is not None


def named_wheel(target: str) -> str:
    """Return the wheel that a target names: the whole path of a file, or a requirement without spaces."""
    return str(expanded(Path(target)).absolute()) if target.endswith(".whl") else target.replace(" ", "")
