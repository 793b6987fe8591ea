"""What Debian has for a rehearsal of companions: their releases' own tarballs, and what a split-built torch lacks."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mps_build.common.errors import BuildEnvironmentError, SourceError
from mps_build.common.process import FETCH_SECONDS, Command, CommandFailed, capture, run_logged
from mps_build.common.receipts import Ledger, StepResult, fingerprint
from mps_build.common.reporter import Reporter
from mps_build.common.workspace import remove_tree

from .chroot import Chroot
from .debian_source import LIBRARIES, debian_source, parse_checksums

_APT = ("apt-get", "-q", "-o", "APT::Sandbox::User=root")


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
    it computes in parallel, and torchaudio asked for functions of the other kind.
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
        SourceError: what was asked for is not to be had; BuildEnvironmentError where the program is missing.
    """
    try:
        run_logged(command, log=log, timeout_seconds=FETCH_SECONDS)
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        kind = BuildEnvironmentError if failure.exit_code == 127 else SourceError
        raise kind(f"{failure.command.argv[-1]}: {text}", hint=f"the whole output is in {log}") from failure
