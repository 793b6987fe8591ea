"""A release configured as for macOS arm64, MPS on, with zig and a stub SDK; its C++ compiled to Mach-O."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...common.environment import fetch_environ
from ...common.errors import BuildEnvironmentError, CompileError
from ...common.process import Command, CommandFailed, capture, run_logged
from ...common.receipts import Receipt, StepResult
from ..backend import build_folder
from ..wide_headers import C10, TORCH_CPU, wide_header_lines
from .chroot import Chroot, check_host
from .darwin_recipe import darwin_recipe, zig_toolchain
from .darwin_sdk import DarwinSdk, stub_sources, write_sdk
from .objects import Unit, draw, macho_kind, read_units
from .session import Prepared, Rehearsal, rehearsal_folder
from .source import debian_place, debian_root, debian_tree
from .zig import PROBE, libcxx_ahead, zig_cache, zig_program


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
    """Return the stub SDK with zig as its compiler, and arm64 stand-ins of the system's libraries."""
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
