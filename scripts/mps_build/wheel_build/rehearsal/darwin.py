"""A release configured as for macOS arm64, MPS on, with zig and a stub SDK; its C++ compiled to Mach-O."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from mps_build.common.environment import Toolchain, fetch_environ
from mps_build.common.errors import BuildEnvironmentError, CompileError
from mps_build.common.files import write_whole
from mps_build.common.process import Command, CommandFailed, beside, capture, run_logged
from mps_build.common.receipts import Ledger, Receipt, StepResult
from mps_build.common.recipe.locks import lock_text
from mps_build.common.recipe.model import Recipe, Variable
from mps_build.common.wheels.pip_call import limited_pip, run_pip
from mps_build.common.workspace import cache_folder

from ..backend import build_folder
from ..wide_headers import C10, TORCH_CPU, wide_header_lines
from .chroot import Chroot, check_host
from .darwin_sdk import DarwinSdk, stub_sources, write_sdk
from .linux import debian_variables, overlaid, unoptimised_variables
from .session import Prepared, Rehearsal, Unit, draw, macho_kind, read_units, rehearsal_folder
from .source import debian_place, debian_root, debian_tree

# setup.py's own Darwin branches look at the host; CMake gets its target from the settings below.
_OF_THE_HOST = frozenset({"_PYTHON_HOST_PLATFORM", "ARCHFLAGS", "MACOSX_DEPLOYMENT_TARGET"})
# A string needs both archives: libc++ and libc++abi.
PROBE = "#include <string>\nstd::string probe() { return std::to_string(1.0); }\n"


def rehearse_darwin(rehearsal: Rehearsal, *, count: int, seed: int, mirror: str | None) -> None:
    """Run the rehearsal as far as a stub SDK carries: configure and gate, c10 linked, C++ files compiled."""
    console, workspace = rehearsal.console, rehearsal.workspace
    check_host(rehearsal_folder())
    with console.step("zig"):
        zig = zig_program(rehearsal)
    with libcxx_ahead(zig, folder=workspace.root / "darwin", target=rehearsal.recipe.deployment_target):
        with console.step("Debian root"):
            chroot = debian_root(rehearsal, mirror=mirror)
            place = debian_place(rehearsal, chroot)
        with console.step("Source and patches"):
            tree, source = debian_tree(rehearsal, chroot)
    with console.step("Stub SDK"):
        sdk = _sdk(rehearsal, chroot, zig=zig)
        seen = replace(chroot, placed=(*chroot.placed, (sdk.system, Path("/System"))))
        place = replace(place, name=f"{place.name} with a stub SDK", wrap=seen.inside)
    with console.step("Environment"):
        recipe = darwin_recipe(rehearsal.recipe, sdk)
        ready = rehearsal.environment(recipe, tree, source, place=place, toolchain=zig_toolchain(sdk))
    with console.step("Configure"):
        receipt = rehearsal.configure(ready, lines=wide_header_lines((C10, TORCH_CPU), workspace.root))
        facts = receipt.facts["configure"]
        rehearsal.note(
            "configure for macOS arm64",
            f"USE_MPS ON with SDK {facts['sdk_version']} (a stub), Metal kernels {facts['metal_kind']}",
            "the real CMakeLists turn MPS on when an SDK and its frameworks answer; not what Apple's SDK says",
            receipt,
        )
    with console.step(f"c10 and {count} files of torch_cpu, seed {seed}"):
        build = build_folder(ready.recipe.backend, source=ready.tree.root, build=workspace.build)
        units = read_units(build)
        drawn = draw(units, targets=("torch_cpu",), count=count, seed=seed)
        # At once: no core waits while generated code or a precompiled header is made.
        what = ["c10", *(unit.object for unit in drawn)]
        receipt = rehearsal.compile(ready, what, what="c10 and drawn files", log="compile_drawn")
        console.done()
        _judge_c10(rehearsal, ready, sdk, build, files=sum(unit.target == "c10" for unit in units), receipt=receipt)
        _judge_drawn(rehearsal, build, drawn, seed=seed)
    with console.step("Patched files"):
        rehearsal.compile_patched(ready)


def _sdk(rehearsal: Rehearsal, chroot: Chroot, *, zig: Path) -> DarwinSdk:
    """Return the stub SDK with zig as its compiler, and arm64 fakes of the system's libraries."""
    folder = rehearsal.workspace.root / "darwin"
    target = rehearsal.recipe.deployment_target
    # Written each time (a second); only what a compiler must make is under a receipt.
    sdk = write_sdk(folder, root=chroot.root, zig=zig, cache=zig_cache(), target=target)
    sources = stub_sources(sdk)

    def run() -> StepResult:
        rehearsal.console.started("Stub libraries")
        for library, source in sources.items():
            argv = (str(sdk.tools / "cc"), "-shared", "-O1", "-o", str(library), str(source))
            run_in_root(rehearsal, chroot, (*argv, f"-Wl,-install_name,@rpath/{library.name}"))
        probe = folder / "probe.cpp"
        probe.write_text(PROBE, encoding="utf-8")
        run_in_root(
            rehearsal, chroot, (str(sdk.tools / "c++"), "-shared", "-o", str(folder / "probe.dylib"), str(probe))
        )
        return StepResult(files=tuple(sources))

    inputs = {"zig": str(zig), "target": target, "sources": [path.read_text() for path in sources.values()]}
    rehearsal.ledger.run("stub_libraries", version=1, inputs=inputs, action=run)
    rehearsal.console.done()
    return sdk


