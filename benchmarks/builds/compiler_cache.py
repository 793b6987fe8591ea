"""What a warm compiler cache saves, over a seeded draw of real PyTorch files: in a fresh build folder, and elsewhere.

    nox -s benchmark -- compiler_cache [--units 40] [--seed 1] [--targets torch_cpu,torch_python,c10]

Needs what `nox -s rehearse -- v2.6.0` needs; uses the same Debian root. Stock settings (-O2, no precompiled header)
and ccache as `build_wheel --cache ccache` sets it. The draw is compiled three times: with an empty cache; in a build
folder made anew; in another checkout, at another path, with another build folder. Counted are the CPU seconds of the
compile steps, ccache's own included, and ccache's hits. What came from the cache must be what the compiler made.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.cores import usable_cores
from mps_build.common.errors import CompileError, MpsBuildError
from mps_build.common.process import Command, capture
from mps_build.common.receipts import fingerprint
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.workspace import cache_folder, remove_tree
from mps_build.host.triage.tools.caches import parse_ccache
from mps_build.wheel_build.compiler_cache.launcher import cache_lines, cache_settings
from mps_build.wheel_build.ninja import compile_objects
from mps_build.wheel_build.rehearsal.linux import clang_toolchain, linux_recipe
from mps_build.wheel_build.rehearsal.session import Prepared, Rehearsal, draw, read_units
from mps_build.wheel_build.rehearsal.source import debian_place, debian_root, debian_tree
from shared.record import record
from shared.timed_compile import LAUNCHER, Way, configure

CCACHE = Path("/usr/bin/ccache")  # in the Debian root
STOCK = Way(name="stock", level="-O2", headers=False, lines=cache_lines(CCACHE, across=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One pass over the draw: CPU seconds and sha256 by object, and what the cache counted."""

    seconds: Mapping[str, float]
    digests: Mapping[str, str]
    hits: int
    misses: int

    @property
    def hit_rate(self) -> float:
        """Return the part of the draw that came from the cache (0 to 1): a file it never saw is not a hit either."""
        return self.hits / max(len(self.seconds), self.hits + self.misses, 1)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--targets", default="torch_cpu,torch_python,c10", help="CMake targets to draw from, by commas")
    parser.add_argument("--again", action="store_true", help="cold pass: use the build folder that is configured")
    parser.add_argument("--release", default="v2.6.0")
    parser.add_argument("--jobs", type=int, default=usable_cores())
    arguments = parser.parse_args(argv)
    console = Console()
    cache = cache_folder() / "benchmark-ccache"
    remove_tree(cache)
    try:
        passes: dict[str, Pass] = {}
        for mode, names in (("cache", ("cold", "warm")), ("cache-elsewhere", ("other path",))):
            rehearsal = Rehearsal(find_recipe(arguments.release), mode=mode, jobs=arguments.jobs, console=console)
            with rehearsal.workspace.held():
                ready = prepare(rehearsal)
                for name in names:
                    with console.step(f"{name}: {rehearsal.workspace.root}"):
                        passes[name] = one_pass(rehearsal, ready, name, cache, arguments)
        report(passes, versions(ready), arguments, console)
    except MpsBuildError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    return 0


def prepare(rehearsal: Rehearsal) -> Prepared:
    """Return a checkout of its own with the environment of a Linux rehearsal."""
    chroot = debian_root(rehearsal, mirror=None)
    tree, source = debian_tree(rehearsal, chroot)
    recipe = linux_recipe(rehearsal.recipe, debian=True)
    place = debian_place(rehearsal, chroot)
    return rehearsal.environment(recipe, tree, source, place=place, toolchain=clang_toolchain(against_gcc=False))


