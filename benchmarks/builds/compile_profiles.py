"""CPU seconds of compile steps by profile, over the same seeded draw of real PyTorch files, all ways in one run.

    nox -s benchmark -- compile_profiles [--units 150] [--seed 1] [--release v2.6.0]

Needs what `nox -s rehearse -- v2.6.0` needs; uses the same Debian root. Every compile step is timed by a launcher
(user and system time of the compiler itself), so that code generation and waiting count nowhere; a precompiled
header's own cost counts in full, although a whole build would share it among seven times as many files.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.cores import usable_cores
from mps_build.common.errors import CompileError, MpsBuildError
from mps_build.common.process import Command
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.workspace import remove_tree
from mps_build.wheel_build.ninja import compile_objects
from mps_build.wheel_build.rehearsal.linux import clang_toolchain, linux_recipe
from mps_build.wheel_build.rehearsal.session import Prepared, Rehearsal, Unit, draw, read_units
from mps_build.wheel_build.rehearsal.source import debian_place, debian_root, debian_tree
from shared.record import record
from shared.timed_compile import LAUNCHER, Way, configure

FIGURES = (
    ("develop", "stock", "compile.develop_ratio", "<= 0.40"),
    ("develop_O0", "stock", "compile.develop_O0_ratio", "<= 0.30"),
    ("develop_O0", "stock_O0", "compile.develop_O0_of_stock_O0_ratio", "printed beside"),
    ("release", "stock", "compile.release_ratio", "<= 0.85"),
)
WAYS = (
    Way(name="stock", level="-O2", headers=False),
    Way(name="release", level="-O2", headers=True, plain=True),
    Way(name="develop", level="-O2", headers=True),
    Way(name="stock_O0", level="-O0", headers=False),
    Way(name="develop_O0", level="-O0", headers=True),
)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--release", default="v2.6.0")
    parser.add_argument("--jobs", type=int, default=usable_cores())
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run's times")
    parser.add_argument("--ways", default=",".join(way.name for way in WAYS))
    arguments = parser.parse_args(argv)
    ways = [way for way in WAYS if way.name in arguments.ways.split(",")]
    console = Console()
    try:
        run(arguments, ways, console)
    except MpsBuildError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    return 0


def run(arguments: argparse.Namespace, ways: Sequence[Way], console: Console) -> None:
    rehearsal = Rehearsal(find_recipe(arguments.release), mode="bench", jobs=arguments.jobs, console=console)
    with rehearsal.workspace.held():
        chroot = debian_root(rehearsal, mirror=None)
        place = debian_place(rehearsal, chroot)
        tree, source = debian_tree(rehearsal, chroot)
        recipe = linux_recipe(rehearsal.recipe, debian=True)
        ready = rehearsal.environment(recipe, tree, source, place=place, toolchain=clang_toolchain(against_gcc=False))
        launcher = rehearsal.workspace.root / "timed"
        launcher.write_text(LAUNCHER, encoding="utf-8")
        launcher.chmod(0o755)
        drawn: tuple[Unit, ...] = ()
        seconds: dict[str, dict[str, float]] = {}
        for way in ways:
            with console.step(way.name):
                build = configure(rehearsal, ready, way, launcher)
                drawn = drawn or drawn_units(build, arguments)
                seconds[way.name] = measure(rehearsal, ready, way, build, drawn, resume=arguments.resume)
        report(rehearsal, seconds, drawn, arguments)
        if "stock" in seconds and "release" in seconds:
            symbols(rehearsal, ready, drawn, console)


def drawn_units(build: Path, arguments: argparse.Namespace) -> tuple[Unit, ...]:
    """Return the draw: of what arm64 compiles too, so not the copies of a kernel for x86's AVX2 and AVX-512."""
    targets, count = ("torch_cpu", "torch_python"), int(arguments.units)
    more = draw(read_units(build), targets=targets, count=2 * count, seed=arguments.seed)
    return tuple(unit for unit in more if not re.search(r"\.AVX(2|512)\.cpp", unit.object))[:count]


def measure(
    rehearsal: Rehearsal, ready: Prepared, way: Way, build: Path, drawn: Sequence[Unit], *, resume: bool
) -> dict[str, float]:
    """Compile the draw from nothing and return the CPU seconds of each object, precompiled headers included.

    Args:
        resume: what an interrupted run measured is kept, and not measured again.
    """
    kept = rehearsal.workspace.root / "ways" / way.name
    times = kept / "times"
    if not resume:
        remove_tree(kept)
    kept.mkdir(parents=True, exist_ok=True)
    measured = _read_times(times)
    left = [unit for unit in drawn if unit.object not in measured]
    for unit in left:
        (build / unit.object).unlink(missing_ok=True)
    if not measured:
        for header in build.rglob("cmake_pch.h*.pch"):
            header.unlink()
    argv = ("ninja", "-C", str(build), f"-j{rehearsal.jobs}", "-k", "0", *(unit.object for unit in left))
    environ = {**ready.environ, "COMPILE_TIMES": str(times)}
    command = ready.wrap(Command(argv=argv, cwd=build, environ=environ))
    try:
        log = rehearsal.log(f"compile-{way.name}")
        if left:
            compile_objects(command, what=f"files, {way.name}", log=log, reporter=rehearsal.console)
    except CompileError as error:
        rehearsal.console.warn(str(error))
    rehearsal.console.done()
    for unit in left:
        if (build / unit.object).is_file():
            shutil.copy2(build / unit.object, kept / unit.object.replace("/", "_"))
    wanted = {unit.object for unit in drawn}
    return {output: cpu for output, cpu in _read_times(times).items() if output in wanted or output.endswith(".pch")}


