"""What the command line of a build says, before anything of it is checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Profile = Literal["release", "develop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """The options of `build_wheel` and `shell`; `request.plan` turns them into a checked request.

    Attributes:
        given: the words as typed, for another command that takes the same.
    """

    recipe: str | None = None
    python: str | None = None
    profile: Profile | None = None
    source: str | None = None
    repo: str | None = None
    ref: str | None = None
    patch: tuple[Path, ...] = ()
    settings: tuple[str, ...] = ()
    jobs: int | None = None
    allow_jit_shaders: bool = False
    without_metal4: bool = False
    version_label: str | None = None
    wheelhouse: Path | None = None
    cache: str | None = None
    shared_cache: bool = False
    editable: bool = False
    dry_run: bool = False
    host: Path | None = None
    offline: bool = False
    given: tuple[str, ...] = ()

    @property
    def chosen_profile(self) -> Profile:
        """The requested profile; an editable build is a develop build."""
        return self.profile or ("develop" if self.editable else "release")