def _judge_c10(
    rehearsal: Rehearsal, ready: Prepared, sdk: DarwinSdk, build: Path, *, files: int, receipt: Receipt
) -> None:
    """Ask LLVM, which wrote none of it, what c10 became."""
    library = next(iter(sorted((build / "lib").glob("libc10*.dylib"))), None)
    if library is None or macho_kind(library.resolve()) != "dylib":
        raise CompileError(f"c10 ended without an error, but left no arm64 dylib in {build / 'lib'}")
    argv = (str(sdk.tools / "objdump"), "--macho", "--private-headers", str(library))
    printed = capture(ready.wrap(Command(argv=argv, environ=ready.environ)), timeout_seconds=60)
    minimum = re.search(r"^\s*minos (\S+)", printed.stdout, re.MULTILINE)
    if not printed.ok or not minimum:
        raise CompileError(f"llvm-objdump cannot read {library.name}: {printed.stderr.strip() or printed.exit}")
    weak = printed.stdout.count("LC_LOAD_WEAK_DYLIB")
    rehearsal.note(
        "c10",
        f"{files} files compiled, {library.resolve().name} linked: arm64 Mach-O, minos {minimum[1]}, "
        f"{weak} weak frameworks",
        "c10 compiles for macOS arm64; it was never loaded on a Mac",
        receipt,
    )


def _judge_drawn(rehearsal: Rehearsal, build: Path, units: Sequence[Unit], *, seed: int) -> None:
    """Look at each object of the seeded draw of torch_cpu's C++."""
    wrong = [unit.object for unit in units if not _is_object(build, unit)]
    if wrong:
        raise CompileError(f"{len(wrong)} of the objects are not arm64 Mach-O: {', '.join(wrong[:5])}")
    rehearsal.note(
        "torch_cpu",
        f"{len(units)} C++ files (seed {seed}) compiled to arm64 Mach-O, with the wide precompiled header",
        "the C++ of this release compiles for macOS arm64; not its Objective-C++, not Metal",
    )


def _is_object(build: Path, unit: Unit) -> bool:
    path = build / unit.object
    return path.is_file() and macho_kind(path) == "object"


def run_in_root(rehearsal: Rehearsal, chroot: Chroot, argv: tuple[str, ...]) -> None:
    """Run a program in the Debian root; its output goes to the log `sdk`.

    Raises:
        BuildEnvironmentError: it fails; with its last lines.
    """
    environ = fetch_environ(os.environ)
    try:
        run_logged(
            chroot.inside(Command(argv=argv, cwd=rehearsal.workspace.root, environ=environ)), log=rehearsal.log("sdk")
        )
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        raise BuildEnvironmentError(
            f"{failure.command.argv[-1]}: {text}", hint=f"the whole output is in {failure.log}"
        ) from failure


# A macOS recipe configured for macOS arm64 on Linux: what the stub SDK makes of its environment and gate.