def _read_times(path: Path) -> dict[str, float]:
    """Return the CPU seconds of each output that the launcher noted."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()) if path.is_file() else ()
    return {output: float(cpu) for output, cpu in rows}


def report(
    rehearsal: Rehearsal,
    seconds: Mapping[str, Mapping[str, float]],
    drawn: Sequence[Unit],
    arguments: argparse.Namespace,
) -> None:
    """Print what each way took, over the objects that every way made, and its ratio to stock."""
    objects = {unit.object for unit in drawn}
    common = sorted(objects.intersection(*(set(of) for of in seconds.values())))
    console = rehearsal.console
    rows = []
    for name, of in seconds.items():
        ratios = [
            f"{_ratio(of, seconds[base], common):.3f}" if base in seconds else "" for base in ("stock", "stock_O0")
        ]
        left = len(objects) - len(objects & set(of))
        rows.append((name, f"{sum(of[each] for each in common):.1f}", f"{_headers(of):.1f}", *ratios, str(left)))
    console.table(("way", "files, CPU s", "headers, CPU s", "of stock", "of stock -O0", "not compiled"), rows)
    console.print(
        f"{len(common)} files of {len(objects)} drawn (seed {arguments.seed}), {rehearsal.recipe.name}, clang"
    )
    dice = random.Random(arguments.seed)
    for name, base, figure, target in FIGURES:
        if name in seconds and base in seconds:
            again = [_ratio(seconds[name], seconds[base], dice.choices(common, k=len(common))) for _ in range(2000)]
            low, high = sorted(again)[50], sorted(again)[1949]
            command = f"nox -s benchmark -- compile_profiles --units {arguments.units} --seed {arguments.seed}"
            measured = _ratio(seconds[name], seconds[base], common)
            row = record(figure, [low, measured, high], unit="ratio", command=command, target=target)
            console.print(
                f"{figure} {row['median']} (95 % of resampled draws: {row['low']} to {row['high']}; {target})"
            )


def _headers(of: Mapping[str, float]) -> float:
    return sum(cpu for output, cpu in of.items() if output.endswith(".pch"))


def _ratio(of: Mapping[str, float], base: Mapping[str, float], files: Sequence[str]) -> float:
    """Return the CPU seconds of one way as a part of another's; precompiled headers count in full, in both."""
    return (_headers(of) + sum(of[each] for each in files)) / (_headers(base) + sum(base[each] for each in files))


def symbols(rehearsal: Rehearsal, ready: Prepared, drawn: Sequence[Unit], console: Console) -> None:
    """Say whether release's objects define the same external symbols as stock's, and hold the same code."""
    exported, code = [], []
    compared = 0
    for unit in drawn:
        pair = [rehearsal.workspace.root / "ways" / way / unit.object.replace("/", "_") for way in ("stock", "release")]
        if not all(path.is_file() for path in pair):
            continue
        compared += 1
        if len({_exported(ready, path) for path in pair}) == 2:
            exported.append(unit.object)
        if len({_code(path) for path in pair}) == 2:
            code.append(unit.object)
    console.print(f"release against stock: {compared} objects, {len(exported)} with other exported symbols")
    console.print(f"release against stock: {len(code)} with other machine code or constants")
    for name in (*exported[:10], *code[:10]):
        console.line(name)


def _exported(ready: Prepared, path: Path) -> str:
    argv = ("llvm-nm", "--extern-only", "--defined-only", "-j", str(path))
    command = ready.wrap(Command(argv=argv, environ=ready.environ))
    reported = subprocess.run(command.argv, env=command.environ, capture_output=True, text=True, check=True)
    return "\n".join(sorted(reported.stdout.split()))


def _code(path: Path) -> tuple[tuple[str, str], ...]:
    """Return the sections of an x86-64 ELF object that hold code and constants, each with a digest of its bytes.

    Relocations are not among them: they name symbols, whose order alone may differ.
    """
    data = path.read_bytes()
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
    first = struct.unpack_from("<IIQQQQIIQQ", data, table)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count or first[5])]
    names = headers[first[6] if names_at == 0xFFFF else names_at][4]
    sections = []
    for name_at, kind, _, _, offset, length, *_ in headers:
        name = data[names + name_at : data.index(b"\0", names + name_at)].decode()
        if name.startswith((".text", ".rodata", ".data")):
            held = data[offset : offset + length] if kind != 8 else b""  # SHT_NOBITS holds no bytes
            sections.append((name, hashlib.sha256(held).hexdigest()))
    return tuple(sorted(sections))


if __name__ == "__main__":
    raise SystemExit(main())
