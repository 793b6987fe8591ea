"""A release built whole for macOS arm64 on Linux, by the pipeline's own steps: source to audited wheel."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError, DiskFull, GateError, SourceError
from mps_build.common.files import write_whole
from mps_build.common.process import Command, capture
from mps_build.common.receipts import Receipt, StepResult, digest_of
from mps_build.common.recipe.model import Recipe, Variable
from mps_build.common.workspace import cache_folder

from ...artifacts import SourceTree
from ...build_request import gate_of
from ...compiler_cache.launcher import launchers
from ...objc import write_frameworks
from ...objc.stubs import imports_of
from ...steps.create_environment import provide_libomp
from ...wide_headers import C10, TORCH_CPU, TORCH_PYTHON, wide_header_lines
from ..chroot import Chroot, check_host
from ..darwin import darwin_recipe, libcxx_ahead, run_in_root, zig_cache, zig_program, zig_toolchain
from ..darwin_sdk import ACCELERATE_PROBES, DarwinSdk, stub_sources, write_sdk
from ..linux import overlaid
from ..session import Place, Prepared, Rehearsal, rehearsal_folder
from ..source import debian_place, debian_root, debian_tree
from .toolchain import (
    RUNTIME,
    WholeToolchain,
    compiler_digest,
    write_darwin_python,
    write_mac_tools,
    write_system_stubs,
    write_toolchain,
)

SDK_VERSION = "14.5"
_ROOM, _ROOM_TO_GO_ON = 12_000_000_000, 3_000_000_000
LABEL = "rehearsal.linux"
_UNOPTIMISED = "-O0 -g0 -DNDEBUG"
# Darwin's own number is macOS's less 9 up to macOS 15 (Darwin 24).
_DARWIN_BEHIND_MACOS = 9

# Debian gives libraries versions and blanks their rpaths; the official ones have one name and look beside themselves.
RELOCATABLE = """\
set(HAVE_SOVERSION OFF CACHE BOOL "one copy of each library in the wheel" FORCE)
# Not `-Xpreprocessor -fopenmp`, CMake's way for Apple's clang: ccache (4.11.2) takes both words away.
set(OpenMP_C_FLAGS "{openmp}" CACHE STRING "the declared one's header" FORCE)
set(OpenMP_CXX_FLAGS "{openmp}" CACHE STRING "the declared one's header" FORCE)
set(OpenMP_C_LIB_NAMES libomp CACHE STRING "" FORCE)
set(OpenMP_CXX_LIB_NAMES libomp CACHE STRING "" FORCE)
set(OpenMP_libomp_LIBRARY "{libomp}" CACHE STRING "the declared one" FORCE)
function(mps_build_relocatable)
  foreach(each IN ITEMS torch_python shm nnapi_backend torch_global_deps torch torch_cpu c10)
    if(TARGET ${{each}})
      get_target_property(imported ${{each}} IMPORTED)
      if(NOT imported)
        set_target_properties(${{each}} PROPERTIES INSTALL_RPATH "@loader_path" INSTALL_RPATH_USE_LINK_PATH OFF)
      endif()
    endif()
  endforeach()
  if(TARGET torch_cpu)
    # setup.py looks along the rpaths for libomp, puts it beside the libraries and removes the folder's rpath.
    set_property(TARGET torch_cpu APPEND PROPERTY INSTALL_RPATH "{libomp_folder}")
    # Apple's Foundation brings both along; the stub has its own names only.
    target_link_options(torch_cpu PRIVATE "-Wl,-weak-lobjc" "SHELL:-framework CoreFoundation")
  endif()
  # At -O0 the names that this one registers are made before another call, where the audit's reader cannot see them.
  if(TARGET torch_cpu)
    set_property(SOURCE "${{CMAKE_SOURCE_DIR}}/aten/src/ATen/mps/MPSFallback.mm" TARGET_DIRECTORY torch_cpu
      APPEND PROPERTY COMPILE_OPTIONS "-O1")
  endif()
