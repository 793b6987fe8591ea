"""Build a recipe's wheel and audit it; the wheel and its receipt end in wheelhouse/.

Steps whose receipt still holds are skipped, so the same command again after an interruption goes on,
and after success takes seconds.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from ..build_plan import BuildRequest, gate_of
from ..cli import Outcome
from ..console import Console, human_bytes, human_seconds
from ..embedded_source import materialise
from ..environ import Toolchain, check_path, fetch_environ, parse_settings
from ..errors import CompileError, UsageError
from ..finishing import Delivered
from ..macos.host import observe
from ..macos.probes import LiveProber
from ..macos.toolchain import xcode_toolchain
from ..pipeline import Pipeline
from ..recipe import Recipe
from ..recipes import find_recipe, newest_stable, recipes_root
from ..steps.check_host import check_host
from ..steps.fetch_source import resolve_ref
from ..steps.source_state import tree_commits
from ..triage import explain, render
from ..workspace import Workspace, cache_folder, wheelhouse, work_folder

EXAMPLES = (
    "",
    "v2.6.0 --python 3.11,3.12,3.13",
    "sample",
    "nightly --ref <40-hex commit>",
    "v2.6.0 --profile develop --set USE_DISTRIBUTED=0",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", nargs="?", metavar="RECIPE", help="v2.6.0, 2.6, sample, nightly, a path")
    parser.add_argument("--python", metavar="X.Y[,X.Y]", help="Pythons to build for (default: the recipe's)")
    parser.add_argument("--profile", choices=("release", "develop"), default="release")
    parser.add_argument(
        "--source", metavar="SOURCE", help="your own tree as it stands, a tarball, or an address at HEAD"
    )
    parser.add_argument("--repo", metavar="URL", help="another repository (a folder, file:// or https://)")
    parser.add_argument("--ref", metavar="REF", help="another commit, branch or tag")
    parser.add_argument("--patch", metavar="FILE", type=Path, action="append", default=[], help="after the recipe's")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], dest="settings")
    parser.add_argument("--jobs", metavar="N", type=int, help="compilers at once (default: from cores and memory)")
    parser.add_argument("--allow-jit-shaders", action="store_true", help="accept Metal kernels compiled at first use")
    parser.add_argument("--without-metal4", action="store_true", help="accept a wheel without the Metal 4 kernels")
    parser.add_argument("--version-label", metavar="WORD", help="a word in the wheel's local version")
    parser.add_argument("--official-version", action="store_true", help="no local version: named as the official wheel")
    parser.add_argument("--wheelhouse", metavar="DIR", type=Path, help="where the wheel goes (default: wheelhouse/)")
    parser.add_argument("--offline", action="store_true", help="use only what the cache holds")


def run(arguments: argparse.Namespace, console: Console) -> Outcome:
    request, workspace = plan(arguments)
    at = f" at {request.commit[:12]}" if request.commit else ""
    console.print(f"{request.recipe.name}: {request.repository}{at}", style="bold")
    if request.cross:
        console.print("not a Mac: cross-built with zig, without MPS; see docs/sample.md")
    build = Pipeline(request, workspace=workspace, console=console)
    try:
        delivered = build.build()
    except CompileError as error:
        raise _explained(error, request, workspace) from error
    _print_result(delivered, build, console)
    return Outcome(document=_document(request, delivered, build))


def plan(arguments: argparse.Namespace) -> tuple[BuildRequest, Workspace]:
    """Return what the arguments ask for, checked before anything is changed.

    Raises:
        UsageError: an argument that cannot be.
        HostError: this host cannot build the recipe; every reason at once.
    """
    recipe = find_recipe(arguments.recipe) if arguments.recipe else newest_stable()
    workspace = Workspace(root=work_folder() / recipe.name)
    check_path(workspace.root, what="the work folder")
    pythons = _pythons(arguments.python, recipe)
    patches = tuple(_patch(path) for path in arguments.patch)
    settings = parse_settings(arguments.settings)
    cross = None if sys.platform == "darwin" else recipe.cross
    host = observe(LiveProber()) if cross else check_host(recipe, LiveProber())
    source = _source(recipe, arguments)
    gate = cross.gate if cross else recipe.gate
    lifts = {"--allow-jit-shaders": arguments.allow_jit_shaders, "--without-metal4": arguments.without_metal4}
    request = BuildRequest(
        recipe=recipe,
        pythons=pythons,
        **source,
        profile=arguments.profile,
        gate=gate_of(gate, allow_jit_shaders=arguments.allow_jit_shaders, without_metal4=arguments.without_metal4),
        contents=cross.wheel if cross else recipe.wheel,
        toolchain=Toolchain(name="zig") if cross else xcode_toolchain(host),
        cross=cross is not None,
        jobs=arguments.jobs or host.jobs,
        wheelhouse=(arguments.wheelhouse or wheelhouse()).absolute(),
        settings=settings,
        extra_patches=patches,
        label=arguments.version_label,
        official_version=arguments.official_version,
        lifted=tuple(flag for flag, given in lifts.items() if given),
        offline=arguments.offline,
        host=host.document(),
    )
    return request, workspace


def _pythons(argument: str | None, recipe: Recipe) -> tuple[str, ...]:
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    # The embedded source tries a toolchain: any Python will do, and ours is there.
    default = ours if recipe.source.kind == "embedded" and ours in recipe.pythons else recipe.default_python
    wanted = tuple(part.strip() for part in argument.split(",")) if argument else (default,)
    unknown = [python for python in wanted if python not in recipe.pythons]
    if unknown:
        raise UsageError(
            f"{recipe.name} is not for Python {', '.join(unknown)}", hint=f"its Pythons: {', '.join(recipe.pythons)}"
        )
    return tuple(dict.fromkeys(wanted))


def _patch(path: Path) -> Path:
    if not path.is_file():
        raise UsageError(f"--patch {path}: no such file")
    return path.absolute()


def _source(recipe: Recipe, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return origin, repository and commit of a request."""
    if arguments.source and (arguments.repo or arguments.ref):
        raise UsageError("--source names the source whole: it goes with neither --repo nor --ref")
    if recipe.source.kind == "embedded":
        if arguments.source or arguments.repo or arguments.ref:
            raise UsageError(f"{recipe.name} brings its own source: --source, --repo and --ref are for releases")
        place = cache_folder() / "embedded" / recipe.name
        made = materialise(recipes_root() / recipe.name, place, expected=recipe.commit)
        return {"origin": "git", "repository": str(made.url), "commit": made.commit}
    if arguments.source and (path := Path(arguments.source).expanduser().absolute()).exists():
        return _local_source(path, arguments)
    repository = arguments.source or arguments.repo or recipe.source.repository or ""
    if Path(repository).expanduser().is_dir():
        repository = str(Path(repository).expanduser().absolute())
    elif "://" not in repository and "@" not in repository:
        raise UsageError(
            f"{repository!r} is neither there nor an address", hint="give a folder, a tarball or a git address"
        )
    ref = arguments.ref or ("HEAD" if arguments.source else None)
    commit = resolve_ref(repository, ref, environ=fetch_environ(os.environ)) if ref else recipe.commit
    if commit is None:
        raise UsageError(
            f"{recipe.name} pins no commit", hint=f"say which: nox -s build_wheel -- {recipe.name} --ref REF"
        )
    return {"origin": "git", "repository": repository, "commit": commit}


