"""Companions on Linux: build_companions' own steps in the Debian root, against a torch that was built there."""

from __future__ import annotations

import posixpath
import re
import shutil
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mps_build.common.errors import AuditRejected, BuildEnvironmentError, SourceError
from mps_build.common.process import FETCH_SECONDS, Command, CommandFailed, capture, run_logged
from mps_build.common.receipts import Ledger, StepResult, fingerprint
from mps_build.common.recipe.model import Recipe, Variable
from mps_build.common.reporting import Reporter
from mps_build.common.workspace import PACKAGE, expanded, remove_tree

from ..companions.build import CompanionBuild
from ..companions.delivery import DeliveredSet, deliver_companions
from ..companions.plan import CompanionPlan, SourceChoice, TorchWheel, chosen_companions, given_wheel, parse_sources
from .chroot import Chroot
from .debian_source import LIBRARIES, debian_source, parse_checksums
from .linux import clang_toolchain
from .session import Rehearsal
from .source import debian_place, debian_root

# No wheel for Linux can keep them: T1 asks for macOS in the name, A0 for Mach-O.
EXCUSED = frozenset({"T1", "A0"})
_FLAGS = "-O0 -fclang-abi-compat=17"
_OF_LINUX = (
    Variable(name="FORCE_MPS", value="0", reason="its MPS kernels are Objective-C++, which only a Mac compiles"),
    Variable(name="CFLAGS", value=_FLAGS, reason="compiled, not measured; templates named as the gcc of libtorch does"),
)
_APT = ("apt-get", "-q", "-o", "APT::Sandbox::User=root")
_SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|ld-linux[\w-]*)\.so(\.\d+)*")
_TORCH = re.compile(r"lib(c10|torch|torch_cpu|torch_python|shm)\.so(\.[\d.]+)?")
_ENTRY = re.compile(r"\((NEEDED|RPATH|RUNPATH)\)[^\[]*\[(.*)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanionTrial:
    """What is requested beside the recipe; without `torch`, the wheel that `rehearse --wheel` made."""

    torch: TorchWheel | None
    names: tuple[str, ...]
    sources: Mapping[str, SourceChoice]


def plan_trial(
    recipe: Recipe, *, torch: Path | None, sources: Sequence[str], only: Sequence[str] = ()
) -> CompanionTrial:
    """Return what is requested, checked before anything is made; what no source names is Debian's tarball.

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


# What Debian has for a rehearsal of companions: their releases' own tarballs, and what a split-built torch lacks.


@dataclass(frozen=True, slots=True, kw_only=True)
class DebianCompanion:
    """A companion's source package in the suite of its torch's."""

    package: str
    version: str


COMPANIONS: Mapping[str, Mapping[str, DebianCompanion]] = {
    "2.6.0": {
        "torchvision": DebianCompanion(package="pytorch-vision", version="0.21.0-3"),
        "torchaudio": DebianCompanion(package="pytorch-audio", version="2.6.0-1"),
    },
}

# The split build installs no package for CMake, and torchaudio asks for one; this names the wheel's own libraries.
TORCH_CONFIG = """\
get_filename_component(TORCH_INSTALL_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../../" ABSOLUTE)
set(TORCH_INCLUDE_DIRS "${TORCH_INSTALL_PREFIX}/include" "${TORCH_INSTALL_PREFIX}/include/torch/csrc/api/include")
foreach(each IN ITEMS c10 torch_cpu torch)
  if(NOT TARGET ${each})
    add_library(${each} SHARED IMPORTED)
    set_target_properties(${each} PROPERTIES
      IMPORTED_LOCATION "${TORCH_INSTALL_PREFIX}/lib/lib${each}.so"
      INTERFACE_INCLUDE_DIRECTORIES "${TORCH_INCLUDE_DIRS}")
  endif()
endforeach()
set_property(TARGET torch_cpu PROPERTY INTERFACE_LINK_LIBRARIES c10)
set_property(TARGET torch PROPERTY INTERFACE_LINK_LIBRARIES "torch_cpu;c10")
set(TORCH_LIBRARIES torch torch_cpu c10)
set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=1")
set(TORCH_FOUND TRUE)
"""


def debian_companions(version: str) -> Mapping[str, DebianCompanion]:
    """Return Debian's companions of a torch release.

    Raises:
        SourceError: none are known here.
    """
    if version not in COMPANIONS:
        raise SourceError(
            f"no Debian source packages of {version}'s companions are known here (there are: {', '.join(COMPANIONS)})",
            hint=f"give trees you have: nox -s rehearse -- v{version} --companions --source torchvision=PATH",
        )
    return COMPANIONS[version]


def fetch_tarball(
    companion: DebianCompanion, *, chroot: Chroot, folder: Path, ledger: Ledger, log: Path, reporter: Reporter
) -> Path:
    """Return the release's own tarball, without Debian's patches, as the archive's signed index describes it.

    Raises:
        SourceError: it is not to be had, or is not what the index says.
    """
    downloads = folder / "downloads" / companion.package

    def fetch() -> StepResult:
        reporter.started(f"Fetch the tarball of {companion.package} {companion.version}")
        remove_tree(downloads)
        downloads.mkdir(parents=True)
        inside = replace(chroot, binds=(*chroot.binds, downloads))
        wanted = f"{companion.package}={companion.version}"
        run_inside(inside.command((*_APT, "source", "--download-only", "--tar-only", wanted), cwd=downloads), log)
        shown = capture(inside.command(("apt-cache", "showsrc", "--only-source", companion.package)))
        known = parse_checksums(shown.stdout)
        found = sorted(path for path in downloads.iterdir() if ".orig.tar." in path.name)
        if len(found) != 1 or known.get(found[0].name) != fingerprint(found[0])["sha256"]:
            names = ", ".join(path.name for path in found) or "nothing"
            raise SourceError(f"apt fetched {names} for {wanted}, which its own index does not describe")
        return StepResult(files=tuple(found))

    inputs = {"package": companion.package, "version": companion.version}
    ledger.run("fetch-tarball", version=1, inputs=inputs, action=fetch, key=companion.package)
    return next(path for path in downloads.iterdir() if ".orig.tar." in path.name)


def fetch_headers(
    version: str, *, chroot: Chroot, folder: Path, ledger: Ledger, log: Path, reporter: Reporter
) -> tuple[Path, str]:
    """Return Debian's C++ headers of a torch release, and the package they are from.

    Raises:
        SourceError: they are not to be had.
    """
    package = debian_source(version)
    downloads, made = folder / "header-packages", folder / "headers"
    named = f"libtorch-dev={package.version}"

    def fetch() -> StepResult:
        reporter.started(f"Fetch the headers of {named}")
        for path in (downloads, made):
            remove_tree(path)
        downloads.mkdir(parents=True)
        inside = replace(chroot, binds=(*chroot.binds, folder))
        run_inside(inside.command((*_APT, "download", named), cwd=downloads), log)
        archive = next(downloads.glob("*.deb"))
        run_inside(inside.command(("dpkg", "-x", str(archive), str(downloads / "unpacked"))), log)
        (downloads / "unpacked" / "usr" / "include").rename(made)
        remove_tree(downloads)
        return StepResult(trees=(made,))

    ledger.run("headers", version=1, inputs={"package": named}, action=fetch)
    return made, named


_DESCRIBE_LIBTORCH = ("ATen/Config.h", "c10/macros/cmake_macros.h")


def complete_torch(site_packages: Path, headers: Path) -> None:
    """Give an installed split-built torch what a whole build installs: headers, linker names, a package for CMake.

    What the wheel brought stays as it is, but for what describes libtorch, which is Debian's: its Config.h says by what
    it computes in parallel, and torchaudio called functions of the other kind.
    """
    torch = site_packages / "torch"
    for header in sorted(headers.rglob("*")):
        name = header.relative_to(headers)
        place = torch / "include" / name
        wanted = not place.exists() or name.as_posix() in _DESCRIBE_LIBTORCH
        if header.is_file() and not header.name.startswith(".") and wanted:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(header, place)
    for library in LIBRARIES:
        for versioned in sorted((torch / "lib").glob(f"lib{library}.so.*")):
            name = versioned.with_name(f"lib{library}.so")
            if not name.exists():
                name.symlink_to(versioned.name)
    config = torch / "share" / "cmake" / "Torch" / "TorchConfig.cmake"
    if not config.exists():
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(TORCH_CONFIG, encoding="utf-8")


def run_inside(command: Command, log: Path) -> None:
    """Run a command in the root.

    Raises:
        SourceError: what was requested is not to be had; BuildEnvironmentError where the program is missing.
    """
    try:
        run_logged(command, log=log, timeout_seconds=FETCH_SECONDS)
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        kind = BuildEnvironmentError if failure.exit_code == 127 else SourceError
        raise kind(f"{failure.command.argv[-1]}: {text}", hint=f"the whole output is in {log}") from failure


# What a Linux wheel's libraries load, from `readelf -d`: the audit reads Mach-O alone.


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """What one library asks the loader for."""

    needed: tuple[str, ...]
    search: tuple[str, ...]


def parse_dynamic(text: str) -> Loads:
    """Return what `readelf -d` tells.

    >>> parse_dynamic(" 0x1 (NEEDED)   Shared library: [libc10.so.2.6]\\n 0x1d (RUNPATH)  Library runpath: [$ORIGIN]")
    Loads(needed=('libc10.so.2.6',), search=('$ORIGIN',))
    """
    entries = _ENTRY.findall(text)
    search = [path for kind, value in entries if kind != "NEEDED" for path in value.split(":")]
    return Loads(needed=tuple(value for kind, value in entries if kind == "NEEDED"), search=tuple(search))


def faults_of(members: Iterable[str], loads: Mapping[str, Loads]) -> tuple[str, ...]:
    """Return what is wrong with a companion's libraries: torch brought along, or something loaded from elsewhere."""
    own = {posixpath.basename(member) for member in members}
    faults = [f"{member}: is torch's own library" for member in members if _TORCH.fullmatch(posixpath.basename(member))]
    for member, each in loads.items():
        known = [name for name in each.needed if name in own or _SYSTEM.fullmatch(name) or _TORCH.fullmatch(name)]
        strange = [name for name in each.needed if name not in known]
        faults += [f"{member}: loads {name}, which is neither torch's nor the system's" for name in strange]
        faults += [f"{member}: searches {path}" for path in each.search if not path.startswith("$ORIGIN")]
    if not any(_TORCH.fullmatch(name) for each in loads.values() for name in each.needed):
        faults.append("no library of it loads torch's")
    return tuple(faults)


def check_libraries(wheel: Path, *, scratch: Path, wrap: Callable[[Command], Command]) -> dict[str, Loads]:
    """Return what each library of a Linux wheel loads.

    Raises:
        AuditRejected: a library loads what is neither torch's nor the system's, or torch was brought along.
        BuildEnvironmentError: readelf does not answer.
    """
    remove_tree(scratch)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        libraries = [name for name in names if re.search(r"\.so(\.\d+)*$", name)]
        archive.extractall(scratch, members=libraries)
    loads = {}
    for name in libraries:
        answer = capture(wrap(Command(argv=("readelf", "-d", "-W", str(scratch / name)))))
        if not answer.ok:
            raise BuildEnvironmentError(f"readelf cannot read {name}: {answer.stderr.strip()}")
        loads[name] = parse_dynamic(answer.stdout)
    remove_tree(scratch)
    faults = faults_of(names, loads)
    if faults:
        raise AuditRejected(f"{wheel.name} was rejected by the audit:\n  " + "\n  ".join(faults), hint=f"it is {wheel}")
    return loads