endfunction()
cmake_language(DEFER DIRECTORY "${{CMAKE_SOURCE_DIR}}" CALL mps_build_relocatable)
"""


def prepare_whole(rehearsal: Rehearsal, *, mirror: str | None, cache: bool = False) -> tuple[Prepared, WholeToolchain]:
    """Return the configured tree of a whole rehearsal, and its compilers: root, source, stub SDK, environment, gate.

    Args:
        cache: whether ccache stands before the compilers.
    """
    console, root = rehearsal.console, rehearsal.workspace.root
    check_room(root, free=shutil.disk_usage(root).free, has_begun=(root / "source" / "build" / "build.ninja").is_file())
    check_host(rehearsal_folder())
    with console.step("zig"):
        zig = zig_program(rehearsal)
        compiler = compiler_digest(zig.parents[2].name)
    with libcxx_ahead(zig, folder=root / "darwin", target=rehearsal.recipe.deployment_target):
        with console.step("Debian root"):
            chroot = debian_root(rehearsal, mirror=mirror)
            place = debian_place(rehearsal, chroot)
        with console.step("Source and patches"):
            tree, source = debian_tree(rehearsal, chroot)
            _take_back_version(tree)
            _list_source(rehearsal, tree, source)
    with console.step("Stub SDK"):
        libomp = _libomp(rehearsal)
        whole, stubs = _toolchain(rehearsal, chroot, place, tree, zig=zig)
        seen = replace(chroot, placed=(*chroot.placed, (whole.sdk.system, Path("/System"))))
        place = replace(place, name=f"{place.name} with a stub SDK", wrap=seen.inside)
    with console.step("Environment"):
        recipe = whole_recipe(rehearsal.recipe, whole.sdk, libomp=libomp)
        ready = rehearsal.environment(recipe, tree, source, place=place, toolchain=zig_toolchain(whole.sdk))
        environ = {**ready.environ, "PYTORCH_BUILD_VERSION": rehearsal_version(recipe.version)}
        if cache:
            environ |= cache_variables(Path("/usr/bin/ccache"), store=cache_folder() / "ccache", compiler=compiler)
        ready = with_digest_of(replace(ready, environ=environ), stubs=stubs, compiler=compiler)
    with console.step("Configure"):
        lines = relocatable_lines(libomp) + wide_header_lines(
            (C10, TORCH_CPU, TORCH_PYTHON), rehearsal.workspace.root / "wide_headers"
        )
        receipt = rehearsal.configure(ready, lines=lines)
        _note_configure(rehearsal, receipt)
    return ready, whole


def check_room(folder: Path, *, free: int, has_begun: bool) -> None:
    """Refuse a disk that cannot hold what is still to be made.

    Args:
        free: bytes. has_begun: objects are there already, from an earlier run.

    Raises:
        DiskFull: naming the folder.
    """
    needed = _ROOM_TO_GO_ON if has_begun else _ROOM
    if free < needed:
        raise DiskFull(
            f"{folder} has {free / 1e9:.1f} GB free, the whole build {'goes on with' if has_begun else 'takes'} "
            f"{needed / 1e9:.0f} GB",
            hint="free some space, or set MPS_BUILD_WORK to a folder on another disk; what is made already is kept",
        )


def source_list(rehearsal: Rehearsal) -> Path:
    """Return the file that names what the tree held before anything was built in it."""
    return rehearsal.workspace.root / "source-files.txt"


def _list_source(rehearsal: Rehearsal, tree: SourceTree, source: str) -> None:
    listed = source_list(rehearsal)

    def write_list() -> StepResult:
        list_files(tree.root, listed)
        return StepResult(files=(listed,))

    rehearsal.ledger.run("list_files", version=1, inputs={"source": source}, action=write_list)


def packing(rehearsal: Rehearsal, ready: Prepared, whole: WholeToolchain) -> Prepared:
    """Return the same tree with the environment in which setup.py takes this host for a Mac."""
    folder, target = whole.sdk.folder / "python", rehearsal.recipe.deployment_target
    variables = write_darwin_python(
        folder,
        tools=whole.sdk.tools,
        target=target,
        darwin=darwin_number(target),
        system=whole.sdk.system,
        macos=SDK_VERSION,
    )
    path = os.pathsep.join([str(folder), ready.environ["PYTHONPATH"]])
    return replace(ready, environ={**ready.environ, **variables, "PYTHONPATH": path})


def _note_configure(rehearsal: Rehearsal, receipt: Receipt) -> None:
    facts = receipt.facts["configure"]
    check_lapack(facts)
    rehearsal.note(
        "configure for macOS arm64",
        f"USE_MPS ON with SDK {facts['sdk_version']} (a stub), shaders as source, OpenMP {facts['openmp']}, "
        f"LAPACK {facts['lapack']}",
        "the real CMakeLists turn MPS on when an SDK and its frameworks answer; not what Apple's SDK says",
        receipt,
    )


def with_digest_of(ready: Prepared, *, stubs: Receipt, compiler: str) -> Prepared:
    """Return the tree with the digest of what its configure asks: other stubs or compilers, a fresh build folder.

    Args:
        stubs: of the stub SDK's libraries. compiler: what identifies the compiler and its flags.
    """
    return replace(ready, digest=digest_of([ready.digest, stubs.digest, compiler]))


def check_lapack(facts: Mapping[str, Any]) -> None:
    """Refuse a configure without LAPACK: every official macOS wheel has Accelerate's.

    Raises:
        GateError: its summary does not say that LAPACK is on.
    """
    if facts["lapack"] is not True:
        raise GateError(
            "configure found no LAPACK in the stub of Accelerate",
            hint="a name that cmake/Modules/FindLAPACK.cmake probes is missing in wheel_build/rehearsal/darwin_sdk.py",
        )


def _take_back_version(tree: SourceTree) -> None:
    """Undo Debian's patch that fixes the version: the wheel is marked by the release's own variable."""
    patch = tree.root / "debian/patches/2000-version.patch"
    text = (tree.root / "tools/generate_torch_version.py").read_text(encoding="utf-8")
    if not patch.is_file() or "PYTORCH_BUILD_VERSION" in text:
        return
    argv = ("patch", "-R", "-p1", "--batch", "-d", str(tree.root), "-i", str(patch))
    done = capture(Command(argv=argv))
    if not done.ok:
        reason = done.stdout.strip() or done.stderr.strip()
        raise SourceError(f"{patch.name} of Debian cannot be taken back: {reason}", hint="apt-get install patch")


def _libomp(rehearsal: Rehearsal) -> Path:
    """Return the folder with the recipe's declared libomp and its header."""
    libomp, folder = rehearsal.recipe.libomp, rehearsal.workspace.root / "libomp"
    if libomp is None:
        return folder

    def provide() -> StepResult:
        provide_libomp(
            libomp,
            python=rehearsal_folder() / "pip" / "venv" / "bin" / "python",
            destination=folder,
            cache=cache_folder(),
            environ=fetch_environ(os.environ),
            log=rehearsal.log("provide_libomp"),
            offline=False,
            reporter=rehearsal.console,
        )
        return StepResult(files=(folder / "lib" / "libomp.dylib", folder / "include" / "omp.h"))

    rehearsal.ledger.run("provide_libomp", version=1, inputs=libomp.model_dump(), action=provide)
    return folder


