"""The Objective-C++ that patches touch, checked where a tree is whole: before a Mac's hour is spent on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mps_build.common.cores import usable_cores
from mps_build.common.errors import BuildEnvironmentError, SourceError
from mps_build.common.reporter import Reporter

from ..patches.file import Patch
from ..patches.trial import scratch
from .check import Report, check_files
from .check_request import is_mps, make_checker
from .diagnostics import Diagnostic
from .tree import MpsTree, read_tree

NOT_WHOLE = "only the patched files of this source are here; give an unpacked tree to have their Objective-C++ checked"


def mm_files(names: Sequence[str]) -> tuple[str, ...]:
    """Return those of a tree's files that are MPS's Objective-C++."""
    return tuple(name for name in names if name.endswith(".mm") and is_mps(name))


def check_tree_files(
    root: Path, names: Sequence[str], *, target: str, folder: Path, reporter: Reporter
) -> Report | str:
    """Return the report on files of a patched tree, or why there is none.

    Args:
        names: files of the tree, from its root on.
        target: the oldest macOS.
        folder: where generated headers are kept.
    """
    try:
        checker = make_checker(read_tree(root), target=target, folder=folder, reporter=reporter)
        return check_files(checker, [root / name for name in names], jobs=usable_cores(), reporter=reporter)
    except (BuildEnvironmentError, SourceError) as error:
        return f"{error}{f' ({error.hint})' if error.hint else ''}"


def check_patches(
    root: Path, patches: Sequence[Patch], *, target: str, folder: Path, reporter: Reporter
) -> Report | str:
    """Return the report on the `.mm` files of patches as they are when all are applied, or why there is none.

    The tree itself stays as it is. Patches that do not fit are left out.
    """
    names = mm_files([str(file) for patch in patches for file in patch.files])
    if not names:
        return "no patch touches Objective-C++ of MPS"
    try:
        tree = read_tree(root.resolve())
    except SourceError:
        return NOT_WHOLE
    with scratch(root, patches) as copies:
        for patch in patches:
            if copies.fits(patch):
                copies.apply(patch)
        files = [path for name in dict.fromkeys(names) if (path := copies.folder / name).is_file()]
        try:
            checker = make_checker(tree, target=target, folder=folder, reporter=reporter)
            checker = replace(checker, tree=_seen_from(copies.folder, tree))
            report = check_files(checker, files, jobs=usable_cores(), reporter=reporter)
            return _named_from(copies.folder, report)
        except (BuildEnvironmentError, SourceError) as error:
            return f"{error}{f' ({error.hint})' if error.hint else ''}"


def _seen_from(folder: Path, tree: MpsTree) -> MpsTree:
    """Return the tree with the patched copies of its headers before its own."""
    return replace(tree, include=tuple(dict.fromkeys((folder / "aten/src", folder, *tree.include))))


def _named_from(folder: Path, report: Report) -> Report:
    """Return a report that names files as the tree does: the copies are gone when somebody reads it."""

    def named(each: Diagnostic) -> Diagnostic:
        return replace(each, file=each.file.removeprefix(f"{folder}/"))

    return replace(
        report,
        files=tuple(file.removeprefix(f"{folder}/") for file in report.files),
        diagnostics=tuple(map(named, report.diagnostics)),
        unknown=tuple(map(named, report.unknown)),
    )
