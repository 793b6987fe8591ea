"""Build torchvision and torchaudio for a torch that was built here.

With them `torchvision::nms` and the like work.

The versions are the recipe's. Each is built from its tag's source, in the recipe's environment with that very torch
installed, pinned to the exact torch (its local version included), audited, and tried together with it in one venv.
Then the wheels go beside the torch, with constraints.txt. A step whose receipt holds is skipped.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.console import Console, human_bytes, human_seconds
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import UsageError
from mps_build.common.interpreters import find_python
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.recipe.model import Recipe
from mps_build.common.reporting import Result
from mps_build.common.workspace import Workspace, expanded, wheelhouse, work_folder
from mps_build.host.host import use_xcode, xcode_toolchain
from mps_build.host.probes.probers import LiveProber, RecordedProber
from mps_build.wheel_build.companions.build import CompanionBuild
from mps_build.wheel_build.companions.delivery import DeliveredSet, deliver_companions
from mps_build.wheel_build.companions.plan import (
    PROJECTS,
    CompanionPlan,
    built_wheel,
    check_choice,
    chosen_companions,
    given_wheel,
    parse_sources,
)
from mps_build.wheel_build.compiler_environ import check_path, parse_settings
from mps_build.wheel_build.planning import check_host, check_places
from mps_build.wheel_build.steps.finish_wheel import check_delocate

from .shared.options import add_compiler_arguments, add_dry_run, add_offline

TASK = ("build", 2)
FIRST = ("--torch", "--only", "--python", "--source", "--dry-run")
EXITS = (3, 4, 6, 8, 9, 19)
DOCUMENT = (
    "recipe:string torch:object|string ?wheels:object ?constraints:string ?pins:array ?tried:object "
    "?steps:array ?dry_run:boolean ?companions:array ?jobs:integer ?toolchain:object"
)
EXAMPLES = (
    "v2.6.0",
    "v2.6.0 --only torchvision",
    "v2.6.0 --torch wheelhouse/torch-2.6.0+mps.g1eba9b3-cp312-cp312-macosx_13_0_arm64.whl",
    "v2.6.0 --source torchvision=~/vision --set DEBUG=1",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    recipe: str
    torch: Path | None
    only: tuple[str, ...]
    source: tuple[str, ...]
    python: str | None
    settings: tuple[str, ...]
    jobs: int | None
    wheelhouse: Path | None
    dry_run: bool
    host: Path | None
    offline: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("recipe", metavar="RECIPE", help="v2.6.0, 2.6, a path")
    parser.add_argument(
        "--torch", metavar="WHEEL", type=Path, help="the torch wheel (default: the last one that build_wheel made)"
    )
    parser.add_argument(
        "--only",
        metavar="NAME",
        choices=tuple(PROJECTS),
        action="append",
        default=[],
        help="build only this companion (repeatable): " + ", ".join(PROJECTS),
    )
    parser.add_argument(
        "--source",
        metavar="NAME=PATH",
        action="append",
        default=[],
        help="a folder, a tarball or a git address instead of the tag's source; a folder is copied",
    )
    parser.add_argument("--python", metavar="X.Y", help="the Python of the torch wheel (default: the recipe's)")
    add_compiler_arguments(parser)
    parser.add_argument("--wheelhouse", metavar="DIR", type=Path, help="folder for the wheels (default: wheelhouse/)")
    add_dry_run(parser)
    add_offline(parser)


def run(options: Options, console: Console) -> Result:
    """Build, try and deliver the companions, or with `--dry-run` only show them."""
    if options.host and not options.dry_run:
        raise UsageError(
            "--host is allowed only with --dry-run: a recorded host cannot build",
            hint="leave --host out to build on this host",
        )
    plan, workspace = make_plan(options)
    if plan.recorded_on:
        console.print(f"recorded on {plan.recorded_on}")
    console.print(f"companions of {plan.recipe.name} for torch {plan.torch.version}, Python {plan.torch.python}")
    if options.dry_run:
        return _forecast(plan, console)
    return build_and_deliver(plan, workspace, console)


def make_plan(options: Options) -> tuple[CompanionPlan, Workspace]:
    """Return what the arguments ask for, checked before anything is changed.

    Raises:
        UsageError: an argument that cannot be.
        HostError: this host cannot build the recipe; every reason at once.
    """
    recipe = find_recipe(options.recipe)
    names = chosen_companions(recipe, tuple(options.only))
    sources = parse_sources(options.source, names)
    for name in names:
        check_choice(sources[name], PROJECTS[name], wanted=recipe.companions[name])
    settings = parse_settings(options.settings)
    _check_python(options.python, recipe)
    workspace = Workspace(root=work_folder() / f"{recipe.name}-companions")
    check_path(workspace.root, what="the work folder")
    place = (options.wheelhouse or wheelhouse()).absolute()
    if not options.host:
        check_places(workspace.root, place)
    given = options.torch and given_wheel(expanded(options.torch), recipe, python=options.python, system="macos")
    host = check_host(recipe, RecordedProber(options.host) if options.host else LiveProber())
    if not options.host:
        use_xcode(host)
    if sys.platform == "darwin" and not options.host:
        check_delocate(Path(sys.executable))
    torch = given or built_wheel(
        recipe,
        python=options.python or recipe.default_python,
        receipts=work_folder() / recipe.name / "receipts",
        wheelhouse=place,
    )
    plan = CompanionPlan(
        recipe=recipe,
        torch=torch,
        sources=sources,
        toolchain=xcode_toolchain(host),
        python=None if options.host else find_python(torch.python, environ=fetch_environ(os.environ)),
        jobs=options.jobs or host.jobs,
        wheelhouse=place,
        settings=settings,
        offline=options.offline,
        recorded_on=host.recorded_on,
    )
    return plan, workspace


def build_and_deliver(plan: CompanionPlan, workspace: Workspace, console: Console) -> Result:
    """Build, audit, try and deliver the companions of a plan, and tell what came of it."""
    build = CompanionBuild(plan, workspace=workspace, console=console)
    with workspace.held():
        companions, environment = build.build()
        expect_mps = any(each.source.has_mps_kernels and each.environ.get("FORCE_MPS") == "1" for each in companions)
        with console.step("Try them together"):
            wheels = {each.source.name: each.wheel for each in companions}
            tried = environment.try_out(wheels, expect_mps_kernels=expect_mps)
        with console.step("Deliver"):
            delivered = deliver_companions(plan, companions, tried, ledger=build.ledger)
    rows = [
        (path.name, human_bytes(path.stat().st_size), _tried(name, tried)) for name, path in delivered.wheels.items()
    ]
    console.print()
    console.table(("wheel", "size", "tried"), rows)
    console.table(("step", "time"), [(title, human_seconds(seconds)) for title, seconds in console.timings])
    console.print(f"in {plan.wheelhouse}")
    install = " ".join(f"'{path}'" for path in (plan.torch.path, *delivered.wheels.values()))
    console.print(f"pins: {delivered.constraints}")
    console.print(f"next: pip install -c '{delivered.constraints}' {install}")
    return Result(document=_document(plan, delivered, build, tried))


def _forecast(plan: CompanionPlan, console: Console) -> Result:
    """Tell what would be built; nothing is fetched, so a folder's commit is not in the version yet."""
    rows: list[dict[str, Any]] = []
    for name, source in plan.sources.items():
        variables = {variable.name: variable.value for variable in plan.variables(name)}
        version = plan.version(name, commit=None, dirty=False)
        rows.append({"name": name, "version": version, "source": source.place, "environment": variables})
    console.table(("companion", "as", "from"), [(row["name"], row["version"], row["source"]) for row in rows])
    console.print(f"torch: {plan.torch.path}")
    console.print(f"into {plan.wheelhouse}, {plan.jobs} compilers at once")
    document = {"dry_run": True, "recipe": plan.recipe.name, "torch": str(plan.torch.path), "companions": rows}
    return Result(document={**document, "jobs": plan.jobs, "toolchain": dict(plan.toolchain.facts)})


def _tried(name: str, tried: Any) -> str:
    facts = tried[name]
    if name == "torchvision":
        where = ", ".join(facts["devices"])
        return f"torchvision::nms for {', '.join(facts['nms'])}: right in {facts['cases']} cases on {where}"
    return f"{len(facts['operators'])} operators; lfilter differs by {facts['largest_difference']:.0e}"


def _check_python(python: str | None, recipe: Recipe) -> None:
    if python is not None and python not in recipe.pythons:
        raise UsageError(f"{recipe.name} is not for Python {python}", hint=f"its Pythons: {', '.join(recipe.pythons)}")


def _document(plan: CompanionPlan, delivered: DeliveredSet, build: CompanionBuild, tried: Any) -> dict[str, Any]:
    return {
        "recipe": plan.recipe.name,
        "torch": {"path": str(plan.torch.path), "version": plan.torch.version, "python": plan.torch.python},
        "wheels": {name: str(path) for name, path in delivered.wheels.items()},
        "constraints": str(delivered.constraints),
        "pins": delivered.text.splitlines(),
        "tried": dict(tried),
        "steps": [
            {"step": each.step, "skipped": each.skipped, "seconds": each.seconds} for each in build.ledger.receipts
        ],
    }
