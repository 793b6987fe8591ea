"""Files to a report: compile each, leave out what is guarded, tell mistakes from what we do not know."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from mps_build.common.cores import usable_cores
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError, SourceError, UsageError
from mps_build.common.files import read_text
from mps_build.common.git import git
from mps_build.common.process import capture
from mps_build.common.recipe.catalogue import all_recipes
from mps_build.common.recipe.model import Recipe
from mps_build.common.reporting import Reporter
from mps_build.common.wheels.naming import release_of

from ..objc import write_frameworks
from ..objc.model import load_frameworks, version
from ..patches.file import Patch
from ..patches.trial import scratch
from .compiler import Checker, find_zig, flags_with, may_share, say, shared_header
from .diagnostics import Diagnostic, Known, Said, concerns, judge, newer_than_target
from .guards import (
    Names,
    calls,
    function_around,
    guarded,
    is_static,
    late_messages,
    late_selectors,
    own_selectors,
    read_names,
)
from .text import Source, blanked, read_source
from .tree import MPS_FOLDERS, MpsTree, prepared_headers, read_tree

_DEEPEST = 4
SUFFIXES = (".mm", ".m", ".h")
NOT_WHOLE = "only the patched files of this source are here; give an unpacked tree to have their Objective-C++ checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found in how many files; `diagnostics` are mistakes, `unknown` are gaps of our declarations."""

    files: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    unknown: tuple[Diagnostic, ...]
    cpu_seconds: float = 0.0


@dataclass(slots=True)
class _Sources:
    """The tree's MPS files, read when a helper's callers are needed."""

    checker: Checker
    names: Names
    read: dict[Path, Source] = field(default_factory=dict)

    def source(self, path: Path) -> Source:
        if path not in self.read:
            self.read[path] = read_source(read_text(path, errors="replace"))
        return self.read[path]

    def all(self) -> list[Path]:
        return sorted(path for folder in self.checker.tree.folders for path in folder.rglob("*.mm"))


def check_files(checker: Checker, files: Sequence[Path], *, jobs: int, reporter: Reporter) -> Report:
    """Compile the files, as many at once as there are `jobs`, and return what is wrong in them.

    Raises:
        BuildEnvironmentError: the compiler does not work.
    """
    before = os.times()
    reporter.started("Check Objective-C++", total=len(files), unit="files")
    done = 0
    outputs: list[list[Said]] = []
    header = shared_header(checker, files)
    shared = {file: flags_with(header) for file in files if header and may_share(file)}
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for output in pool.map(lambda file: say(checker, file, shared=shared.get(file, ())), files):
            outputs.append(output)
            done += 1
            reporter.advanced(done)
    reporter.done()
    sources = _Sources(checker, tree_names(checker))
    heads = {path.name: path for path in checker.frameworks.include.rglob("*.h")}
    known = Known(load_frameworks(), heads)
    found: dict[Diagnostic, None] = {}
    late = _late(checker)
    for file, output in zip(files, outputs, strict=True):
        seen = {(said.line, said.text) for said in output}
        missed = late_messages(sources.source(file), str(file), late)
        for said in (*output, *(each for each in missed if (each.line, each.text) not in seen)):
            if not _ours(said, checker, file) or _is_guarded(said, sources, file):
                continue
            found[_shown(judge(said, known), said, checker)] = None
    ordered = sorted(found, key=lambda each: (each.file, each.line, each.column))
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return Report(
        files=tuple(_relative(str(file), checker) for file in files),
        diagnostics=tuple(each for each in ordered if each.severity != "unknown"),
        unknown=tuple(each for each in ordered if each.severity == "unknown"),
        cpu_seconds=round(spent, 1),
    )


def _late(checker: Checker) -> dict[str, str]:
    """Return the selectors that need a guard, but for those that the tree declares itself."""
    paths = (path for folder in checker.tree.folders for path in folder.glob("*.h"))
    own = {name for path in paths for name in own_selectors(read_text(path, errors="replace"))}
    late = late_selectors(load_frameworks(), checker.target)
    return {selector: since for selector, since in late.items() if selector not in own}


def tree_names(checker: Checker) -> Names:
    """Return what the tree's MPS headers call questions for the version."""
    names = Names()
    for folder in checker.tree.folders:
        for path in sorted(folder.glob("*.h")):
            names = read_names(blanked(read_text(path, errors="replace")), names)
    return names


def _ours(said: Said, checker: Checker, file: Path) -> bool:
    """Tell whether a thing that was said concerns the author: errors anywhere, warnings in the tree's MPS code."""
    if said.kind == "error":
        return True
    if not concerns(said):
        return False
    path = Path(said.file)
    return path == file or any(folder in path.parents for folder in checker.tree.folders)


def _is_guarded(said: Said, sources: _Sources, file: Path) -> bool:
    newer = newer_than_target(said)
    if newer is None:
        return False
    path = Path(said.file)
    try:
        source = sources.source(path)
    except OSError:
        return False
    return _is_guarded_at(sources, source, source.offset(said.line, said.column), version(newer[1]), seen=frozenset())


def _is_guarded_at(
    sources: _Sources, source: Source, place: int, since: tuple[int, ...], *, seen: frozenset[str]
) -> bool:
    """Tell whether a place is behind a question for `since`: in its function, or in all that call this."""
    if guarded(source, place, read_names(source.text, sources.names)) >= since:
        return True
    name = function_around(source, place)
    if name is None or name in seen or len(seen) >= _DEEPEST:
        return False
    places = []
    for path in {*sources.all(), *(path for path, each in sources.read.items() if each is source)}:
        other = sources.source(path)
        if name in other.text:
            places += [(other, call) for call in calls(other, name)]
    if not places:
        return is_static(source, place)  # nobody calls it: 2.6.0's nonzero_out_native_mps
    return all(_is_guarded_at(sources, other, call, since, seen=seen | {name}) for other, call in places)