def _toolchain(
    rehearsal: Rehearsal, chroot: Chroot, place: Place, tree: SourceTree, *, zig: Path
) -> tuple[WholeToolchain, Receipt]:
    """Return the stub SDK with compilers that compile by zig and link by LLD, and the receipt of its libraries."""
    folder, cache = rehearsal.workspace.root / "darwin", zig_cache()
    target, llvm = rehearsal.recipe.deployment_target, llvm_folder(chroot)
    sdk = write_sdk(
        folder,
        root=chroot.root,
        zig=zig,
        cache=cache,
        target=target,
        version=SDK_VERSION,
        has_metal=False,
        with_stubs=False,
    )
    declared = write_frameworks(folder / "objc", sdk=SDK_VERSION)
    whole = WholeToolchain(sdk=sdk, objc=declared.flags, runtime=folder / "libruntime.a", llvm=llvm)
    sources = stub_sources(sdk)
    libraries = {library.with_suffix(".a"): source for library, source in sources.items()}

    def make() -> StepResult:
        rehearsal.console.started("Stub libraries")
        made = write_system_stubs(rehearsal, chroot, whole, zig=zig, cache=cache)
        for library, source in libraries.items():
            compiled = source.with_suffix(".o")
            run_in_root(rehearsal, chroot, (str(sdk.tools / "cc"), "-c", "-O1", "-o", str(compiled), str(source)))
            run_in_root(rehearsal, chroot, (str(sdk.tools / "ar"), "rcs", str(library), str(compiled)))
        # Not the archives: fakes take their place once it is known what is wanted of them.
        return StepResult(files=(*(source.with_suffix(".o") for source in libraries.values()), *made))

    write_toolchain(
        whole,
        zig=zig,
        cache=cache,
        target=target,
        sdk_version=SDK_VERSION,
        source=tree.root,
        python_include=Path(f"/usr/include/python{place.python}"),
    )
    write_mac_tools(sdk.tools, llvm=whole.llvm, macos=SDK_VERSION)
    inputs = {
        "zig": str(zig),
        "target": target,
        "sources": [path.read_text(encoding="utf-8") for path in sources.values()],
        "imports": digest_of(imports_of(rehearsal.recipe.version)),
        "probes": list(ACCELERATE_PROBES),
        "runtime": RUNTIME.read_text(encoding="utf-8"),
    }
    receipt = rehearsal.ledger.run("stub_archives", version=1, inputs=inputs, action=make)
    rehearsal.console.done()
    return whole, receipt


