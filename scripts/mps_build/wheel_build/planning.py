"""From the arguments of build_wheel to a checked request, and its forecast; nothing is changed before that stands."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from mps_build.common.environment import Toolchain, fetch_environ
from mps_build.common.errors import HostError, UsageError
from mps_build.common.files import check_writable, fault_of
from mps_build.common.git import check_address
from mps_build.common.interpreters import PythonSearch, search_interpreter
from mps_build.common.json_text import read_json
from mps_build.common.recipe.catalogue import build_python, find_recipe, newest_stable, recipes_root
from mps_build.common.recipe.embedded_source import materialise
from mps_build.common.recipe.model import Recipe
from mps_build.common.workspace import Workspace, cache_folder, expanded, wheelhouse, work_folder
from mps_build.host.host import Host, observe, use_xcode, xcode_toolchain
from mps_build.host.probes.probers import LiveProber, Prober, RecordedProber
from mps_build.host.probes.probers import recorded as recorded_answers
from mps_build.host.requirements.inspect import inspect
from mps_build.host.requirements.way import way_to_build
from mps_build.host.requirements.xcode import choose_xcode

from .build_request import BuildRequest, CompilerRequest, HostRecord, SourceRequest, WheelRequest, gate_of
from .compiler_cache.launcher import check_flags_pass, check_settings, find_launcher
from .compiler_cache.store import CacheChoice, choose_store
from .compiler_environ import check_path, parse_settings
from .options import BuildOptions
from .source_state import tree_commits
from .steps.finish_wheel import check_delocate
from .steps.prepare_source import resolve_ref

# Published for official settings on GitHub's macos-26-xlarge, April 2026: a whole build, and each further Python.
# https://github.com/pytorch/pytorch/pull/181171
PUBLISHED_MINUTES = (35, 7)
STEPS = ("fetch_source", "create_environment", "configure", "compile_wheel", "finish_wheel", "audit_wheel")


def plan(options: BuildOptions) -> tuple[BuildRequest, Workspace]:
    """Return what the arguments ask for, checked before anything is changed.

    Raises:
        UsageError: an argument that cannot be.
        HostError: this host cannot build the recipe; every reason at once. With `--dry-run` the request holds it.
        BuildEnvironmentError: a program that the build calls at its end is missing.
    """
    recipe = find_recipe(options.recipe) if options.recipe else newest_stable()
    workspace = Workspace(root=work_folder() / recipe.name)
    check_path(workspace.root, what="the work folder")
    place = (options.wheelhouse or wheelhouse()).absolute()
    if not options.host:
        check_places(workspace.root, place)
    pythons = _pythons(options.python, recipe)
    patches = tuple(_patch(path) for path in options.patch)
    settings = parse_settings(options.settings)
    check_settings(settings)
    recorded = options.host
    prober = RecordedProber(recorded) if recorded else LiveProber()
    cross = recipe.cross if sys.platform != "darwin" and not recorded else None
    host = observe(prober)
    refusal = None if cross else refusal_of(host, recipe)
    if refusal is not None and not options.dry_run:
        raise refusal
    if refusal is None and not cross:
        host = replace(host, xcode=choose_xcode(host, recipe))
    builds_here = refusal is None and not recorded
    interpreters = _interpreters(pythons) if builds_here else {}
    if sys.platform == "darwin" and builds_here:
        check_delocate(Path(sys.executable))
    if builds_here and not cross:
        use_xcode(host)
    gate = cross.gate if cross else recipe.gate
    launcher = find_launcher(options.cache, path=os.environ.get("PATH")) if options.cache else None
    check_flags_pass(launcher, openmp=gate.openmp and not cross)
    lifts = {"--allow-jit-shaders": options.allow_jit_shaders, "--without-metal4": options.without_metal4}
    request = BuildRequest(
        recipe=recipe,
        pythons=pythons,
        profile=options.chosen_profile,
        source=replace(_source(recipe, options), extra_patches=patches),
        compilers=CompilerRequest(
            toolchain=Toolchain(name="zig") if cross else xcode_toolchain(host),
            cross=cross is not None,
            jobs=options.jobs or host.jobs,
            settings=settings,
            launcher=launcher,
            cache=_cache_choice(options),
            interpreters=interpreters,
        ),
        wheel=WheelRequest(
            gate=gate_of(gate, allow_jit_shaders=options.allow_jit_shaders, without_metal4=options.without_metal4),
            contents=cross.wheel if cross else recipe.wheel,
            folder=place,
            label=options.version_label,
            lifted=tuple(flag for flag, given in lifts.items() if given),
        ),
        host=HostRecord(
            facts={**host.document(), "recorded_on": host.recorded_on},
            recording=recorded_answers(prober)[0],
            refusal=refusal,
        ),
        offline=options.offline,
    )
    return request, workspace


def check_places(root: Path, place: Path) -> None:
    """Refuse, before hours of work, a work folder, cache or wheelhouse that cannot be written to.

    Raises:
        UsageError: naming it.
    """
    check_writable(root, what="the work folder", hint="set MPS_BUILD_WORK to a writable folder")
    check_writable(cache_folder(), what="the cache", hint="set MPS_BUILD_CACHE to a writable folder")
    check_writable(place, what="--wheelhouse", hint="name another folder with --wheelhouse")


def _interpreters(pythons: tuple[str, ...]) -> dict[str, PythonSearch]:
    """Return the Python of each version, looked for before gigabytes of source are fetched.

    Raises:
        BuildEnvironmentError: one is not here; each that was passed over is named.
    """
    environ = fetch_environ(os.environ)
    found = {python: search_interpreter(python, environ=environ) for python in pythons}
    for search in found.values():
        search.result()
    return found


def _cache_choice(options: BuildOptions) -> CacheChoice:
    """Return how the compiler cache is set; a release shares a store only with --shared-cache."""
    shared = options.shared_cache
    if shared and options.cache != "sccache":
        raise UsageError("--shared-cache goes with --cache sccache: ccache has no S3 store", hint="add --cache sccache")
    if options.cache != "sccache" or options.dry_run:
        # Either would beat what decides whether checkouts share: the profile, and what build_wheel sets.
        return CacheChoice(dropped=tuple(name for name in ("CCACHE_HASHDIR", "CCACHE_NOHASHDIR") if name in os.environ))
    named = any(os.environ.get(name) for name in ("MPS_BUILD_SHARED_CACHE", "SCCACHE_REDIS_ENDPOINT", "SCCACHE_BUCKET"))
    return choose_store(os.environ, shared=shared or (options.chosen_profile == "develop" and named))


def _pythons(argument: str | None, recipe: Recipe) -> tuple[str, ...]:
    wanted = tuple(part.strip() for part in argument.split(",")) if argument else (build_python(recipe),)
    unknown = [python for python in wanted if python not in recipe.pythons]
    if unknown:
        raise UsageError(
            f"{recipe.name} is not for Python {', '.join(unknown)}", hint=f"its Pythons: {', '.join(recipe.pythons)}"
        )
    return tuple(dict.fromkeys(wanted))


def _patch(path: Path) -> Path:
    if fault := fault_of(path):
        raise UsageError(
            f"--patch {path}: {fault}", hint=f"list the folder: ls '{path.parent}'; git format-patch makes one"
        )
    return path.absolute()


def _source(recipe: Recipe, options: BuildOptions) -> SourceRequest:
    """Return the source that the options name, or else the recipe's."""
    if options.source and (options.repo or options.ref):
        raise UsageError(
            "--source cannot be combined with --repo or --ref",
            hint="another commit of a repository: --repo URL --ref REF; a tree as it stands: --source FOLDER",
        )
    if recipe.source.kind == "embedded":
        if options.source or options.repo or options.ref:
            raise UsageError(
                f"{recipe.name} has its own source: --source, --repo and --ref are for releases",
                hint=f"nox -s build_wheel -- {recipe.name}",
            )
        place = cache_folder() / "embedded" / recipe.name
        made = materialise(recipes_root() / recipe.name, place, expected=recipe.commit)
        return SourceRequest(recipe=recipe, origin="git", repository=str(made.url), commit=made.commit)
    if options.source and (path := expanded(options.source).absolute()).exists():
        return _local_source(recipe, path, options)
    repository = options.source or options.repo or recipe.source.repository or ""
    if "" in (options.source, options.repo):
        raise UsageError("'' is neither a folder nor an address", hint="give a folder, a tarball or a git address")
    if expanded(repository).is_dir():
        repository = str(expanded(repository).absolute())
    elif "://" not in repository and "@" not in repository:
        raise UsageError(
            f"{repository!r} is neither a folder nor an address", hint="give a folder, a tarball or a git address"
        )
    check_address(repository, what="the repository")
    ref = options.ref or ("HEAD" if options.source else None)
    commit = resolve_ref(repository, ref, environ=fetch_environ(os.environ)) if ref else recipe.commit
    if commit is None:
        raise UsageError(
            f"{recipe.name} pins no commit", hint=f"name one: nox -s build_wheel -- {recipe.name} --ref REF"
        )
    return SourceRequest(recipe=recipe, origin="git", repository=repository, commit=commit)


