"""Companions on Linux: build_companions' own steps in the Debian root, against a torch that was built there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...common.home import expanded
from ...common.recipe.model import Recipe, Variable
from ...common.workspace import PACKAGE
from ..companions.build import CompanionBuild
from ..companions.companion_plan import CompanionPlan, chosen_companions
from ..companions.delivery import DeliveredSet, deliver_companions
from ..companions.source import SourceChoice, parse_sources
from ..companions.torch_wheel import TorchWheel, given_wheel
from .chroot import Chroot
from .companion_parts import complete_torch, debian_companions, fetch_headers, fetch_tarball
from .elf import check_libraries
from .linux_recipe import clang_toolchain
from .session import Rehearsal
from .source import debian_place, debian_root

# No wheel for Linux can keep them: T1 asks for macOS in the name, A0 for Mach-O.
EXCUSED = frozenset({"T1", "A0"})
_FLAGS = "-O0 -fclang-abi-compat=17"
_OF_LINUX = (
    Variable(name="FORCE_MPS", value="0", reason="its MPS kernels are Objective-C++, which only a Mac compiles"),
    Variable(name="CFLAGS", value=_FLAGS, reason="compiled, not measured; templates named as the gcc of libtorch does"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanionTrial:
    """What is asked for beside the recipe; without `torch`, the wheel that `rehearse --wheel` made."""

    torch: TorchWheel | None
    names: tuple[str, ...]
    sources: Mapping[str, SourceChoice]


def plan_trial(
    recipe: Recipe, *, torch: Path | None, sources: Sequence[str], only: Sequence[str] = ()
) -> CompanionTrial:
    """Return what is asked for, checked before anything is made; what no source names is Debian's tarball.

    Raises:
        UsageError: no companions, a torch that does not fit, a source that is not there.
        SourceError: Debian has no companions of that release.
    """
    names = chosen_companions(recipe, tuple(only))
    given = parse_sources(sources, names)
    if any(choice.kind == "git" for choice in given.values()):
        debian_companions(recipe.version)
    wheel = given_wheel(expanded(torch), recipe, python=None, system="linux") if torch else None
    return CompanionTrial(torch=wheel, names=names, sources=given)


def rehearse_companions(
    rehearsal: Rehearsal, trial: CompanionTrial, *, torch: Path, mirror: str | None
) -> DeliveredSet:
    """Build, audit, try and deliver the companions in the Debian root."""
    console, recipe = rehearsal.console, rehearsal.recipe
    with console.step("Debian root for companions"):
        chroot = debian_root(rehearsal, mirror=mirror)
        wheel = trial.torch or given_wheel(torch, recipe, python=None, system="linux")
        chroot = replace(chroot, binds=(*chroot.binds, wheel.path, PACKAGE))
        place = debian_place(rehearsal, chroot)
        sources = _sources(rehearsal, trial, chroot)
        headers, package = fetch_headers(
            recipe.version,
            chroot=chroot,
            folder=rehearsal.workspace.root,
            ledger=rehearsal.ledger,
            log=rehearsal.log("headers"),
            reporter=console,
        )
        console.done()
    plan = CompanionPlan(
        recipe=recipe,
        torch=wheel,
        sources=sources,
        toolchain=clang_toolchain(against_gcc=True),
        jobs=rehearsal.jobs,
        wheelhouse=rehearsal.workspace.root / "wheelhouse",
        interpreter=place.interpreter,
        wrap=chroot.inside,
        complete=lambda site_packages: complete_torch(site_packages, headers),
        completed_from=package,
        overlaid=_OF_LINUX,
        for_macos=False,
        repaired=False,
        excused=EXCUSED,
    )
    build = CompanionBuild(plan, workspace=rehearsal.workspace, console=console)
    companions, environment = build.build()
    for each in companions:
        check_libraries(each.wheel.path, scratch=rehearsal.workspace.root / "libraries", wrap=chroot.inside)
    with console.step("Try them together"):
        wheels = {each.source.name: each.wheel for each in companions}
        tried = environment.try_out(wheels, expect_mps_kernels=False)
    delivered = deliver_companions(plan, companions, tried, ledger=build.ledger)
    rehearsal.ledger.receipts.extend(build.ledger.receipts)
    for each in companions:
        excused = ", ".join(each.audit["excused"])
        rehearsal.note(
            f"{each.source.name} {each.version}",
            f"built from {Path(each.source.origin).name}, pins torch=={wheel.version}; audit: nothing but {excused}",
            "the steps carry the release's source to a wheel that only this torch satisfies; torch's libraries outside",
            next(receipt for receipt in build.ledger.receipts if receipt.step == "compile"),
        )
    rehearsal.note(
        "companions compute",
        _computed(tried),
        "they load with that torch in one venv and answer right on this CPU; nothing about MPS",
    )
    rehearsal.note("constraints.txt", " ".join(delivered.text.split()), "the set that pip takes together")
    return delivered


def _computed(tried: Mapping[str, Any]) -> str:
    parts = []
    if "torchvision" in tried:
        parts.append(f"torchvision::nms right in {tried['torchvision']['cases']} cases")
    if "torchaudio" in tried:
        parts.append(f"torchaudio's filter differs by {tried['torchaudio']['largest_difference']:.0e}")
    return "; ".join(parts)


def _sources(rehearsal: Rehearsal, trial: CompanionTrial, chroot: Chroot) -> dict[str, SourceChoice]:
    sources = {}
    for name in trial.names:
        choice = trial.sources[name]
        if choice.kind == "git":
            tarball = fetch_tarball(
                debian_companions(rehearsal.recipe.version)[name],
                chroot=chroot,
                folder=rehearsal.workspace.root,
                ledger=rehearsal.ledger,
                log=rehearsal.log(f"tarball-{name}"),
                reporter=rehearsal.console,
            )
            choice = SourceChoice(kind="tarball", place=str(tarball))
        sources[name] = choice
    return sources