def darwin_recipe(recipe: Recipe, sdk: DarwinSdk) -> Recipe:
    """Return the recipe with an environment that CMake reads as a Mac's, and the gate as it is but for OpenMP."""
    kept = tuple(variable for variable in recipe.environment if variable.name not in _OF_THE_HOST)
    compilers = {f"CMAKE_{language}_COMPILER": str(sdk.tools / "cc") for language in ("C", "OBJC")}
    compilers |= {f"CMAKE_{language}_COMPILER": str(sdk.tools / "c++") for language in ("CXX", "OBJCXX")}
    rows = {
        "CMAKE_SYSTEM_NAME": ("Darwin", "the system that is built for"),
        "CMAKE_SYSTEM_PROCESSOR": ("arm64", "its processor"),
        # CMAKE_OSX_ARCHITECTURES stays unset, as on a Mac: with it the tree wants to build its own protoc
        # (CMakeLists.txt:791-823 of 2.6.0).
        "CMAKE_OSX_SYSROOT": (str(sdk.sdk), "the stub SDK"),
        "CMAKE_OSX_DEPLOYMENT_TARGET": (recipe.deployment_target, "the recipe's"),
        "CMAKE_PREFIX_PATH": (f"{sdk.stubs};/usr", "arm64 fakes before the host's libraries"),
        "fmt_ROOT": ("/usr/lib/x86_64-linux-gnu/cmake/fmt", "a Darwin target does not look there by itself"),
    }
    own = [Variable(name=name, value=value, reason=why) for name, (value, why) in rows.items()]
    own += [Variable(name=name, value=value, reason="zig, for macOS arm64") for name, value in compilers.items()]
    # BLAS is Accelerate here, as on a Mac.
    system = [variable for variable in debian_variables() if "BLAS" not in variable.name]
    gate = recipe.gate.model_copy(update={"openmp": False})
    return recipe.model_copy(
        update={"environment": overlaid(kept, (*system, *unoptimised_variables(), *own)), "gate": gate}
    )


def zig_toolchain(sdk: DarwinSdk) -> Toolchain:
    """Return zig by its wrappers; xcrun and the LLVM tools by PATH."""
    return Toolchain(name="zig", path=(str(sdk.tools),))


# zig for a rehearsal: installed from PyPI, its libc++ built beside other work.


def zig_cache() -> Path:
    """Return the folder where zig keeps what it builds; all rehearsals share it."""
    return cache_folder() / "zig"


def zig_program(rehearsal: Rehearsal) -> Path:
    """Return zig from PyPI, the one that the sample's lock names; a static program, the same inside a Debian root.

    Raises:
        BuildEnvironmentError: the lock names none, or pip cannot install it.
    """
    lines = package_lines(lock_text("sample.txt"), "ziglang")
    # One folder a version, its receipt beside it: rehearsals share it, and a newer lock disturbs none that runs.
    home = cache_folder() / "ziglang" / lines.split()[0].partition("==")[2]
    zig = home / "site" / "ziglang" / "zig"

    def install() -> StepResult:
        rehearsal.console.started("Install zig")
        requirements = rehearsal.workspace.root / "zig-requirements.txt"
        requirements.parent.mkdir(parents=True, exist_ok=True)
        write_whole(requirements, lines)
        python = rehearsal_folder() / "pip" / "venv" / "bin" / "python"
        pip = (*limited_pip(python), "install", "-q", "--no-input", "--no-deps", "--require-hashes", "--upgrade")
        argv = (*pip, "--target", str(home / "site"), "-r", str(requirements))
        log = rehearsal.log("sdk")
        try:
            run_pip(Command(argv=argv, environ=fetch_environ(os.environ)), log=log, tell=rehearsal.console.line)
        except CommandFailed as failure:
            text = "\n".join(failure.tail[-6:])
            raise BuildEnvironmentError(f"no zig: {text}", hint=f"the whole output is in {log}") from failure
        rehearsal.console.done()
        return StepResult(files=(zig,))

    Ledger(home / "receipts").run("zig", version=1, inputs={"lock": lines}, action=install)
    return zig


def libcxx_ahead(zig: Path, *, folder: Path, target: str) -> AbstractContextManager[None]:
    """Let zig build its libc++ for this macOS beside a block: one core for two minutes, the first time.

    It fills zig's cache and decides nothing: who needs libc++ asks zig again.
    """
    probe = folder / "ahead.cpp"
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(probe, PROBE)
    argv = (str(zig), "c++", "-target", f"aarch64-macos.{target}", "-shared", str(probe), "-o", f"{probe}.dylib")
    cache = str(zig_cache())
    environ = {**fetch_environ(os.environ), "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": f"{cache}/local"}
    return beside(Command(argv=argv, environ=environ))


def package_lines(lock: str, name: str) -> str:
    r"""Return the lines of a lock that name one package, hashes included.

    >>> package_lines("a==1 \\\n  --hash=sha256:00\nziglang==0.1 \\\n  --hash=sha256:11\n", "ziglang")
    'ziglang==0.1   --hash=sha256:11\n'

    Raises:
        BuildEnvironmentError: the lock does not name it.
    """
    kept = [line for line in lock.replace("\\\n", "").splitlines() if line.startswith(f"{name}==")]
    if not kept:
        raise BuildEnvironmentError(f"the sample's lock names no {name}", hint="nox -s dev -- lock sample")
    return "".join(f"{line.replace('    ', ' ')}\n" for line in kept)
