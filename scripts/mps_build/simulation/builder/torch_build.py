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
from mps_build.wheel_build.rehearsal.linux import RELOCATABLE, debian_variables, unoptimised_variables
from mps_build.wheel_build.wide_headers import C10, TORCH_CPU, TORCH_PYTHON, exclude, wide_header_lines

from .root import LIBRARY, Root, patchelf
from .torch_tree import FLATBUFFERS, copied, is_debian_tree

# As the host code is compiled: names of templates, the macro, and no warnings, which nobody would read.
CXX_FLAGS = "-DUSE_MPS -fclang-abi-compat=17 -w -g0"
_OF_DEBIAN = {"USE_SYSTEM_LIBS", "ONNX_NAMESPACE"}
_OF_THE_BLAS = {"BLAS", "GENERIC_BLAS_LIBRARIES"}
# A file of kernels is compiled once for each kind of vectors; the plain kind is enough here.
_NO_VECTORS = {
    f"{language}_HAS_{kind}_{number}": "OFF"
    for language in ("C", "CXX")
    for kind in ("AVX", "AVX2", "AVX512")
    for number in (1, 2, 3)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchTree:
    """A copy of the user's tree, and where it is built.

    Attributes:
        is_debian: it has no third_party: the libraries are the root's.
    """

    tree: Path
    build: Path
    version: str
    is_debian: bool


def configure_words(root: Root, torch: TorchTree, overrides: Path) -> tuple[str, ...]:
    """Return the arguments of CMake."""
    llvm = root.clang.parent
    linker = f"--ld-path={root.path}/usr/lib/llvm-19/bin/ld.lld -Wl,--disable-new-dtags"
    # What is built is run: protoc, and what writes headers. It takes loader and libraries from the root.
    loader = f"-Wl,--dynamic-linker={root.loader},-rpath,{os.pathsep.join(map(str, root.library_folders))}"
    settings = {
        **{each.name: each.value for each in debian_variables() if torch.is_debian or each.name not in _OF_DEBIAN},
        **{each.name: each.value for each in unoptimised_variables()},
        **_NO_VECTORS,
        "BUILD_PYTHON": "ON",
        "BUILD_TEST": "OFF",
        "BUILD_FUNCTORCH": "OFF",
        "USE_NUMPY": "ON",
        "TORCH_BUILD_VERSION": torch.version,
        "Python_EXECUTABLE": str(root.python),
        "CMAKE_MAKE_PROGRAM": str(root.ninja),
        "CMAKE_C_COMPILER": str(root.clang),
        "CMAKE_CXX_COMPILER": str(llvm / "clang++"),
        "CMAKE_AR": str(llvm / "llvm-ar"),
        "CMAKE_RANLIB": str(llvm / "llvm-ranlib"),
        "CMAKE_C_FLAGS": "-w -g0",
        "CMAKE_CXX_FLAGS": CXX_FLAGS,
        # Nothing is taken from the caller's system, which may have the same libraries of another age.
        "CMAKE_SYSROOT": str(root.path),
        "CMAKE_FIND_ROOT_PATH": f"{root.path};{torch.tree};{torch.build}",
        # Where Debian's scripts, which nobody runs here, would choose one BLAS of several.
        "CMAKE_LIBRARY_PATH": ";".join(str(root.libraries / each) for each in ("blas", "lapack")),
        **{f"CMAKE_FIND_ROOT_PATH_MODE_{kind}": "ONLY" for kind in ("LIBRARY", "INCLUDE", "PACKAGE")},
        "CMAKE_SHARED_LINKER_FLAGS": linker,
        "CMAKE_MODULE_LINKER_FLAGS": linker,
        "CMAKE_EXE_LINKER_FLAGS": f"{linker} {loader} -Wl,--allow-shlib-undefined",
        "CMAKE_INSTALL_PREFIX": str(torch.tree / "torch"),
        "CMAKE_PROJECT_Torch_INCLUDE": str(overrides),
    }
    words = ("-G", "Ninja", "-S", str(torch.tree), "-B", str(torch.build))
    return (str(root.path / "usr/bin/cmake"), *words, *(f"-D{name}={value}" for name, value in settings.items()))


def environment(torch: TorchTree) -> dict[str, str]:
    """Return the variables that configuring and compiling see: nothing of the caller's decides what is built."""
    own = {each.name: each.value for each in debian_variables() if each.name in _OF_THE_BLAS}  # CMake asks them here
    # CMake looks in the root for what stands above the folders of PATH: /usr before the link /bin.
    fixed = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": os.environ.get("HOME", "/")}
    version = {"PYTORCH_BUILD_VERSION": torch.version, "PYTORCH_BUILD_NUMBER": "1"}
    return {**fixed, **own, **version, "NINJA_STATUS": "[%f/%t] "}


def override_lines(folder: Path) -> str:
    """Return the CMake lines: rpaths, and headers read once, which are written to `folder`."""
    return RELOCATABLE + wide_header_lines((C10, TORCH_CPU, TORCH_PYTHON), folder)


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
