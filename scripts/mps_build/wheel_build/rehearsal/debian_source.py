"""Debian's source packages of PyTorch: whole real trees where no git server can be reached.

They are the release's files less those that Debian cannot ship (third_party), plus Debian's own
patches; none of those names MPS or Metal. apt checks the archive's signature over them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mps_build.common.errors import BuildEnvironmentError, SourceError
from mps_build.common.process import FETCH_SECONDS, Command, CommandFailed, capture, run_logged
from mps_build.common.receipts import Ledger, StepResult, fingerprint
from mps_build.common.reporting import Reporter
from mps_build.common.workspace import remove_tree

from ..artifacts import SourceTree
from .chroot import Chroot

LIBRARIES = ("c10", "torch", "torch_cpu", "torch_global_deps")

# What Debian's patches take from the system and a bare tarball of 1.13.1 looks for in third_party: enough to configure
# and to compile, in the place of two submodules.
_FAKES: Mapping[str, str] = {
    "fmt": """\
add_library(fmt-header-only INTERFACE)
add_library(fmt::fmt-header-only ALIAS fmt-header-only)
target_compile_definitions(fmt-header-only INTERFACE FMT_HEADER_ONLY=1)
""",
    "foxi": """\
add_library(foxi_loader INTERFACE)
add_library(foxi_dummy INTERFACE)
add_library(foxi INTERFACE)
""",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DebianSource:
    """One source package, the Debian release it is in with its Python, and the packages that hold its libtorch."""

    suite: str
    python: str
    version: str
    libtorch: tuple[str, ...] = ()

    @property
    def soversion(self) -> str:
        """Return what ends the libraries' names: 2.6 of 2.6.0+dfsg-7."""
        return ".".join(self.version.split(".")[:2])


SOURCES: Mapping[str, DebianSource] = {
    "1.13.1": DebianSource(suite="bookworm", python="3.11", version="1.13.1+dfsg-4"),
    "2.6.0": DebianSource(
        suite="trixie", python="3.13", version="2.6.0+dfsg-7", libtorch=("libtorch2.6", "libtorch-dev")
    ),
}


def debian_source(version: str) -> DebianSource:
    """Return what Debian has of a release.

    Raises:
        SourceError: nothing that is known here.
    """
    if version not in SOURCES:
        raise SourceError(
            f"no Debian source package of {version} is known here (there are {', '.join(SOURCES)})",
            hint="give a tree you have: --source PATH",
        )
    return SOURCES[version]


def unpack_source(
    version: str,
    *,
    chroot: Chroot,
    folder: Path,
    ledger: Ledger,
    log: Path,
    reporter: Reporter,
    inputs: Mapping[str, Any],
) -> SourceTree:
    """Return Debian's tree of a release in `folder`/source, unpacked anew if it is not there.

    Args:
        inputs: what will be done to the tree; when that changes, it starts from a fresh one.

    Raises:
        SourceError: there is no such package, or it could not be had or unpacked.
    """
    package = debian_source(version)
    downloads, tree = folder / "downloads", folder / "source"

    def download() -> StepResult:
        reporter.started(f"Fetch the source package {package.version}")
        downloads.mkdir(parents=True, exist_ok=True)
        argv = ("apt-get", "-q", "-o", "APT::Sandbox::User=root", "source", "--download-only")
        try:
            _run(_in(chroot, downloads).command((*argv, f"pytorch={package.version}"), cwd=downloads), log)
        except SourceError:
            # An archive may have dropped Debian's own part of an old package; the release's tarball serves as well.
            if not original_tarball(downloads):
                raise
        return StepResult(files=tuple(sorted(path for path in downloads.iterdir() if path.is_file())))

    fetched = ledger.run("fetch-source", version=1, inputs={"package": package.version}, action=download)

    def unpack() -> StepResult:
        reporter.started("Unpack the source package")
        remove_tree(tree)
        if any(downloads.glob("*.debian.tar.*")):
            description = next(downloads.glob("*.dsc"))
            _run(Command(argv=("dpkg-source", "--no-check", "-x", str(description), str(tree))), log)
        else:
            tree.mkdir()
            original = original_tarball(downloads)
            _run(Command(argv=("tar", "-xf", str(original), "-C", str(tree), "--strip-components=1")), log)
            for name, text in _FAKES.items():
                place = tree / "third_party" / name / "CMakeLists.txt"
                if place.parent.is_dir() and not place.exists():
                    place.write_text(text, encoding="utf-8")
        _generate_flatbuffers(tree, chroot, log)
        return StepResult(trees=(tree,))

    ledger.run("unpack-source", version=1, inputs={"fetched": fetched.digest, **inputs}, action=unpack)
    whole = (tree / "debian").is_dir()
    origin = (
        f"Debian {package.version}"
        if whole
        else f"the tarball of Debian {package.version}, without Debian's patches, fmt and foxi stood in for"
    )
    return SourceTree(root=tree, origin=origin, commit=None, submodules={}, epoch=changelog_epoch(tree))