def _shown(diagnostic: Diagnostic, said: Said, checker: Checker) -> Diagnostic:
    """Return a diagnostic with the file as seen from the tree, and, of a call that is too new, what to do."""
    text = diagnostic.text
    if newer := newer_than_target(said):
        text = (
            f"'{newer[0]}' is of macOS {newer[1]}, the wheel is for {checker.target} and later, and nothing around "
            "it asks: put it behind is_macos_13_or_newer(MacOSVersion::MACOS_VER_…_PLUS) or "
            f"@available(macOS {newer[1]}, *)"
        )
    return Diagnostic(
        file=_relative(diagnostic.file, checker),
        line=diagnostic.line,
        column=diagnostic.column,
        severity="error" if newer else diagnostic.severity,
        text=text,
    )


def _relative(file: str, checker: Checker) -> str:
    path = Path(file)
    return str(path.relative_to(checker.tree.root)) if path.is_relative_to(checker.tree.root) else file


# What is requested, as a checker and files: tree, headers, deployment target, the changed files.


def make_checker(tree: MpsTree, *, target: str, folder: Path, reporter: Reporter) -> Checker:
    """Return a checker for a tree: declarations written, generated headers made.

    Args:
        target: the oldest macOS that the wheel is for, as 13.0.
        folder: where all this lies, and stays for the next time.

    Raises:
        BuildEnvironmentError: there is no zig.
        SourceError: the tree's own generator failed.
    """
    zig = find_zig()
    scratch = folder / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    return Checker(
        zig=zig,
        tree=tree,
        generated=prepared_headers(tree, folder / "headers", reporter),
        frameworks=write_frameworks(folder / "frameworks"),
        target=target,
        scratch=scratch,
    )


def recipe_of(tree: MpsTree) -> Recipe | None:
    """Return the recipe whose rules hold for a tree: its release's, or the newest one that is older."""
    release = release_of(tree.release)
    known = [each for each in all_recipes() if each.source.kind != "embedded" and release_of(each.version)]
    older = [each for each in known if release_of(each.version)[:2] <= release[:2]]
    return max(older, key=lambda each: release_of(each.version), default=None)


def oldest_macos(recipe: Recipe | None) -> str:
    """Return the oldest macOS that MPS code of a release runs on: below its floor PyTorch refuses MPS."""
    if recipe is None:
        return "13.0"
    return max(recipe.deployment_target, recipe.mps_floor, key=version)


def existing_files(names: Sequence[Path]) -> tuple[Path, ...]:
    """Return the files as absolute paths.

    Raises:
        UsageError: one is missing, or is not Objective-C++.
    """
    for name in names:
        if not name.is_file():
            raise UsageError(f"{name} is not a file", hint="name .mm files; without any, the changed ones are checked")
        if name.suffix not in SUFFIXES:
            raise UsageError(f"{name} is not Objective-C++", hint="check_mm takes .mm, .m and .h files")
    return tuple(dict.fromkeys(name.resolve() for name in names))


def changed_files(root: Path, *, base: str | None) -> tuple[tuple[Path, ...], str]:
    """Return the MPS files of a tree that differ from the base commit, committed or not, and what that base is.

    Args:
        base: a commit or branch; None: where the branch left upstream's, or HEAD where that is not known.

    Raises:
        UsageError: not a git repository, or no such commit.
    """
    if not _git(root, "rev-parse", "--git-dir"):
        raise UsageError(
            f"{root} is not a git repository: which files were changed cannot be known", hint="name the files"
        )
    commit = _base(root, base)
    listed = _git(root, "diff", "--name-only", "--diff-filter=d", "-z", commit, "--")
    new = _git(root, "ls-files", "--others", "--exclude-per-directory=.gitignore", "-z")
    names = [name for name in f"{listed or ''}\0{new or ''}".split("\0") if name]
    chosen = [root / name for name in names if name.endswith((".mm", ".h")) and is_mps(name)]
    return tuple(path.resolve() for path in sorted(set(chosen)) if path.is_file()), commit


def is_mps(name: str) -> bool:
    """Tell MPS's files from iOS's and the old Metal backend's, which a Mac with MPS does not compile.

    >>> is_mps("aten/src/ATen/native/mps/operations/Pad.mm"), is_mps("aten/src/ATen/native/metal/MetalAten.mm")
    (True, False)
    """
    return name.startswith(tuple(f"{each}/" for each in MPS_FOLDERS)) and "/kernels/" not in name


def _base(root: Path, base: str | None) -> str:
    if base is not None:
        commit = _git(root, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}")
        if not commit:
            raise UsageError(
                f"--base {base}: no such commit in {root}", hint="a branch, a tag or a commit of that tree"
            )
        return commit
    for upstream in ("upstream/main", "origin/main", "origin/HEAD", "main"):
        commit = _git(root, "merge-base", "HEAD", upstream)
        if commit:
            return commit
    head = _git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    if not head:
        raise SourceError(f"{root} has no commit yet", hint="name the files")
    return head


def _git(root: Path, *arguments: str) -> str | None:
    answer = capture(git(*arguments, cwd=root, environ=fetch_environ(os.environ)), timeout_seconds=60)
    return answer.stdout.strip() if answer.ok else None


# The Objective-C++ that patches touch, checked where a tree is whole: before a Mac's hour is spent on it.


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
