"""What a second host of a fleet finds in the shared compiler cache: real PyTorch files, two hosts, one Redis.

    nox -s benchmark -- compiler_cache                (once: it makes the configured checkout that is used here)
    nox -s benchmark -- second_host [--units 40] [--seed 1] [--targets c10]

Two hosts are two network namespaces; the Redis is in a third. Both build at one path (docs/fleet/caches.md), and have
no cache of their own. Each asks for the store as `build_wheel --cache sccache --shared-cache` does, through the relay.
The first compiles a seeded draw; the second must find all of it, and its objects must be the first's.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mps_build.common.console import Console
from mps_build.common.errors import CompileError, HostError, MpsBuildError, SourceError
from mps_build.common.process import Command, CommandFailed, capture, run_logged
from mps_build.common.receipts import fingerprint
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.host.triage.tools.caches import parse_sccache
from mps_build.wheel_build.compiler_cache.store import choose_store, relayed
from mps_build.wheel_build.rehearsal.linux import clang_toolchain, linux_recipe
from mps_build.wheel_build.rehearsal.session import Rehearsal, draw, read_units
from mps_build.wheel_build.rehearsal.source import debian_place, debian_root, debian_tree
from shared.record import record
from shared.two_hosts import inside, two_hosts


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--targets", default="c10", help="CMake targets to draw from, by commas: c10,torch_cpu,torch_python"
    )
    parser.add_argument("--release", default="v2.6.0")
    parser.add_argument("--store", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    console = Console()
    try:
        if arguments.store:
            arguments.result.write_text(json.dumps(as_host(arguments, console)), encoding="utf-8")
        else:
            both(arguments, console)
    except MpsBuildError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    return 0


def both(arguments: argparse.Namespace, console: Console) -> None:
    """Start this program once on each host, compare, write the row."""
    rehearsal = Rehearsal(find_recipe(arguments.release), mode="cache", jobs=1, console=console)
    folder = rehearsal.workspace.root / "two-hosts"
    results: list[dict[str, Any]] = []
    with two_hosts(folder) as (hosts, address):
        for host in hosts:
            place = folder / f"{host}.json"
            options = ("--units", str(arguments.units), "--seed", str(arguments.seed), "--targets", arguments.targets)
            release = ("--release", arguments.release)
            own = (sys.executable, __file__, *options, *release, "--store", address, "--result", str(place))
            with console.step(f"host {host}"):
                try:
                    run_logged(Command(argv=inside(host, own)), log=folder / f"{host}.log", on_line=console.line)
                except CommandFailed as failure:
                    raise CompileError(f"{host} failed", hint=f"the whole output is in {failure.log}") from failure
            results.append(json.loads(place.read_text(encoding="utf-8")))
    first, second = results
    rows = [(str(each["hits"]), str(each["misses"]), f"{each['seconds']:.0f}", each["store"]) for each in results]
    console.table(("host", "hits", "misses", "wall s", "store"), [(f"{n}", *row) for n, row in enumerate(rows, 1)])
    same = [name for name, digest in second["digests"].items() if first["digests"].get(name) == digest]
    console.print(f"{len(same)} of {len(second['digests'])} objects are the first host's")
    if first["hits"] or len(same) != len(second["digests"]):
        raise CompileError("the first host was not cold, or the second got other objects", hint=f"see {folder}")
    rate = second["hits"] / max(second["hits"] + second["misses"], len(second["digests"]))
    command = f"nox -s benchmark -- second_host --units {arguments.units} --seed {arguments.seed}"
    command += f" --targets {arguments.targets}"
    versions = second["versions"]
    record("cache.second_host_hits", [rate], unit="ratio", command=command, target=">= 0.99", versions=versions)
    console.print(f"cache.second_host_hits {rate:.4f} over {len(second['digests'])} files (target >= 0.99)")


def as_host(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Compile the draw with the store, as this host; return what sccache counted and what came out."""
    sccache = shutil.which("sccache")
    if sccache is None:
        raise HostError("sccache is not on PATH", hint="pip install sccache")
    rehearsal = Rehearsal(find_recipe(arguments.release), mode="cache", jobs=1, console=console)
    build = rehearsal.workspace.root / "build"
    if not (build / "compile_commands.json").is_file():
        raise SourceError(f"{build} is not configured", hint="nox -s benchmark -- compiler_cache")
    choice = choose_store({"MPS_BUILD_SHARED_CACHE": arguments.store}, shared=True)
    reported = list(choice.warnings)
    began = time.monotonic()
    with (
        rehearsal.workspace.held(),
        relayed(choice.variables, choice.upstream, Path(sccache), report=reported.append) as variables,
    ):
        chroot = debian_root(rehearsal, mirror=None)
        chroot = replace(chroot, binds=(*chroot.binds, Path(sccache).parent))
        tree, source = debian_tree(rehearsal, chroot)
        place = debian_place(rehearsal, chroot)
        recipe = linux_recipe(rehearsal.recipe, debian=True)
        ready = rehearsal.environment(recipe, tree, source, place=place, toolchain=clang_toolchain(against_gcc=False))
        environ = {**ready.environ, **variables}
        digests = {}
        for unit in draw(
            read_units(build), targets=arguments.targets.split(","), count=arguments.units, seed=arguments.seed
        ):
            (build / unit.object).unlink(missing_ok=True)
            (build / unit.object).parent.mkdir(parents=True, exist_ok=True)
            compiler = unit.argv[next(at for at, word in enumerate(unit.argv) if word.endswith("clang++")) :]
            command = Command(argv=(sccache, *compiler), cwd=build, environ=environ)
            try:
                run_logged(ready.wrap(command), log=rehearsal.log("second-host"))
            except CommandFailed as failure:
                raise CompileError(f"{unit.source.name} does not compile: {failure.tail[-3:]}") from failure
            console.line(unit.source.name)
            digests[unit.object] = fingerprint(build / unit.object)["sha256"]
        names = [
            capture(ready.wrap(Command(argv=(program, "--version"), cwd=build, environ=environ))).stdout
            for program in ("clang++", sccache)
        ]
        tested = capture(ready.wrap(Command(argv=(sccache, "--show-stats"), cwd=build, environ=environ)))
    stats = parse_sccache(tested.stdout)
    if stats is None:
        raise CompileError(f"sccache gives no statistics: {tested.stderr.strip()}")
    return {
        "hits": stats.hits,
        "misses": stats.misses,
        "store": choice.store,
        "reported": reported,
        "versions": ", ".join(name.partition("\n")[0].strip() for name in names),
        "seconds": time.monotonic() - began,
        "digests": digests,
    }


if __name__ == "__main__":
    raise SystemExit(main())
