"""What a second Python costs in a tree that has one built: CPU seconds of its bindings over a whole first build.

    nox -s rehearse -- v2.6.0 --wheel                  (the first Python, Debian's 3.13: once)
    nox -s benchmark -- second_python --interpreter ~/.pyenv/versions/3.12.1/bin/python3.12 [--units 24 --seed 1]

Both Pythons build in one folder, as `build_wheel --python 3.13,3.12` does: configure forgets the first interpreter and
nothing else. The tree is upstream's split build, so the bindings are compiled and libtorch is Debian's; what compiling
libtorch costs comes from a recorded whole build (--first-cpu). The wheel made must hold the second Python's modules
and compute. With --units N only a seeded draw of the bindings' files is compiled, and the sum is scaled to all of
them; what linking and packing cost is then taken from a record too, and no wheel comes out. The tree is left
configured for the second Python: another `rehearse --wheel` configures it again.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.cores import usable_cores
from mps_build.common.errors import CompileError, MpsBuildError, SourceError
from mps_build.common.process import Command, CommandFailed, capture, run_logged
from mps_build.common.receipts import Ledger
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.workspace import remove_tree
from mps_build.host.triage.tools.ninja import parse_ninja
from mps_build.wheel_build.artifacts import SourceTree
from mps_build.wheel_build.backend import build_folder
from mps_build.wheel_build.rehearsal.chroot import inner_environ
from mps_build.wheel_build.rehearsal.debian_source import changelog_epoch
from mps_build.wheel_build.rehearsal.linux import RELOCATABLE, clang_toolchain, linux_recipe, overlaid, split_variables
from mps_build.wheel_build.rehearsal.session import Place, Prepared, Rehearsal, draw, read_units
from mps_build.wheel_build.rehearsal.source import debian_root
from mps_build.wheel_build.steps import configure as configuring
from mps_build.wheel_build.steps.compile_wheel import build_command, compile_wheel
from mps_build.wheel_build.wide_headers import TORCH_PYTHON, wide_header_lines
from shared.record import record

ROOT = Path(__file__).resolve().parents[2]

# A whole build of 2.6.0 on two cores: 1243 edges (torch_cpu 970 files, torch_python 150, c10 88), clang 19 at -O0 with
# the wide headers, as the bindings here; from ninja's edge times. A cheaper first build would make the ratio worse:
# this is the cheapest that is on record.
FIRST_CPU_SECONDS = 5400.0
# Of the same record: all links of a build (21 s of two lanes, some of it five files) and packing the wheel (31).
LINK_AND_PACK_CPU_SECONDS = 60.0
SMOKE = ROOT / "scripts" / "mps_build" / "wheel_build" / "rehearsal" / "smoke.py"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interpreter", type=Path, required=True, help="the second Python, in a folder of its own")
    parser.add_argument("--release", default="v2.6.0")
    parser.add_argument("--first-cpu", type=float, default=FIRST_CPU_SECONDS, help="CPU seconds of a whole first build")
    parser.add_argument("--units", type=int, default=0, help="compile so many files only, and scale (0: all, and pack)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=usable_cores())
    arguments = parser.parse_args(argv)
    try:
        run(arguments, Console())
    except MpsBuildError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    return 0


def run(arguments: argparse.Namespace, console: Console) -> None:
    rehearsal = Rehearsal(find_recipe(arguments.release), mode="wheel", jobs=arguments.jobs, console=console)
    # Receipts of its own: the first Python's stay as they are.
    rehearsal.ledger = Ledger(rehearsal.workspace.root / "second-python-receipts")
    with rehearsal.workspace.held():
        ready = prepare(rehearsal, arguments.interpreter)
        build = build_folder("setuptools", source=ready.tree.root, build=rehearsal.workspace.build)
        with console.step("Configure"):
            configured = cpu_of(lambda: configure(rehearsal, ready, build))
        if arguments.units:
            with console.step("Compile a draw"):
                compiled = sampled(rehearsal, ready, build, arguments)
            what = "a draw, scaled; linking and packing recorded"
        else:
            with console.step("Compile"):
                compiled = [cpu_of(lambda: compile_second(rehearsal, ready))]
            with console.step("Smoke test"):
                smoke(rehearsal, ready, next((rehearsal.workspace.root / "compiled-second").glob("*.whl")))
            what = f"{edges(rehearsal)} steps of ninja, linked and packed"
    report(console, arguments, configured, compiled, what)


def report(
    console: Console, arguments: argparse.Namespace, configured: float, compiled: Sequence[float], what: str
) -> None:
    """Print and keep the ratio; several values of `compiled` are its spread."""
    rows = [
        ("configure for the second Python", f"{configured:.0f}"),
        (f"its bindings ({what})", " to ".join(f"{value:.0f}" for value in compiled)),
        ("a whole first build, recorded", f"{arguments.first_cpu:.0f}"),
    ]
    console.table(("", "CPU s"), rows)
    draw_of = f" --units {arguments.units} --seed {arguments.seed}" if arguments.units else ""
    command = f"nox -s benchmark -- second_python --interpreter PYTHON3.12{draw_of}"
    versions = (
        f"clang 19 -O0 with the wide header, both; first build: {arguments.first_cpu:.0f} CPU s, recorded; {what}"
    )
    ratios = [(configured + value) / arguments.first_cpu for value in compiled]
    row = record("python.second_ratio", ratios, unit="ratio", command=command, target="<= 0.20", versions=versions)
    console.print(f"python.second_ratio {row['median']} (target <= 0.20)")


def sampled(rehearsal: Rehearsal, ready: Prepared, build: Path, arguments: argparse.Namespace) -> list[float]:
    """Return what all bindings would cost: low, as measured, high (of resampled draws, the middle 95 %)."""
    # The header's own unit is not drawn: it is compiled once, before them.
    units = [
        unit
        for unit in read_units(build)
        if unit.target == "torch_python" and not unit.source.name.startswith("cmake_pch")
    ]
    drawn = draw(units, targets=("torch_python",), count=arguments.units, seed=arguments.seed)
    header = "caffe2/torch/CMakeFiles/torch_python.dir/cmake_pch.hxx.pch"
    once = cpu_of(lambda: make(rehearsal, ready, build, header, first=True))
    seconds = []
    for unit in drawn:
        (build / unit.object).unlink(missing_ok=True)
        seconds.append(cpu_of(lambda name=unit.object: make(rehearsal, ready, build, name)))  # type: ignore[misc]
        rehearsal.console.line(f"{seconds[-1]:6.1f} {unit.source.name}")
    rehearsal.console.line(f"{once:6.1f} generated sources and the wide header; {len(units)} files in all")
    dice = random.Random(arguments.seed)
    scale = len(units) / len(seconds)
    again = sorted(sum(dice.choices(seconds, k=len(seconds))) * scale for _ in range(2000))
    fixed = once + LINK_AND_PACK_CPU_SECONDS
    return [fixed + again[50], fixed + sum(seconds) * scale, fixed + again[1949]]


def make(rehearsal: Rehearsal, ready: Prepared, build: Path, target: str, *, first: bool = False) -> None:
    """Make one file of the build, and what it needs."""
    command = Command(argv=("ninja", "-C", str(build), "-j1", target), cwd=build, environ=ready.environ)
    log = rehearsal.log("compile-second-python")
    if first:
        log.unlink(missing_ok=True)
    try:
        run_logged(ready.wrap(command), log=log)
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-8:])
        raise CompileError(f"{target} does not compile for the second Python:\n{text}") from failure


def prepare(rehearsal: Rehearsal, interpreter: Path) -> Prepared:
    """Return the first Python's tree with an environment of the second's; its lock is installed here, uncounted."""
    root = rehearsal.workspace.root
    source = rehearsal.workspace.source
    if not (source / "build" / ".ninja_log").is_file() or not (root / "finished").is_dir():
        raise SourceError(
            f"{root} holds no build of a first Python",
            hint=f"nox -s rehearse -- {rehearsal.recipe.name} --wheel",
        )
    tested = capture(Command(argv=(str(interpreter), "-c", "import sys; print('%d.%d' % sys.version_info[:2])")))
    version = tested.stdout.strip()
    if not version:
        raise SourceError(f"{interpreter} does not run: {tested.stderr.strip()}")
    home = interpreter.resolve().parents[2]
    chroot = debian_root(rehearsal, mirror=None)
    chroot = replace(chroot, binds=(*chroot.binds, home))
    place = Place(name=f"{home}", python=version, interpreter=home / "bin" / f"python{version}", wrap=chroot.inside)
    environment = overlaid(linux_recipe(rehearsal.recipe, debian=True).environment, split_variables(root / "libtorch"))
    recipe = linux_recipe(rehearsal.recipe, debian=True).model_copy(update={"environment": environment})
    tree = SourceTree(
        root=source, origin="the first Python's", commit=None, submodules={}, epoch=changelog_epoch(source)
    )
    return rehearsal.environment(recipe, tree, "second", place=place, toolchain=clang_toolchain(against_gcc=True))


def configure(rehearsal: Rehearsal, ready: Prepared, build: Path) -> None:
    """Configure the folder that stands for the second Python, as the pipeline does."""
    root = rehearsal.workspace.root
    overrides = configuring.write_overrides(
        root / "overrides.cmake",
        expect_mps=False,
        profile_lines=RELOCATABLE + wide_header_lines((TORCH_PYTHON,), root),
    )
    command = configuring.configure_command(
        "setuptools",
        python=ready.python,
        source=ready.tree.root,
        build=build,
        environ=ready.environ,
        overrides=overrides,
    )
    log = rehearsal.log("configure-second-python")
    configuring.configure(ready.wrap(command), build=build, log=log, reporter=rehearsal.console, new_python=True)


def compile_second(rehearsal: Rehearsal, ready: Prepared) -> None:
    """Compile and pack, by the step that build_wheel takes."""
    root = rehearsal.workspace.root
    command = build_command(
        "setuptools",
        python=ready.python,
        source=ready.tree.root,
        build=ready.tree.root / "build",
        output=root / "compiled-second",
        environ=ready.environ,
        overrides=root / "overrides.cmake",
    )
    log = rehearsal.log("compile_wheel-second-python")
    compile_wheel(ready.wrap(command), output=root / "compiled-second", log=log, reporter=rehearsal.console)


def smoke(rehearsal: Rehearsal, ready: Prepared, wheel: Path) -> None:
    """Install the wheel for the second Python and compute with it."""
    venv = rehearsal.workspace.root / "second-python-smoke"
    remove_tree(venv)
    base = ready.python.resolve()
    inside = str(venv / "bin" / "python")
    for argv in (
        (str(base), "-m", "venv", str(venv)),
        (inside, "-m", "pip", "install", "-q", "--no-input", "numpy", str(wheel)),
        (inside, "-I", str(SMOKE), str(venv / "smoke.json")),
    ):
        command = Command(argv=argv, cwd=rehearsal.workspace.root, environ=inner_environ())
        try:
            run_logged(ready.wrap(command), log=rehearsal.log("smoke-second-python"))
        except CommandFailed as failure:
            text = "\n".join(failure.tail[-8:])
            raise CompileError(f"the second Python's wheel does not work:\n{text}") from failure


def edges(rehearsal: Rehearsal) -> int:
    """Return how many steps ninja ran for the second Python."""
    reported = parse_ninja(rehearsal.log("compile_wheel-second-python").read_text(encoding="utf-8", errors="replace"))
    return reported.done or 0 if reported else 0


def cpu_of(work: Callable[[], None]) -> float:
    """Return the CPU seconds of all programs that `work` ran and waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    raise SystemExit(main())