def one_pass(rehearsal: Rehearsal, ready: Prepared, name: str, cache: Path, arguments: argparse.Namespace) -> Pass:
    """Configure a build folder made anew and compile the draw in it, each step timed."""
    root = rehearsal.workspace.root
    build = root / "build"
    if not (arguments.again and name == "cold" and (build / "build.ninja").is_file()):
        remove_tree(build)
        configure(rehearsal, ready, STOCK, launcher(root))
    drawn = draw(read_units(build), targets=arguments.targets.split(","), count=arguments.units, seed=arguments.seed)
    for unit in drawn:
        (build / unit.object).unlink(missing_ok=True)
    times = root / "times"
    times.unlink(missing_ok=True)
    settings = {**cache_settings(CCACHE, base=root), "CCACHE_DIR": str(cache), "COMPILE_TIMES": str(times)}
    working = replace(ready, environ={**ready.environ, **settings})
    before = counted(working)
    argv = ("ninja", "-C", str(build), f"-j{rehearsal.jobs}", "-k", "0", *(unit.object for unit in drawn))
    try:
        compile_objects(
            working.wrap(Command(argv=argv, cwd=build, environ=working.environ)),
            what=f"files, {name}",
            log=rehearsal.log(f"compile-{name.replace(' ', '-')}"),
            reporter=rehearsal.console,
        )
    except CompileError as error:
        rehearsal.console.warn(str(error))
    rehearsal.console.done()
    after = counted(working)
    wanted = {unit.object for unit in drawn}
    rows = (line.split("\t") for line in times.read_text(encoding="utf-8").splitlines())
    seconds = {output: float(cpu) for output, cpu in rows if output in wanted and (build / output).is_file()}
    digests = {output: str(fingerprint(build / output)["sha256"]) for output in seconds}
    return Pass(seconds=seconds, digests=digests, hits=after[0] - before[0], misses=after[1] - before[1])


def launcher(root: Path) -> Path:
    """Write and return what stands in front of the compiler: the timing, then ccache."""
    (root / "timed").write_text(LAUNCHER, encoding="utf-8")
    place = root / "cached"
    place.write_text(f'#!/bin/sh\nexec "{root}/timed" {CCACHE} "$@"\n', encoding="utf-8")
    for path in (root / "timed", place):
        path.chmod(0o755)
    return place


def counted(ready: Prepared) -> tuple[int, int]:
    """Return ccache's hits and misses so far."""
    tested = capture(ready.wrap(Command(argv=(str(CCACHE), "-s"), cwd=ready.tree.root, environ=ready.environ)))
    stats = parse_ccache(tested.stdout)
    if stats is None:
        raise CompileError(f"ccache gives no statistics: {tested.stderr.strip()}")
    return stats.hits or 0, stats.misses or 0


def versions(ready: Prepared) -> str:
    """Return compiler and cache with their versions, as they name themselves."""
    lines = []
    for program in ("clang++", str(CCACHE)):
        tested = capture(ready.wrap(Command(argv=(program, "--version"), cwd=ready.tree.root, environ=ready.environ)))
        lines.append(tested.stdout.partition("\n")[0].strip())
    return ", ".join(lines)


def report(passes: Mapping[str, Pass], tools: str, arguments: argparse.Namespace, console: Console) -> None:
    """Print the passes, write the rows."""
    cold = passes["cold"]
    common = sorted(set.intersection(*(set(each.seconds) for each in passes.values())))
    rows = []
    for name, each in passes.items():
        same = sum(each.digests[output] == cold.digests[output] for output in common)
        cpu = sum(each.seconds[output] for output in common)
        reported = (f"{cpu:.1f}", f"{each.hits}", f"{each.misses}", f"{each.hit_rate:.1%}", f"{same} of {len(common)}")
        rows.append((name, *reported))
    console.table(("pass", "CPU s", "hits", "misses", "hit rate", "objects as the cold pass's"), rows)
    command = f"nox -s benchmark -- compiler_cache --units {arguments.units} --seed {arguments.seed}"
    command += f" --targets {arguments.targets}"
    dice = random.Random(arguments.seed)
    for name, figure in (("warm", "cache.warm"), ("other path", "cache.other_path")):
        each = passes[name]
        again = sorted(_ratio(each, cold, dice.choices(common, k=len(common))) for _ in range(2000))
        values = [again[50], _ratio(each, cold, common), again[1949]]
        record(f"{figure}_ratio", values, unit="ratio", command=command, target="<= 0.08", versions=tools)
        record(f"{figure}_hits", [each.hit_rate], unit="ratio", command=command, target=">= 0.99", versions=tools)
        console.print(
            f"{figure}: {values[1]:.4f} of the cold CPU time (resampled draws: {values[0]:.4f} to {values[2]:.4f}), "
            f"{each.hit_rate:.1%} hits, over {len(common)} files"
        )
        if any(each.digests[output] != cold.digests[output] for output in common):
            raise CompileError(f"{name}: an object from the cache is not what the compiler made")


def _ratio(of: Pass, base: Pass, files: Sequence[str]) -> float:
    return sum(of.seconds[each] for each in files) / sum(base.seconds[each] for each in files)


if __name__ == "__main__":
    raise SystemExit(main())
