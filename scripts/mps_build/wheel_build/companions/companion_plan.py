"""What one call of build_companions asks for: which torch, which companions from where, and how they are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mps_build.common.environment import Toolchain
from mps_build.common.errors import UsageError
from mps_build.common.interpreters import FoundPython
from mps_build.common.process import Command
from mps_build.common.recipe.model import Recipe, Variable

from .projects import PROJECTS, Project, target_variables
from .source import SourceChoice
from .torch_wheel import TorchWheel


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanionPlan:
    """One call, checked.

    Attributes:
        sources: companion -> where it comes from, in the order in which they are built.
        interpreter: a rehearsal's own; None takes `python`, or finds the recipe's Python on this host.
        python: the Python that was found for the plan.
        wrap: brings a command to the place where it runs (a rehearsal's runs inside a root).
        complete: done to the build's torch once it is installed, with its site-packages; a rehearsal's lacks headers.
        overlaid: variables in the place of a project's own (a rehearsal cannot force MPS).
        repaired: delocate looks at the wheel: on a Mac.
        recorded_on: when the host was recorded that stands in for this one; None for this one.
        excused: the audit's rules that a wheel of another system cannot keep.
    """

    recipe: Recipe
    torch: TorchWheel
    sources: Mapping[str, SourceChoice]
    toolchain: Toolchain
    jobs: int
    wheelhouse: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    offline: bool = False
    interpreter: Path | None = None
    python: FoundPython | None = None
    wrap: Callable[[Command], Command] = lambda command: command
    complete: Callable[[Path], None] | None = None
    completed_from: str = ""
    overlaid: tuple[Variable, ...] = ()
    for_macos: bool = True
    repaired: bool = True
    excused: frozenset[str] = frozenset()
    recorded_on: str | None = None

    def project(self, name: str) -> Project:
        """Return how a companion ("torchvision", "torchaudio") is built."""
        return PROJECTS[name]

    def variables(self, name: str) -> tuple[Variable, ...]:
        """Return the environment that a companion's build gets: the target's, the project's, the caller's."""
        target = target_variables(self.recipe) if self.for_macos else ()
        rows = (*target, *PROJECTS[name].variables, *self.overlaid)
        return tuple({variable.name: variable for variable in rows}.values())

    def version(self, name: str, *, commit: str | None, dirty: bool) -> str:
        """Return the version that a companion is built as: its own, with a local part that names its torch.

        So two builds against two commits of one release have two names. What did not come from the tag says so too.
        """
        parts = [self.torch.local or "mps"]
        if self.sources[name].kind != "git":
            parts.append(f"g{commit[:7]}" if commit else self.sources[name].kind)
        parts += ["dirty"] if dirty else []
        return f"{self.recipe.companions[name]}+{'.'.join(parts)}"


def chosen_companions(recipe: Recipe, only: tuple[str, ...]) -> tuple[str, ...]:
    """Return the companions to build, in the order in which they are known here.

    Raises:
        UsageError: the recipe names none, not this one, or one that nobody here knows how to build.
    """
    if not recipe.companions:
        raise UsageError(
            f"{recipe.name} names no companions",
            hint='take a release, or add to your own recipe file: `companions: {torchvision: "X.Y.Z"}`',
        )
    unknown = [name for name in (*only, *recipe.companions) if name not in PROJECTS]
    if unknown:
        raise UsageError(
            f"mps-build does not know how to build {', '.join(unknown)}", hint=f"known: {', '.join(PROJECTS)}"
        )
    missing = [name for name in only if name not in recipe.companions]
    if missing:
        named = ", ".join(f"{name} {version}" for name, version in recipe.companions.items())
        raise UsageError(f"{recipe.name} names no {', '.join(missing)}", hint=f"its companions: {named}")
    return tuple(name for name in PROJECTS if name in (only or tuple(recipe.companions)))
