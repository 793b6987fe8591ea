"""A folder with a Debian userland: Python, torch, a compiler. Its programs run where it lies, without a chroot.

Each program that is started from outside names the folder's own loader and libraries (PT_INTERP, DT_RPATH), so it
sees the caller's files, and the caller's programs keep their own libraries. Nothing is taken from the caller's system:
it may lack what is needed, or have it of another age.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.files import write_whole
from mps_build.common.process import Command, CommandFailed, run_logged
from mps_build.common.receipts import digest_of
from mps_build.common.reporting import Reporter
from mps_build.common.workspace import remove_tree

from .packages import Apt, unpack

LIBRARY = "libmps_simulated.so"
_TRIPLE = "x86_64-linux-gnu"
_LLVM = "usr/lib/llvm-19"
_OF_A_BUILD = ("usr/bin/cmake", "usr/bin/protoc", f"{_LLVM}/bin/llvm-ar", f"{_LLVM}/bin/llvm-ranlib")
_IMPORTED = "torch, sympy, pytest"  # sympy is what torch's own Python imports with its first operator
_MARKER = ".mps-build-root"
_RECIPE = 4  # raise it when the steps below change


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The folder, and the version of its Python."""

    path: Path
    python_version: str

    @property
    def python(self) -> Path:
        """The interpreter that has torch."""
        return self.path / f"usr/bin/python{self.python_version}"

    @property
    def clang(self) -> Path:
        """The C++ compiler."""
        return self.path / _LLVM / "bin/clang"

    @property
    def lld(self) -> Path:
        """The linker."""
        return self.path / _LLVM / "bin/ld.lld"  # by this name: `lld` itself refuses to say its version

    @property
    def ninja(self) -> Path:
        """The build program."""
        return self.path / "usr/bin/ninja"

    @property
    def libraries(self) -> Path:
        """The folder of libtorch and all others."""
        return self.path / "usr/lib" / _TRIPLE

    @property
    def packages(self) -> Path:
        """The folder that torch is imported from."""
        return self.path / "usr/lib/python3/dist-packages"

    @property
    def loader(self) -> Path:
        """What loads a program that is started from outside."""
        return self.path / "usr/lib64/ld-linux-x86-64.so.2"

    @property
    def library_folders(self) -> tuple[Path, ...]:
        """Where such a program's libraries are looked for."""
        own = (self.libraries / each for each in (".", "blas", "lapack"))
        return (*own, self.path / "usr/lib", self.path / _LLVM / "lib")

    @property
    def programs(self) -> tuple[Path, ...]:
        """The programs that are started from outside; those of a root that torch is built in where it has them."""
        more = (self.path / each for each in _OF_A_BUILD)
        return (self.python, self.clang, self.lld, self.ninja, *(each for each in more if each.exists()))


def make_root(folder: Path, *, suite: str, python: str, packages: Sequence[str], log: Path, reporter: Reporter) -> Root:
    """Return the root of a Debian suite with these packages, made only if it is not there.

    Raises:
        BuildEnvironmentError: a package could not be had or does not work here.
    """
    digest = digest_of([_RECIPE, suite, *packages])
    root = Root(path=folder / f"{suite}-{digest[:12]}", python_version=python)
    if (root.path / _MARKER).is_file():
        return root
    archives = Apt(folder / f"apt-{suite}", suite=suite, log=log, reporter=reporter).fetch(packages)
    remove_tree(root.path)
    root.path.mkdir(parents=True)
    unpack(archives, root.path, log=log, reporter=reporter)
    merge_usr(root.path)
    _relocate(root, log)
    (root.path / _MARKER).write_text(digest, encoding="utf-8")
    for archive in archives:  # 300 MB that nothing needs any more
        archive.unlink()
    return root


def merge_usr(root: Path) -> None:
    """Make /bin, /lib, /lib64 and /sbin links into /usr, as base-files does: the C library's linker scripts name /lib.

    Up to bookworm packages still have files in the four.
    """
    for name in ("bin", "lib", "lib64", "sbin"):
        if (root / name).is_dir():
            shutil.copytree(root / name, root / "usr" / name, symlinks=True, dirs_exist_ok=True)
            remove_tree(root / name)
        (root / name).symlink_to(f"usr/{name}")
    # clang names the C++ library's headers as lib/gcc/../../include; ninja, which knows no links, takes that for this.
    (root / "include").symlink_to("usr/include")


def write_hook(root: Root) -> None:
    """Write what lets the interpreter know, when it starts, that its torch has MPS."""
    for path in hook_files():
        target = root.packages / path.name
        if not target.is_file() or target.read_bytes() != path.read_bytes():
            write_whole(target, path.read_bytes())