def _local_source(recipe: Recipe, path: Path, options: BuildOptions) -> SourceRequest:
    if path.is_file():
        return SourceRequest(recipe=recipe, origin="tarball", repository=str(path), commit=None)
    if options.patch:
        raise UsageError(
            f"--patch cannot be combined with --source FOLDER: {path} is built unchanged",
            hint=f"apply it there (git -C '{path}' apply FILE), or build from --repo '{path}' --ref HEAD",
        )
    commits, _ = tree_commits(path, environ=fetch_environ(os.environ))
    return SourceRequest(recipe=recipe, origin="tree", repository=str(path), commit=commits[""])


def check_host(recipe: Recipe, prober: Prober) -> Host:
    """Return the host, its `xcode` being the one to build this recipe with (by DEVELOPER_DIR).

    What only hinders *using* MPS here (a virtual GPU, a macOS below the floor of the wheel) does not stop a build.

    Raises:
        HostError: with every reason; `document` holds host, blockers and findings.
    """
    host = observe(prober)
    refusal = refusal_of(host, recipe)
    if refusal is not None:
        raise refusal
    return replace(host, xcode=choose_xcode(host, recipe))


def refusal_of(host: Host, recipe: Recipe) -> HostError | None:
    """Return why this host cannot build the recipe, with every reason; None where it can."""
    findings = inspect(host, recipe)
    stopping = [finding for finding in findings if finding.level == "blocker" and "build" in finding.stops]
    if not stopping:
        return None
    fixes = [finding.fix for finding in stopping]
    said = [
        f"  {finding.what}: {finding.found}; required: {finding.wanted}"
        # One fix for several findings is said once, below the last of them.
        + (f"\n    fix: {finding.fix}" if finding.fix not in fixes[place + 1 :] else "")
        for place, finding in enumerate(stopping)
    ]
    way = way_to_build(host, recipe, findings)
    if way:
        said += ["to build it here, in this order:", *(f"  {number}. {step}" for number, step in enumerate(way, 1))]
    return HostError(
        "\n".join([f"this host cannot build {recipe.name}:", *said]),
        hint=f"nox -s doctor -- {recipe.name} shows every check"
        + ("" if host.system == "Darwin" else "; on this system: nox -s build_wheel -- sample"),
        document={
            "host": host.document(),
            "blockers": list(dict.fromkeys(finding.id for finding in stopping)),
            "findings": [finding.document() for finding in findings],
            "way": list(way),
        },
    )


