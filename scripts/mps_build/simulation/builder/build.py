"""From a release to the library that gives a Linux torch its `mps` device; made once, and again for what changed."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from mps_build.common.errors import BuildEnvironmentError, CompileError
from mps_build.common.files import write_whole
from mps_build.common.json_text import read_json
from mps_build.common.packed import texts_of
from mps_build.common.process import Command
from mps_build.common.receipts import digest_of
from mps_build.common.reporting import Reporter
from mps_build.common.shared_work import made_by_one
from mps_build.common.wheels.download import file_digest
from mps_build.common.wheels.pip_call import Limits, limits_of_run
from mps_build.common.workspace import cache_folder, remove_tree
from mps_build.wheel_build.mm.tree import read_tree
from mps_build.wheel_build.ninja import run_build
from mps_build.wheel_build.objc import write_frameworks

from ...kernels.machine.build import SOURCES as RUNTIME  # its C is a part of the library
from ..kept import digests, own_cache, unbelievable
from ..releases import Release
from .ninja_file import NATIVE, Inputs, ninja_text, own_sources
from .packages import check_host
from .root import LIBRARY, Root, compile_modules, hook_files, make_root, write_hook
from .source import (
    changed_files,
    debian_tree,
    generate,
    host_files,
    mirrored,
    patched_files,
    registrations,
    users_tree,
    write_if_changed,
)
from .torch_build import Torch, build_torch, check_room, first_error

# Measured on two cores: docs/verify/simulated.md.
FIRST_BUILD = "fetches 0.4 GB, compiles for 7 CPU minutes and takes 2 GB of disk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A library that a simulated program loads, and what it was made of.

    Attributes:
        site: the folder that a torch which was built is imported from; None: the root's packages.
    """

    release: Release
    root: Root
    tree: Path
    folder: Path
    kernels: Path
    objective_files: int
    cpu_seconds: float
    site: Path | None = None

    @property
    def library(self) -> Path:
        """What a simulated torch loads first."""
        return self.folder / LIBRARY


def simulation_folder() -> Path:
    """Return where roots, trees and builds lie."""
    return cache_folder() / "simulation"


