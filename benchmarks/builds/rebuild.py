"""Seconds from saving one .cpp of real PyTorch to the process that has imported it: ours, plain ninja, a whole wheel.

    nox -s rehearse -- v2.6.0 --wheel      # once: the tree, built (an hour on two cores)
    nox -s benchmark -- rebuild [--rounds 5] [--wheel]

Each round saves the file anew (one more function), so that every way compiles it; the ways alternate, so
that a busy machine slows all of them, and what goes on record are CPU seconds, which neighbours do not lengthen:
these steps follow one another, so on an idle machine they are the wall's. Ours is the whole command,
`build_wheel v2.6.0 --editable`, from process start.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.commands.shared.parser import parse_options
from mps_build.common.console import Console
from mps_build.common.cores import usable_cores
from mps_build.common.environment import fetch_environ
from mps_build.common.process import Command
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.workspace import cache_folder
from mps_build.wheel_build.editable import build_editable, create_runtime, first_command, import_it
from mps_build.wheel_build.rebuild_editable import Editable, Remembered, remember
from mps_build.wheel_build.rehearsal.session import Rehearsal
from mps_build.wheel_build.rehearsal.source import debian_place, debian_root
from mps_build.wheel_build.steps.compile_wheel import build_command, files_of, make_commands, repack_wheel
from mps_build.wheel_build.steps.finish_wheel import finish_wheel
from shared.record import record

ROOT = Path(__file__).resolve().parents[2]

COMMAND = "nox -s benchmark -- rebuild"
GIVEN = ["v2.6.0", "--editable"]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The built tree, how to run a command there, and the file that is edited."""

    editable: Editable
    environ: dict[str, str]
    wrap: Callable[[Command], Command]
    file: Path
    folder: Path

    def save(self) -> None:
        with self.file.open("a", encoding="utf-8") as stream:
            # A function, not a comment: that would give the same library again, and nothing to pack.
            now = time.time_ns()
            stream.write(
                f'extern "C" __attribute__((visibility("default"))) long mps_build_{now}() {{ return {now}L; }}\n'
            )

    def run(self, *argv: str, cwd: Path | None = None, inside: bool = True) -> None:
        command = Command(argv=argv, cwd=cwd or self.editable.root, environ=self.environ)
        whole = self.wrap(command) if inside else Command(argv=argv, cwd=cwd or ROOT)
        ran = subprocess.run(whole.argv, cwd=whole.cwd, env=whole.environ, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise SystemExit(f"{' '.join(argv)} ended with {ran.returncode}:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")

    def import_torch(self) -> None:
        self.run(str(self.editable.python), "-I", "-c", "import torch", cwd=self.folder)

    def seconds(self, way: Callable[[], None], *, then: Callable[[], None]) -> tuple[float, float]:
        """Return (wall, CPU) seconds from the save until the import is done."""
        began, before = time.perf_counter(), os.times()
        self.save()
        way()
        then()
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        return time.perf_counter() - began, cpu + (after.user - before.user)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--file", default="torch/csrc/utils/tensor_list.cpp")
    parser.add_argument("--jobs", type=int, default=usable_cores())
    parser.add_argument("--wheel", action="store_true", help="up to a finished wheel, against `python -m build`")
    parser.add_argument("--prepare", action="store_true", help="make the tree importable in place, and measure nothing")
    arguments = parser.parse_args()
    rehearsal = Rehearsal(find_recipe("v2.6.0"), mode="wheel", jobs=arguments.jobs, console=Console())
    bench = prepare(rehearsal, arguments.file, arguments.jobs)
    if arguments.prepare:
        return
    if arguments.wheel:
        measure_wheel(bench, arguments.rounds, arguments.jobs)
    else:
        measure(bench, arguments.rounds, arguments.jobs)


def prepare(rehearsal: Rehearsal, file: str, jobs: int) -> Bench:
    """Return the tree of `rehearse --wheel`, importable in place, remembered for `build_wheel --editable`."""
    root = rehearsal.workspace.root
    kept = root / "receipts" / "configure.json"
    if not kept.is_file() or not (root / "source" / "build" / "build.ninja").is_file():
        raise SystemExit(f"no built tree in {root}: first `nox -s rehearse -- v2.6.0 --wheel`")
    given = json.loads(kept.read_text(encoding="utf-8"))["inputs"]["environ"]
    environ = {**given, "HOME": "/root", "TERM": "dumb", "MAX_JOBS": str(jobs), "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs)}
    chroot = debian_root(rehearsal, mirror=None)
    wrap = chroot.inside
    source = root / "source"
    first = first_command(
        "setuptools",
        python=next((root / "environments").iterdir()) / "bin" / "python",
        source=source,
        build=source / "build",
        output=root / "editable-wheel",
        environ=environ,
        overrides=root / "overrides.cmake",
    )
    venv, log = root / "editable", rehearsal.log("editable")
    if not (venv / "done").is_file():
        create_runtime(
            "setuptools",
            interpreter=debian_place(rehearsal, chroot).interpreter,
            destination=venv,
            builder=first,
            numpy=None,
            cache=cache_folder(),
            environ=fetch_environ(os.environ),
            log=log,
            reporter=rehearsal.console,
            wrap=wrap,
        )
    began = time.perf_counter()
    editable = build_editable(
        "setuptools",
        first,
        build=source / "build",
        output=root / "editable-wheel",
        venv=venv,
        jobs=jobs,
        log=log,
        reporter=rehearsal.console,
        wrap=wrap,
    )
    (venv / "done").touch()
    print(f"in place after {time.perf_counter() - began:.1f} s")
    print(import_it(editable, "torch", environ={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, wrap=wrap))
    remember(
        parse_options("build_wheel", GIVEN),
        Remembered(workspace=rehearsal.workspace, editable=editable, module="torch", recipe="v2.6.0"),
        watched=(root / "overrides.cmake",),
    )
    return Bench(editable=editable, environ=environ, wrap=wrap, file=source / file, folder=root)


def measure(bench: Bench, rounds: int, jobs: int) -> None:
    """Alternate the ways and put the figures on record; the file ends as it began."""
    ninja = ("ninja", "-C", str(bench.editable.build), f"-j{jobs}")
    ours = (sys.executable, "-m", "mps_build", "build_wheel", *GIVEN)
    ways: dict[str, Callable[[], None]] = {
        "ninja": lambda: bench.run(*ninja),
        "ninja install": lambda: bench.run(*ninja, "install"),
        "ours": lambda: bench.run(*ours, inside=False),
    }
    kept = bench.file.with_suffix(".kept")
    shutil.copy2(bench.file, kept)
    reported: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    try:
        bench.seconds(ways["ours"], then=bench.import_torch)  # the first one warms the disk's cache
        for _ in range(rounds):
            for name, way in ways.items():
                reported[name].append(bench.seconds(way, then=bench.import_torch))
    finally:
        kept.replace(bench.file)
        bench.run(*ninja, "install")
    for name, pairs in reported.items():
        wall, cpu = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{name:14} {wall:6.2f} s wall, {cpu:6.2f} s CPU until imported   {[round(a, 2) for a, _ in pairs]}")
    print(f"load of the machine: {os.getloadavg()}")
    cpus = [pair[1] for pair in reported["ours"]]
    print(record("rebuild.one_file_s", cpus, unit="CPU s", command=COMMAND, target="as short as ninja"))
    for base, row in (("ninja", "rebuild.editable_ratio"), ("ninja install", "rebuild.editable_of_install_ratio")):
        plain = statistics.median(pair[1] for pair in reported[base])
        print(record(row, [each / plain for each in cpus], unit="ratio", command=COMMAND, target="<= 1.1"))


def measure_wheel(bench: Bench, rounds: int, jobs: int) -> None:
    """One edit up to a finished wheel, as build_wheel --profile develop makes it, against `python -m build`."""
    root, build = bench.folder, bench.editable.build
    python = next((root / "environments").iterdir()) / "bin" / "python"
    given: dict[str, Any] = {
        "python": python,
        "source": bench.editable.root,
        "build": build,
        "environ": bench.environ,
        "overrides": root / "overrides.cmake",
    }
    whole = build_command("setuptools", output=root / "bench-whole", **given)
    (make,) = make_commands("setuptools", jobs=jobs, **given)
    bill = {"bench": True}

    def stock() -> None:
        bench.run(*whole.argv)

    def ours() -> None:
        bench.run(*make.argv)
        last = next((root / "bench-raw").glob("*.whl"))
        files = files_of("setuptools", source=bench.editable.root, build=build, previous=last)
        if files is None:
            raise SystemExit("the next wheel would hold other members than the last: nothing to repack")
        wheel, changed = repack_wheel(last, files, output=root / "bench-raw")
        finished = next((root / "bench-finished").glob("*.whl"))
        aside = finished.rename(root / "bench-last.whl")
        finish_wheel(wheel, output=root / "bench-finished", epoch=10**9, bill=bill, previous=aside)
        print(f"repacked: {len(changed)} of {len(files)}: {', '.join(changed[:6])}")

    kept = bench.file.with_suffix(".kept")
    shutil.copy2(bench.file, kept)
    reported: dict[str, list[tuple[float, float]]] = {"python -m build": [], "ours": []}
    try:
        bench.save()
        stock()
        shutil.rmtree(root / "bench-raw", ignore_errors=True)
        shutil.copytree(root / "bench-whole", root / "bench-raw")
        finish_wheel(next((root / "bench-raw").glob("*.whl")), output=root / "bench-finished", epoch=10**9, bill=bill)
        for _ in range(rounds):
            reported["ours"].append(bench.seconds(ours, then=lambda: None))
            reported["python -m build"].append(bench.seconds(stock, then=lambda: None))
    finally:
        kept.replace(bench.file)
    for name, pairs in reported.items():
        wall, cpu = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{name:16} {wall:6.1f} s wall, {cpu:6.1f} s CPU   {[round(a, 1) for a, _ in pairs]}")
    print(f"load of the machine: {os.getloadavg()}")
    cpus = [pair[1] for pair in reported["ours"]]
    plain, command = statistics.median(pair[1] for pair in reported["python -m build"]), f"{COMMAND} --wheel"
    print(record("rebuild.wheel_s", cpus, unit="CPU s", command=command, target="less than python -m build"))
    ratios = [each / plain for each in cpus]
    print(record("rebuild.wheel_ratio", ratios, unit="ratio", command=command, target="< 1"))


if __name__ == "__main__":
    main()