def original_tarball(downloads: Path) -> Path | None:
    """Return the release's own tarball, if it is there and is what the package's description says."""
    for description in downloads.glob("*.dsc"):
        for name, digest in parse_checksums(description.read_text(encoding="utf-8")).items():
            path = downloads / name
            if ".orig.tar." in name and path.is_file() and fingerprint(path)["sha256"] == digest:
                return path
    return None


def parse_checksums(description: str) -> dict[str, str]:
    r"""Return file name -> sha256 of a Debian source package's .dsc.

    >>> parse_checksums("Checksums-Sha256:\n aa 12 x.orig.tar.xz\n bb 3 x.debian.tar.xz\nFiles:\n cc 12 x\n")
    {'x.orig.tar.xz': 'aa', 'x.debian.tar.xz': 'bb'}
    """
    found: dict[str, str] = {}
    inside = False
    for line in description.splitlines():
        if not line.startswith(" "):
            inside = line.startswith("Checksums-Sha256:")
        elif inside and len(fields := line.split()) == 3:
            found[fields[2]] = fields[0]
    return found


def changelog_epoch(tree: Path) -> int:
    """Return the time of the package's newest changelog entry, in seconds."""
    answer = capture(Command(argv=("dpkg-parsechangelog", "-l", str(tree / "debian/changelog"), "-S", "Timestamp")))
    return int(answer.stdout) if answer.stdout.strip().isdecimal() else 0


def fetch_libtorch(
    version: str, *, chroot: Chroot, folder: Path, ledger: Ledger, log: Path, reporter: Reporter
) -> Path:
    """Return a folder with Debian's own libtorch of a release, able to be moved.

    Upstream's split build (BUILD_LIBTORCHLESS) compiles the bindings against it: a tenth of the whole.
    Each library is there under its soname, with a link by the name that a linker looks for, and
    finds its neighbours (`$ORIGIN`), which Debian's do not need to.

    Raises:
        SourceError: no libtorch of that release is known, or it could not be had.
    """
    package = debian_source(version)
    if not package.libtorch:
        raise SourceError(f"Debian has no libtorch of {version} to build the bindings against")
    downloads, made = folder / "libtorch-packages", folder / "libtorch"

    def fetch() -> StepResult:
        reporter.started(f"Fetch libtorch {package.version}")
        for path in (downloads, made):
            remove_tree(path)
        downloads.mkdir(parents=True)
        inside = _in(chroot, folder)
        names = [f"{name}={package.version}" for name in package.libtorch]
        apt = ("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *names)
        _run(inside.command(apt, cwd=downloads), log)
        for archive in sorted(downloads.glob("*.deb")):
            _run(inside.command(("dpkg", "-x", str(archive), str(downloads / "unpacked"))), log)
        made.mkdir()
        for library in LIBRARIES:
            name = f"lib{library}.so"
            found = next((downloads / "unpacked").glob(f"usr/lib/*/{name}.{package.soversion}"))
            kept = made / f"{name}.{package.soversion}"
            shutil.copy2(found, kept)
            (made / name).symlink_to(kept.name)
            _run(inside.command(("patchelf", "--set-rpath", "$ORIGIN", str(kept))), log)
        remove_tree(downloads)
        return StepResult(trees=(made,))

    ledger.run("libtorch", version=1, inputs={"package": package.version}, action=fetch)
    return made


def place_libtorch(libtorch: Path, tree: Path) -> None:
    """Put the libraries where setup.py packs them from, each once, by the name that it is loaded by."""
    destination = tree / "torch" / "lib"
    destination.mkdir(exist_ok=True)
    for library in sorted(libtorch.glob("lib*.so.*")):
        # torch/__init__.py loads this one by its plain name, the others are found by soname.
        is_by_name = library.name.startswith("libtorch_global_deps.")
        name = re.sub(r"\.so\..*", ".so", library.name) if is_by_name else library.name
        shutil.copy2(library, destination / name)


def _generate_flatbuffers(tree: Path, chroot: Chroot, log: Path) -> None:
    """Make the one header that must fit the flatbuffers at hand, as debian/rules does."""
    folder = tree / "torch/csrc/jit/serialization"
    schema = folder / "mobile_bytecode.fbs"
    if schema.is_file():
        argv = ("flatc", "--cpp", "--gen-mutable", "--scoped-enums", schema.name)
        _run(_in(chroot, tree).command(argv, cwd=folder), log)


def _in(chroot: Chroot, folder: Path) -> Chroot:
    return replace(chroot, binds=(*chroot.binds, folder))


def _run(command: Command, log: Path) -> None:
    try:
        run_logged(command, log=log, timeout_seconds=FETCH_SECONDS)
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        kind = BuildEnvironmentError if failure.exit_code == 127 else SourceError
        raise kind(f"{failure.command.argv[-1]}: {text}", hint=f"the whole output is in {log}") from failure
