"""From the arguments of build_wheel to a checked request; nothing is changed before all of it stands."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from mps_build.common.addresses import check_address
from mps_build.common.environment import Toolchain, fetch_environ
from mps_build.common.errors import UsageError
from mps_build.common.home import expanded
from mps_build.common.interpreters import PythonSearch, search_interpreter
from mps_build.common.opening import fault_of
from mps_build.common.recipe.catalogue import build_python, find_recipe, newest_stable, recipes_root
from mps_build.common.recipe.embedded_source import materialise
from mps_build.common.recipe.model import Recipe
from mps_build.common.workspace import Workspace, cache_folder, wheelhouse, work_folder
from mps_build.common.writable import check_writable
from mps_build.host.host import observe
from mps_build.host.probes.probers import LiveProber, RecordedProber
from mps_build.host.recordings.scrub import recorded as recorded_answers
from mps_build.host.requirements.xcode import choose_xcode
from mps_build.host.toolchain import use_xcode, xcode_toolchain

from .build_request import BuildRequest, CompilerRequest, HostRecord, SourceRequest, WheelRequest, gate_of
from .compiler_cache.launcher import check_settings, find_launcher
from .compiler_cache.passed_on import check_flags_pass
from .compiler_cache.store import CacheChoice, choose_store
from .compiler_environ import check_path, parse_settings
from .options import BuildOptions
from .source_state import tree_commits
from .steps.check_host import refusal_of
from .steps.fetch_source import resolve_ref
from .steps.repair_wheel import check_delocate


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
