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
from mps_build.common.process import Command, capture
from mps_build.common.receipts import Receipt, StepResult, digest_of
from mps_build.common.workspace import cache_folder

from ...artifacts import SourceTree
from ...objc import write_frameworks
from ...objc.stubs import imports_of
from ...steps.create_environment import provide_libomp
from ...wide_headers import C10, TORCH_CPU, TORCH_PYTHON, wide_header_lines
from ..chroot import Chroot, check_host
from ..darwin import run_in_root
from ..darwin_recipe import zig_toolchain
from ..darwin_sdk import ACCELERATE_PROBES, stub_sources, write_sdk
from ..session import Place, Prepared, Rehearsal, rehearsal_folder
from ..source import debian_place, debian_root, debian_tree
from ..zig import libcxx_ahead, zig_cache, zig_program
from .darwin_python import write_darwin_python
from .mac_tools import write_mac_tools
from .recipe import cache_variables, darwin_number, rehearsal_version, relocatable_lines, whole_recipe
from .source_files import list_files
from .system_stubs import RUNTIME, write_system_stubs
from .toolchain import WholeToolchain, compiler_digest, write_toolchain

SDK_VERSION = "14.5"
_ROOM, _ROOM_TO_GO_ON = 12_000_000_000, 3_000_000_000


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
        ready = asking(replace(ready, environ=environ), stubs=stubs, compiler=compiler)
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


def asking(ready: Prepared, *, stubs: Receipt, compiler: str) -> Prepared:
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
        # Not the archives: stand-ins take their place once it is known what is wanted of them.
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
