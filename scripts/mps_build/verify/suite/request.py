"""One run of the device suite: its files, its limits, how many processes it has, and the command of each."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from mps_build.common.errors import UsageError
from mps_build.common.process import Command

# The first tell the most soonest.
_ORDER = ("smoke", "regressions", "scenarios", "drawn")
# What a file calls its cases, and what each of them is of.
_CASES = re.compile(r"^cases = (?:Cases\(\s*\"(\w+)\"|(Drawn)\()", re.MULTILINE)


def suite_files(suite: Path, chosen_layers: Collection[str]) -> tuple[Path, ...]:
    """Return the files that have cases of the chosen layers; of all layers where none is chosen.

    Raises:
        UsageError: the folder holds no suite, or the suite has no such layer.
    """
    layers = {file: _layer(file) for file in (*suite.glob("test_*.py"), *suite.glob("*/test_*.py"))}
    if not layers:
        raise UsageError(
            f"{suite}: holds no suite (test_<layer>_<area>.py)",
            hint="reinstall mps-build: a file of it is missing",
        )
    known = sorted(set(layers.values()))
    if unknown := [layer for layer in chosen_layers if layer not in known]:
        raise UsageError(f"no layer {', '.join(unknown)}", hint=f"layers: {', '.join(known)}")
    chosen = [file for file, layer in layers.items() if layer in chosen_layers or not chosen_layers]
    return tuple(sorted(chosen, key=lambda file: (_place(layers[file]), file.as_posix())))


def _layer(file: Path) -> str:
    """Return the layer of a file's cases: as the file says, or as its name tells."""
    found = _CASES.search(file.read_text(encoding="utf-8", errors="replace"))
    return layer_of(file) if found is None else (found[1] or "drawn")


def _place(layer: str) -> int:
    return _ORDER.index(layer) if layer in _ORDER else _ORDER.index("drawn")


_GIB = 1 << 30
# Room for torch and the largest cases of the default layers; a bound, not a measurement. With torch 2.11.0 eight
# processes ran beside each other on an NVIDIA GPU and 16 cores (suite.gpu_s in benchmarks/results.json).
PROCESS_BYTES = 4 * _GIB
DEVICE_BYTES = 4 * _GIB
# More were never tried, on a device and on the CPU.
MOST, MOST_ON_CPU = 8, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What the machine has: usable cores, bytes of memory, and bytes of the device's own memory (0: it has none).

    On a Mac the GPU shares the memory, so that a process counts as two in it; likewise where the CPU itself is the
    device (`is_cpu`).
    """

    cores: int
    memory: int
    device_memory: int = 0
    is_cpu: bool = False


def jobs_for(room: Room, *, threads: int | None = None) -> int:
    """Return how many processes of the suite the machine has room for: from 1 to 8, on the CPU to 16.

    With a device a process takes two cores: one waits for the device while the other computes what the CPU answers.
    On the CPU it takes one: a case is small, and a second thread of it waits for the first.

    Args:
        threads: how many each process has, where the user set it.

    >>> jobs_for(Room(cores=16, memory=128 << 30, device_memory=80 << 30))
    8
    >>> jobs_for(Room(cores=16, memory=128 << 30, is_cpu=True)), jobs_for(Room(cores=16, memory=128 << 30), threads=16)
    (16, 1)
    >>> jobs_for(Room(cores=8, memory=16 << 30))  # an M1: 16 GB, shared with its GPU
    2
    >>> jobs_for(Room(cores=2, memory=4 << 30))
    1
    """
    if room.device_memory:
        by_memory = min(room.memory // PROCESS_BYTES, room.device_memory // DEVICE_BYTES)
    else:
        by_memory = room.memory // (PROCESS_BYTES + DEVICE_BYTES)
    by_cores, most = (room.cores, MOST_ON_CPU) if room.is_cpu else (room.cores // 2, MOST)
    return max(1, min(by_cores, room.cores // (threads or 1), by_memory, most))


def default_limit_bytes() -> int:
    """Return what a case may hold before it is ended: half the memory, at least 8 GiB, at most four fifths.

    A machine that begins to swap takes the other cases' time, and at last the whole session, with it.
    """
    total = total_bytes()
    return int(min(total * 0.8, max(8 * _GIB, total * 0.5)))


def total_bytes() -> int:
    """Return the memory of this machine, or of the container that holds us."""
    total = int(psutil.virtual_memory().total)
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        path = Path(name)
        if path.is_file():
            text = path.read_text().strip()
            if text.isdecimal():
                return min(total, int(text))
    return total


# Of a suite: their names are layers.
FOLDERS = ("regressions", "scenarios")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a child may be silent, and how much memory it may hold."""

    start_seconds: float = 300.0
    case_seconds: float = 300.0
    end_seconds: float = 60.0
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRequest:
    """One run of the suite; `known` are the active rows in the form that the suite reads.

    `cases`, `keys` (graphs) and `seconds` bound the whole run; 0 leaves it to the suite. `jobs` processes run beside
    each other, each with its part of the cases; `shard` (`0/4`) names one part. Each has `threads` threads; None:
    torch's own number.
    """

    interpreter: Path
    environ: Mapping[str, str]
    ini: Path
    files: tuple[Path, ...]
    device: str
    folder: Path
    limits: Limits
    full: bool = False
    quick: bool = False
    layers: tuple[str, ...] = ()
    cases: int = 0
    keys: int = 0
    seconds: float = 0.0
    only: tuple[str, ...] = ()
    op: str | None = None
    skip: tuple[str, ...] = ()
    fault: str | None = None
    known: Sequence[Mapping[str, Any]] = ()
    jobs: int = 1
    threads: int | None = None
    shard: str = ""
    seed: int = 0