def forecast(request: BuildRequest, workspace: Workspace) -> dict[str, Any]:
    """Return what would be built, with what, and how long it may take."""
    recipe, compilers = request.recipe, request.compilers
    host = request.host.facts
    folder = workspace.root
    while not folder.exists():
        folder = folder.parent
    return {
        "recipe": recipe.name,
        "source": request.source.repository,
        "commit": request.source.commit,
        "evidence": recipe.evidence,
        "patches": [path.name for path in request.source.patches],
        "pythons": list(request.pythons),
        "interpreters": {name: str(search.result()) for name, search in compilers.interpreters.items()} or None,
        "passed_over": [line for search in compilers.interpreters.values() for line in search.skipped_lines()],
        "profile": request.profile,
        "version": request.version(dirty=False) or recipe.version,
        "toolchain": {"name": compilers.toolchain.name, **compilers.toolchain.facts},
        "environment": {variable.name: variable.value for variable in recipe.environment} | dict(compilers.settings),
        "jobs": compilers.jobs,
        "memory_gb": (host.get("memory_bytes") or 0) >> 30 or None,
        "free_gb": None if host.get("recorded_on") else shutil.disk_usage(folder).free // 10**9,
        "work": str(workspace.root),
        "wheelhouse": str(request.wheel.folder),
        **_time(request, workspace.receipts),
    }


def _time(request: BuildRequest, receipts: Path) -> dict[str, Any]:
    """Return the seconds that this tree's steps took last time, else what others published."""
    measured = 0.0
    for path in receipts.glob("*.json") if receipts.is_dir() else ():
        try:
            receipt = read_json(path)
        except (OSError, ValueError):
            continue
        if isinstance(receipt, dict) and receipt.get("step") in STEPS:
            measured += float(receipt.get("seconds", 0.0))
    if measured:
        return {"minutes": round(measured / 60, 1), "minutes_from": "this tree's receipts"}
    if request.wheel.contents.rules != "torch":
        return {"minutes": None, "minutes_from": "no receipt yet"}
    first, further = PUBLISHED_MINUTES
    minutes = first + further * (len(request.pythons) - 1)
    return {"minutes": minutes, "minutes_from": "published for macos-26-xlarge; an older Mac takes longer"}