def _local_source(path: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    if path.is_file():
        return {"origin": "tarball", "repository": str(path), "commit": None}
    if arguments.patch:
        raise UsageError(
            f"--patch does not go with a tree of your own: {path} is built as it stands",
            hint=f"apply it there (git -C '{path}' apply FILE), or build from --repo '{path}' --ref HEAD",
        )
    commits, _ = tree_commits(path, environ=fetch_environ(os.environ))
    return {"origin": "tree", "repository": str(path), "commit": commits[""]}


def _explained(error: CompileError, request: BuildRequest, workspace: Workspace) -> CompileError:
    """Return the error with the known cause, if there is one, else with the first error of the log."""
    logs = sorted(workspace.logs.glob("compile_wheel-*.log"), key=lambda path: path.stat().st_mtime)
    if not logs:
        return error
    text = logs[-1].read_text(encoding="utf-8", errors="replace")
    found = explain(text, release=request.recipe.release)
    tail = "\n".join(text.splitlines()[-12:])
    lines = "\n".join(render(found))
    return CompileError(f"{error}\n{tail}\n\n{lines}", hint=error.hint, document={"triage": found.document()})


def _print_result(delivered: tuple[Delivered, ...], build: Pipeline, console: Console) -> None:
    rows = []
    for each in delivered:
        rows.append((each.wheel.path.name, human_bytes(each.wheel.size), each.python, str(each.audit["kind"])))
    console.print()
    console.table(("wheel", "size", "python", "kind"), rows)
    console.table(("step", "time"), [(title, human_seconds(seconds)) for title, seconds in console.timings])
    console.print(f"in {delivered[0].wheel.path.parent}")
    verb = "verify_mps" if build.request.contents.rules == "torch" else "audit_wheel"
    console.print(f"next: nox -s {verb} -- '{delivered[0].wheel.path}'")


def _document(request: BuildRequest, delivered: tuple[Delivered, ...], build: Pipeline) -> dict[str, Any]:
    return {
        "recipe": request.recipe.name,
        "commit": request.commit,
        "profile": request.profile,
        "wheels": [
            {
                "path": str(each.wheel.path),
                "size": each.wheel.size,
                "sha256": each.wheel.sha256,
                "python": each.python,
                "verdict": each.audit["verdict"],
                "kind": each.audit["kind"],
                "receipt": str(each.receipt),
            }
            for each in delivered
        ],
        "steps": [
            {"step": each.step, "skipped": each.skipped, "seconds": each.seconds} for each in build.ledger.receipts
        ],
    }