def llvm_folder(chroot: Chroot) -> Path:
    """Return LLVM's folder of programs, as seen inside.

    Raises:
        BuildEnvironmentError: clang or its linker for Mach-O is missing in the root.
    """
    for folder in sorted(chroot.root.glob("usr/lib/llvm-*/bin"), reverse=True):
        if (folder / "clang").exists() and (folder / "ld64.lld").exists():
            return Path("/") / folder.relative_to(chroot.root)
    raise BuildEnvironmentError(
        f"the Debian root {chroot.root} has no clang with ld64.lld",
        hint="remove its receipts folder beside it, and the packages are installed again",
    )


# A macOS recipe as the whole rehearsal builds it: shaders as source, OpenMP on, what Debian's tree lacks off.


def rehearsal_version(version: str) -> str:
    """Return the version of a wheel that never saw a Mac.

    >>> rehearsal_version("2.6.0")
    '2.6.0+rehearsal.linux'
    """
    return f"{version}+{LABEL}"


def darwin_number(macos: str) -> str:
    """Return the version of Darwin below a macOS release: CMake asks for it where it compiles for another system.

    >>> darwin_number("13.0")
    '22.0.0'
    """
    return f"{int(macos.split('.', maxsplit=1)[0]) + _DARWIN_BEHIND_MACOS}.0.0"


def relocatable_lines(libomp: Path) -> str:
    """Return the CMake lines for libraries of one name with relative rpaths, and for the declared OpenMP."""
    folder = libomp / "lib"
    return RELOCATABLE.format(
        openmp=f"-fopenmp=libomp -I{libomp / 'include'}", libomp=folder / "libomp.dylib", libomp_folder=folder
    )


def whole_recipe(recipe: Recipe, sdk: DarwinSdk, *, libomp: Path) -> Recipe:
    """Return the recipe with the environment and the gate of a whole build on Linux.

    The gate is the recipe's with shaders as source (`--allow-jit-shaders`): no Metal compiler is to be had here.
    """
    plain = darwin_recipe(recipe, sdk)
    flags = {f"CMAKE_{language}_FLAGS_MINSIZEREL": _UNOPTIMISED for language in ("C", "CXX", "OBJC", "OBJCXX")}
    rows: Mapping[str, tuple[str, str]] = {
        **{name: (value, "compiled to be compared, not measured") for name, value in flags.items()},
        "CMAKE_SYSTEM_VERSION": (darwin_number(recipe.deployment_target), "without it CMake has no rpaths for Darwin"),
        # On a Mac FindBLAS runs a program to learn this of Accelerate; in a cross build it asks this variable.
        "PYTORCH_BLAS_USE_CBLAS_DOT": ("ON", "Accelerate's dot products are called by their C names, as on a Mac"),
        "USE_OPENMP": ("1" if recipe.gate.openmp else "0", "the recipe's; libomp is the declared one"),
        "CMAKE_PREFIX_PATH": (f"{libomp};{sdk.stubs};/usr", "arm64 fakes before the host's libraries"),
    }
    own = [Variable(name=name, value=value, reason=why) for name, (value, why) in rows.items()]
    gate = gate_of(recipe.gate, allow_jit_shaders=True, without_metal4=True)
    return recipe.model_copy(update={"environment": overlaid(plain.environment, own), "gate": gate})


def cache_variables(launcher: Path, *, store: Path, compiler: str) -> dict[str, str]:
    """Return how ccache stands before zig: of one checkout, since a precompiled header names its own folder.

    Args:
        compiler: what identifies the compiler; the program that CMake calls is a script.
    """
    return {
        **launchers(launcher),
        "CCACHE_DIR": str(store),
        "CCACHE_BASEDIR": "",
        "CCACHE_SLOPPINESS": "pch_defines,time_macros",
        "CCACHE_COMPILERTYPE": "clang",
        "CCACHE_COMPILERCHECK": f"string:{compiler}",
        "CCACHE_DEPEND": "1",
    }


# Whether a source file was edited: names and times of the files that the tree had before anything was built in it.


def list_files(root: Path, destination: Path) -> None:
    """Write the names of all files below `root`, one a line, to `destination`."""
    names = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in ("build", "__pycache__", ".git"))
        names += [str((Path(folder) / name).relative_to(root)) for name in sorted(files) if name[0] != "."]
    write_whole(destination, "".join(f"{name}\n" for name in names))


def files_state(root: Path, listed: Path) -> str:
    """Return a digest of size and time of each listed file; another one means that something was edited.

    A file that is gone counts as edited.
    """
    rows = []
    for name in listed.read_text(encoding="utf-8").splitlines():
        try:
            status = (root / name).stat()
        except OSError:
            rows.append([name, -1, -1])
        else:
            rows.append([name, status.st_size, status.st_mtime_ns])
    return digest_of(rows)