def compile_modules(root: Root, library: Path, *, site: Path | None = None, log: Path, reporter: Reporter) -> None:
    """Let the interpreter write the bytecode of what a program with torch imports, as a script of Debian's would.

    Without it each start costs 2 to 5 CPU seconds more wherever Python writes none, as containers do.

    Args:
        library: ours, which torch's bindings need. site: the folder that torch is imported from; None: the root's.

    Raises:
        BuildEnvironmentError: torch cannot be imported.
    """
    if any((site or root.packages).glob("torch/__pycache__/*.pyc")):
        return
    reporter.started("Compile Python's modules")
    environ = {"PATH": os.defpath, "LD_LIBRARY_PATH": str(library.parent), **torch_variables(site)}
    try:
        run_logged(Command(argv=(str(root.python), "-c", f"import {_IMPORTED}"), environ=environ), log=log)
    except CommandFailed as failure:
        raise BuildEnvironmentError(f"{failure}: {' '.join(failure.tail[-3:])}", hint=f"see {log}") from failure
    reporter.done()


def torch_variables(site: Path | None) -> dict[str, str]:
    """Return what tells the interpreter of a torch that lies elsewhere (python/mps_build_simulated.py)."""
    return {} if site is None else {"MPS_BUILD_TORCH": str(site)}


def hook_files() -> tuple[Path, ...]:
    """Return the module and the .pth that go to site-packages: they tell torch of its MPS when Python starts."""
    folder = Path(__file__).resolve().parents[1] / "python"
    return tuple(folder / f"mps_build_simulated.{suffix}" for suffix in ("py", "pth"))


def _relocate(root: Root, log: Path) -> None:
    """Let the programs find loader and libraries where they lie, and torch's bindings ours before libtorch."""
    loader, path = root.loader, os.pathsep.join(map(str, root.library_folders))
    try:
        for program in root.programs:
            target = str(program.resolve())
            # One at a time: patchelf 0.18 does both at once in a way that Python's own loader cannot map.
            for own in (("--force-rpath", "--set-rpath", path), ("--set-interpreter", str(loader))):
                run_logged(Command(argv=(*patchelf(root), *own, target)), log=log)
        for bindings in _bindings(root):
            run_logged(Command(argv=(*patchelf(root), "--add-needed", LIBRARY, str(bindings))), log=log)
        # A library with a path of its own (DT_RUNPATH) does not look on its program's: Debian's libLLVM has one, and
        # would take libz3 from the caller's system.
        for library in (*_bindings(root), *_of_the_compiler(root)):
            run_logged(Command(argv=(*patchelf(root), "--remove-rpath", str(library))), log=log)
        for program in root.programs:
            run_logged(Command(argv=(str(program), "--version")), log=log)
            listed: list[str] = []
            run_logged(Command(argv=(str(loader), "--list", str(program))), log=log, on_line=listed.append)
            if strangers := foreign_libraries(listed, root.path):
                raise BuildEnvironmentError(f"{program} would take {', '.join(strangers)} from this system")
    except CommandFailed as failure:
        raise BuildEnvironmentError(f"{failure}: {' '.join(failure.tail[-3:])}", hint=f"see {log}") from failure


def patchelf(root: Root) -> tuple[str, ...]:
    """Return how the root's patchelf is called."""
    path = os.pathsep.join(map(str, root.library_folders))
    return (str(root.loader), "--library-path", path, str(root.path / "usr/bin/patchelf"))


def foreign_libraries(listed: Iterable[str], root: Path) -> list[str]:
    """Return the libraries outside of a root that a loader's `--list` names: `NAME => PATH (ADDRESS)`.

    Raises:
        BuildEnvironmentError: it names no library at all, not even the C library.
    """
    places = [place for line in listed if (place := line.partition(" => ")[2].rpartition(" (")[0])]
    if not places:
        raise BuildEnvironmentError(f"the loader of {root} names no library of a program")
    return [place for place in places if not place.startswith(f"{root}/")]


def _of_the_compiler(root: Root) -> Iterator[Path]:
    for pattern in ("libLLVM.so.*", "libclang-cpp.so.*"):
        yield from (path for path in root.libraries.glob(pattern) if not path.is_symlink())


def _bindings(root: Root) -> Iterator[Path]:
    if not (root.packages / "torch").is_dir():
        return  # torch is built, and lies elsewhere
    found = list((root.packages / "torch").glob("_C.*.so"))
    if len(found) != 1:
        raise BuildEnvironmentError(f"{root.packages} has {len(found)} torch/_C.*.so, not one")
    yield from found
