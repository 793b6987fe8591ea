"""Files to a report: compile each, leave out what is guarded, tell mistakes from what we do not know."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from mps_build.common.opening import read_text
from mps_build.common.reporter import Reporter

from ..objc.model import load_frameworks, version
from .compiler import Checker, say
from .diagnostics import Diagnostic, Known, Said, concerns, judge, newer_than_target
from .guards import Names, calls, function_around, guarded, is_static, read_names
from .messages import late_messages, late_selectors, own_selectors
from .shared_header import flags_with, may_share, shared_header
from .text import Source, blanked, read_source

_DEEPEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found in how many files; `diagnostics` are mistakes, `unknown` are gaps of our declarations."""

    files: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    unknown: tuple[Diagnostic, ...]
    cpu_seconds: float = 0.0


@dataclass(slots=True)
class _Sources:
    """The tree's MPS files, read when a helper's callers are asked for."""

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
    return _asked(sources, source, source.offset(said.line, said.column), version(newer[1]), seen=frozenset())


def _asked(sources: _Sources, source: Source, place: int, since: tuple[int, ...], *, seen: frozenset[str]) -> bool:
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
    return all(_asked(sources, other, call, since, seen=seen | {name}) for other, call in places)


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