def layer_of(file: Path) -> str:
    """Return the layer that a file's name tells: `regressions/test_<area>.py`, or `test_<layer>_<area>.py`."""
    if file.parent.name in FOLDERS:
        return file.parent.name
    return file.stem.removeprefix("test_").partition("_")[0]


def suite_command(
    request: SuiteRequest,
    files: tuple[Path, ...],
    *,
    known: Path,
    outcomes: Path,
    after: str | None = None,
    done: Path | None = None,
    estimates: bool = False,
) -> Command:
    """Return a child's command: the contract with a suite (the README of tests/device).

    `-s`: what a case writes must reach the log, since a GPU fault may be said there and nowhere else.

    Args:
        done: a JSON list of cases that are not run again.
        estimates: the child says first what its cases will take.
    """
    argv = [str(request.interpreter), "-m", "pytest", "-c", str(request.ini), *map(str, files), "-s", "-q"]
    argv += ["--rootdir", str(request.ini.parent), "--continue-on-collection-errors", "--device", request.device]
    argv += ["--full"] if request.full else []
    argv += ["--quick"] if request.quick else []
    argv += ["--layer", ",".join(request.layers)] if request.layers else []
    argv += ["--cases", str(request.cases)] if request.cases else []
    argv += ["--keys", str(request.keys)] if request.keys else []
    argv += ["--time", f"{request.seconds:.1f}"] if request.seconds else []
    argv += ["--only", ",".join(request.only)] if request.only else []
    argv += ["--op", request.op] if request.op else []
    argv += ["--skip-ids", ",".join(request.skip)] if request.skip else []
    argv += ["--shard", request.shard] if request.shard else []
    argv += ["--inject", request.fault] if request.fault else []
    argv += ["--seed", str(request.seed)] if request.seed else []
    argv += ["--known", str(known), "--outcomes", str(outcomes)]
    argv += ["--after", after] if after is not None else []
    argv += ["--done", str(done)] if done is not None else []
    argv += [] if estimates else ["--no-estimate"]
    own = {"DEVICE_SUITE_MEMORY_BYTES": str(request.limits.memory_bytes)}
    if request.threads is not None:
        # Inductor starts compilers of its own beside the process, by itself one for each core.
        own |= dict.fromkeys(("DEVICE_SUITE_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"), str(request.threads))
    return Command(argv=tuple(argv), cwd=request.folder, environ={**request.environ, **own})
