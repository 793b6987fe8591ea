"""A Linux torch of the user's tree, with MPS in its C++: built once, and again for what changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import CompileError, DiskFull
from mps_build.common.files import write_whole
from mps_build.common.process import Command, CommandFailed, run_logged
from mps_build.common.receipts import digest_of
from mps_build.common.reporting import Reporter
from mps_build.common.workspace import remove_tree
from mps_build.wheel_build.ninja import run_build
from mps_build.wheel_build.wide_headers import exclude

from .root import LIBRARY, Root, patchelf
from .torch_line import TorchTree, configure_words, environment, override_lines
from .torch_tree import FLATBUFFERS, copied, is_debian_tree

_ROOM, _ROOM_TO_GO_ON = 7_000_000_000, 2_000_000_000
_PACKAGES = ("torch", "functorch", "torchgen")
_ROUNDS = 4  # of files that break with a header which is read once: the next may show more
_METADATA = "Metadata-Version: 2.1\nName: torch\nVersion: {version}\nRequires-Dist: filelock\nRequires-Dist: sympy\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Torch:
    """A built torch: the folder that is imported from, its headers, its libraries."""

    site: Path

    @property
    def include(self) -> tuple[Path, ...]:
        """The folders of headers, as it was compiled."""
        return self.site / "torch/include", self.site / "torch/include/torch/csrc/api/include"

    @property
    def libraries(self) -> Path:
        """The folder of its libraries."""
        return self.site / "torch/lib"


def build_torch(tree: Path, home: Path, *, root: Root, version: str, jobs: int, reporter: Reporter) -> Torch:
    """Return the torch of a tree, built only as far as it is not there yet.

    Args:
        home: where its copy, its objects and itself lie.

    Raises:
        DiskFull: there is no room for it. SourceError: the tree is not whole.
        CompileError: it cannot be configured or compiled; the log holds why.
    """
    torch = TorchTree(tree=home / "tree", build=home / "build", version=version, is_debian=is_debian_tree(tree))
    home.mkdir(parents=True, exist_ok=True)
    log = home / "torch.log"
    reporter.started("Copy the tree")
    copied(tree, torch.tree, is_debian=torch.is_debian)
    reporter.done()
    _configure(root, torch, home, log=log, reporter=reporter)
    _compile(root, torch, jobs=jobs, log=log, reporter=reporter)
    _write_bindings(root, torch, home, log=log)
    return Torch(site=_write_site(torch, home / "site"))


def check_room(folder: Path) -> None:
    """Refuse a disk that cannot hold what is still to be made in the folder of a torch.

    Raises:
        DiskFull: naming the folder, and how much it takes.
    """
    has_begun = (folder / "build/build.ninja").is_file()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free, needed = shutil.disk_usage(existing).free, _ROOM_TO_GO_ON if has_begun else _ROOM
    if free < needed:
        raise DiskFull(
            f"{existing} has {free / 1e9:.1f} GB free, building torch {'goes on with' if has_begun else 'takes'} "
            f"{needed / 1e9:.0f} GB",
            hint="free some space, or set MPS_BUILD_CACHE to a folder on another disk; what is made already is kept",
        )


def _configure(root: Root, torch: TorchTree, home: Path, *, log: Path, reporter: Reporter) -> None:
    overrides, kept = home / "overrides.cmake", home / "configured"
    text = override_lines(home / "wide_headers")
    words = configure_words(root, torch, overrides)
    state = digest_of([text, *words])
    if kept.is_file() and kept.read_text(encoding="utf-8") == state:
        return
    if torch.is_debian:
        flatc = (str(root.loader), "--library-path", str(root.libraries), str(root.path / "usr/bin/flatc"))
        place = (torch.tree / FLATBUFFERS).parent
        options = ("--cpp", "--gen-mutable", "--scoped-enums", "mobile_bytecode.fbs")
        _run((*flatc, *options), torch, cwd=place, log=log, what="flatc")
    write_whole(overrides, text)
    remove_tree(torch.build)
    reporter.started("Configure torch")
    _run(words, torch, cwd=home, log=log, what="CMake")
    reporter.done()
    write_whole(kept, state)


def _compile(root: Root, torch: TorchTree, *, jobs: int, log: Path, reporter: Reporter) -> None:
    argv = (str(root.ninja), "-C", str(torch.build), f"-j{jobs}", "-k", "0", "install")
    command = Command(argv=argv, environ=environment(torch))
    for left in reversed(range(_ROUNDS)):
        try:
            run_build(command, log=log, reporter=reporter, title="Compile torch")
        except CompileError as error:
            said = log.read_text(encoding="utf-8", errors="replace")
            if not left or not exclude(torch.build, said):
                raise CompileError(
                    f"torch of this tree does not compile: {first_error(said)}", hint=error.hint
                ) from error
        else:
            return


def first_error(said: str) -> str:
    """Return what a compiler or linker says first."""
    return next((line.strip() for line in said.splitlines() if "error: " in line), "see the log")


def _write_bindings(root: Root, torch: TorchTree, home: Path, *, log: Path) -> None:
    """Make torch._C, as setup.py would; our library stands first among what it needs."""
    package = torch.tree / "torch"
    made = package / f"_C.cpython-{root.python_version.replace('.', '')}-x86_64-linux-gnu.so"
    source = package / "csrc/stub.c"
    if made.is_file() and made.stat().st_mtime_ns > source.stat().st_mtime_ns:
        return
    beside = home / made.name
    linker = f"--ld-path={root.lld}"
    words = ("-shared", "-fPIC", "-w", linker, "-Wl,--disable-new-dtags,-rpath,$ORIGIN/lib", f"-L{package / 'lib'}")
    include = f"-I{root.path}/usr/include/python{root.python_version}"
    argv = (
        str(root.clang),
        f"--sysroot={root.path}",
        *words,
        include,
        str(source),
        "-ltorch_python",
        "-o",
        str(beside),
    )
    _run(argv, torch, cwd=home, log=log, what="the bindings")
    _run((*patchelf(root), "--add-needed", LIBRARY, str(beside)), torch, cwd=home, log=log, what="the bindings")
    beside.replace(made)


def _write_site(torch: TorchTree, site: Path) -> Path:
    """Return the folder that torch is imported from: its packages alone, and what pip wants to know of it."""
    site.mkdir(exist_ok=True)
    for name in _PACKAGES:
        link = site / name
        if not link.is_symlink() and (torch.tree / name).is_dir():
            link.symlink_to(torch.tree / name)
    facts = site / f"torch-{torch.version}.dist-info"
    facts.mkdir(exist_ok=True)
    write_whole(facts / "METADATA", _METADATA.format(version=torch.version))
    write_whole(facts / "INSTALLER", "mps-build\n")
    return site


def _run(argv: Sequence[str], torch: TorchTree, *, cwd: Path, log: Path, what: str) -> None:
    try:
        command = Command(argv=tuple(argv), cwd=cwd, environ={**environment(torch), "PWD": os.fspath(cwd)})
        run_logged(command, log=log)
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        raise CompileError(
            f"{what} failed ({failure.exit_code}):\n{text}", hint=f"the whole output is in {log}"
        ) from failure