def build(
    release: Release,
    *,
    source: Path | None = None,
    rebuild: bool = False,
    offline: bool = False,
    trust: bool = False,
    jobs: int,
    reporter: Reporter,
) -> Built:
    """Return the library of a release, built only as far as it is not there yet.

    Args:
        source: the user's tree; None: Debian's source package. rebuild: start from no object.
        offline: take what was built before, or nothing. trust: as `compile_kernels`.

    Raises:
        HostError, BuildEnvironmentError, SourceError, PatchError, CompileError: it cannot be built here.
    """
    home = simulation_folder()
    if home.exists():  # else nothing is written before all checks passed
        own_cache(home, reporter)
    log = home / "logs" / f"{release.version}.log"
    tree = users_tree(release, source) if source else None
    folder = home / "builds" / f"{release.version}-{digest_of([str(tree)] if release.is_built else str(tree))[:12]}"
    state = digest_of([[name, text] for name, text in _ours(release)])
    is_sound = _drop_damaged(folder, reporter)  # also of a user's tree, where ninja would take what is there
    if tree is None and not rebuild and is_sound and (kept := _kept(release, folder, state)) is not None:
        return kept
    if offline:
        raise BuildEnvironmentError(
            f"the simulation of {release.version} is not built yet, and --offline does not allow fetching its parts",
            hint="run once without --offline",
        )
    torch_home = home / "torches" / f"{release.version}-{digest_of(str(tree))[:12]}" if release.is_built else None
    check_host(home)
    if torch_home:
        check_room(torch_home)
    if tree is None and not (folder / "built.json").is_file():
        reporter.line(f"the first build {FIRST_BUILD}, below {home}; later starts take seconds")
    with held(own_cache(home, reporter) / "lock", reporter) as watched:
        debian = release.home
        root = make_root(
            home, suite=debian.suite, python=debian.python, packages=release.root, log=log, reporter=watched
        )
        write_hook(root)
        tree = tree or debian_tree(release, home, log=log, reporter=watched)
        if rebuild:
            remove_tree(folder)
        before, torch = _cpu_seconds(), None
        if torch_home:
            torch = build_torch(tree, torch_home, root=root, version=release.version, jobs=jobs, reporter=watched)
        below = Below(root=root, torch=torch, cpu_seconds=_cpu_seconds() - before)
        limits = limits_of_run(trust=trust)
        return _compiled(release, below, tree, folder, state=state, jobs=jobs, log=log, reporter=watched, limits=limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Below:
    """What a back end is compiled with and stands on; `torch`: one that was built, and what that cost just now."""

    root: Root
    torch: Torch | None
    cpu_seconds: float


def _compiled(
    release: Release,
    below: Below,
    tree: Path,
    folder: Path,
    *,
    state: str,
    jobs: int,
    log: Path,
    reporter: Reporter,
    limits: Limits,
) -> Built:
    root, torch = below.root, below.torch
    generated = generate(tree, folder.parent.parent / "generated", log=log, reporter=reporter)
    by_rule = changed_files(tree, folder / "patched") if release.is_built else {}
    patched = {**by_rule, **patched_files(release, tree, folder / "patched")}
    frameworks = write_frameworks(folder / "frameworks")
    # Compiled where the cache is: another checkout, or another installation, of the same sources compiles nothing anew.
    native, runtime = mirrored(NATIVE, folder / "native"), mirrored(RUNTIME, folder / "runtime")
    files = list(host_files(tree))
    theirs = [*files, *(Path("aten/src/ATen") / name for name in release.cpu_files)]
    sources = [(patched.get(str(name), tree / name), str(name).replace("/", "."), "-O0") for name in theirs]
    sources += [(path, path.name, "-O0") for path in registrations(generated)]
    sources += [
        (path, f"own.{path.relative_to(native)}".replace("/", "."), f"-O1 -I{runtime}")
        for path in own_sources(native, with_mps=torch is not None)
    ]
    from ..availability import read_availability, table_source  # a start that builds nothing does without

    table = folder / "availability.cpp"
    write_if_changed(table, table_source(read_availability()).encode())
    sources.append((table, f"own.{table.name}", f"-O1 -I{native}"))
    sources += [(path, f"kernels.{path.name}", "") for path in sorted(runtime.glob("*.c"))]
    inputs = Inputs(
        root=root,
        standard=release.standard,
        flags=release.flags,
        shared=tree / "aten/src" / release.shared_header if release.shared_header else None,
        include=(
            generated,
            *(read_tree(tree).include if torch else (tree / "aten/src", tree)),
            *(torch.include if torch else ()),
        ),
        after=(native / "include", frameworks.include),
        sources=tuple(sources),
        native=native,
        libraries=torch.libraries if torch else None,
    )
    from .kernels import compile_kernels  # a start that builds nothing does without

    kernels = compile_kernels(release, folder.parent.parent / "kernels", log=log, reporter=reporter, limits=limits)
    before = _cpu_seconds() - below.cpu_seconds
    try:
        _run_ninja(inputs, folder, jobs=jobs, log=log, reporter=reporter)
    except CompileError:
        # A release that is in no table may have a file that breaks with the header that is read once for all.
        if not (release.is_built and inputs.shared):
            raise
        _run_ninja(replace(inputs, shared=None), folder, jobs=jobs, log=log, reporter=reporter)
    spent = round(_cpu_seconds() - before + _spent(folder), 1)
    site = torch.site if torch else None
    compile_modules(root, folder / LIBRARY, site=site, log=log, reporter=reporter)
    count = sum(file.suffix == ".mm" for file in files)
    facts = {
        "state": state,
        "root": str(root.path),
        "tree": str(tree),
        "kernels": str(kernels),
        "mm": count,
        "cpu_seconds": spent,
        "sha256": digests([folder / LIBRARY, *sorted(kernels.glob("*"))]),
    }
    write_whole(folder / "built.json", json.dumps(facts, indent=2) + "\n")
    return Built(
        release=release,
        root=root,
        tree=tree,
        folder=folder,
        kernels=kernels,
        objective_files=count,
        cpu_seconds=spent,
        site=site,
    )


def _run_ninja(inputs: Inputs, folder: Path, *, jobs: int, log: Path, reporter: Reporter) -> None:
    write_if_changed(folder / "build.ninja", ninja_text(inputs).encode())
    argv = (str(inputs.root.ninja), "-C", str(folder), f"-j{jobs}", "-k", "0")
    try:
        run_build(Command(argv=argv, environ=_environ()), log=log, reporter=reporter, title="Compile the back end")
    except CompileError as error:
        said = first_error(log.read_text(encoding="utf-8", errors="replace"))
        raise CompileError(f"the back end does not compile for Linux: {said}", hint=error.hint) from error


def _ours(release: Release) -> Iterator[tuple[str, str]]:
    """Yield name and text of the files of this package that a library is made of."""
    yield from ((Path(name).name, text) for name, text in texts_of(NATIVE).items())
    paths = (
        *sorted(path for path in NATIVE.parent.joinpath("builder").glob("*.py")),
        *(NATIVE.parent / f"availability.{suffix}" for suffix in ("py", "yaml")),
        *sorted(path for path in RUNTIME.glob("*") if path.is_file()),
        *(release.patches_root / name for name in release.patches),
        *hook_files(),
    )
    yield from ((path.name, path.read_text(encoding="utf-8")) for path in paths)


def _drop_damaged(folder: Path, reporter: Reporter) -> bool:
    """Remove what is not what it was when it was built, and say so; False where there was such a file."""
    note = folder / "built.json"
    if not note.exists():
        return True
    try:
        facts = read_json(note) if file_digest(note) else {}
        known, kernels = dict(facts["sha256"]), Path(facts["kernels"])
    except (OSError, ValueError, KeyError, TypeError):
        known, kernels = {str(note): None, str(folder / LIBRARY): None}, folder
    damaged = unbelievable(known)
    for path in damaged:
        reporter.line(f"{path} is gone, cut off, changed or another user's: it is made again")
        path.unlink(missing_ok=True)
    if kernels != folder and any(path.parent == kernels for path in damaged):
        remove_tree(kernels)
    return not damaged


def _kept(release: Release, folder: Path, state: str) -> Built | None:
    """Return what was built before from the same files, or None."""
    try:
        facts = read_json(folder / "built.json")
    except (OSError, ValueError):
        return None
    if facts.get("state") != state or not (folder / LIBRARY).is_file() or not Path(facts["root"]).is_dir():
        return None
    return Built(
        release=release,
        root=Root(path=Path(facts["root"]), python_version=release.home.python),
        tree=Path(facts["tree"]),
        folder=folder,
        kernels=Path(facts["kernels"]),
        objective_files=facts["mm"],
        cpu_seconds=facts["cpu_seconds"],
    )


def _spent(folder: Path) -> float:
    """Return what building cost before, where only a part was compiled now."""
    try:
        return float(read_json(folder / "built.json")["cpu_seconds"])
    except (OSError, ValueError, KeyError):
        return 0.0


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _environ() -> dict[str, str]:
    return {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "HOME": os.environ.get("HOME", "/"), "NINJA_STATUS": "[%f/%t] "}


def held(path: Path, reporter: Reporter) -> AbstractContextManager[Reporter]:
    """Hold a lock while something is made; another that comes meanwhile waits, shows how far it is, and finds it."""
    return made_by_one(path, reporter, what="builds a simulation")
