"""How each patch stands to a tree: it applies, is there already, its file is not there, or it conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .file import Patch
from .trial import Misfit, scratch

State = Literal["applies", "upstream", "absent", "conflicts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One patch against one tree; `misfit` is there only where it conflicts."""

    patch: Patch
    state: State
    misfit: Misfit | None = None

    def document(self) -> dict[str, Any]:
        """Return the row of `refresh_patches --json`; `hunk` is null where the patch applies."""
        hunk = self.misfit.hunk if self.misfit else None
        return {
            "name": self.patch.name,
            "state": self.state,
            "fixes": list(self.patch.fixes),
            "reason": self.misfit.git_says if self.misfit else None,
            "hunk": hunk and {"file": str(hunk.path), "line": hunk.line, "lines": list(hunk.lines)},
        }


def survey(tree_root: Path, series: Sequence[Patch], others: Iterable[Patch] = ()) -> tuple[Standing, ...]:
    """Return how patches stand to the tree: `series` one upon the other, each of `others` by itself."""
    standings: list[Standing] = []
    with scratch(tree_root, series) as copies:
        for patch in series:
            standing = _standing(copies.folder, patch)
            if standing.state == "applies":
                copies.apply(patch)
            standings.append(standing)
    for patch in others:
        with scratch(tree_root, [patch]) as copies:
            standings.append(_standing(copies.folder, patch))
    return tuple(standings)


def _standing(folder: Path, patch: Patch) -> Standing:
    changed = {hunk.path for hunk in patch.hunks if hunk.before}
    if any(not (folder / file).is_file() for file in changed):
        return Standing(patch=patch, state="absent")
    with scratch(folder, [patch]) as copies:
        if copies.fits(patch):
            return Standing(patch=patch, state="applies")
        if copies.holds(patch):
            return Standing(patch=patch, state="upstream")
        return Standing(patch=patch, state="conflicts", misfit=copies.misfit(patch))
