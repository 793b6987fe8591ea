"""A checker of Objective-C++ on a tree without files: what is compiled has the declarations alone."""

from __future__ import annotations

from pathlib import Path

from mps_build.wheel_build.mm.compiler import Checker, find_zig
from mps_build.wheel_build.mm.tree import MpsTree
from mps_build.wheel_build.objc import write_frameworks


def bare_checker(folder: Path, *flags: str, target: str) -> Checker:
    """Return a checker that writes below a folder; `flags` default to those of PyTorch."""
    tree = MpsTree(root=folder, release="2.6.0", standard="17", flags=flags or ("-fno-objc-arc",), include=())
    (folder / "scratch").mkdir(exist_ok=True)
    frameworks = write_frameworks(folder / "frameworks")
    return Checker(
        zig=find_zig(), tree=tree, generated=(), frameworks=frameworks, target=target, scratch=folder / "scratch"
    )
