"""What one run of the device suite is asked, and the command of a child that answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.process import Command

from .child import Limits

# Of a suite: their names are layers.
FOLDERS = ("regressions", "scenarios")


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
    plant: str | None = None
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
    """Return a child's command: the contract with tests/device/conftest.py.

    `-s`: what a case writes must reach the log, since a GPU fault may be said there and nowhere else.

    Args:
        done: a JSON list of cases that are not asked again.
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
    argv += ["--shard", request.shard] if request.shard else []
    argv += ["--plant", request.plant] if request.plant else []
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
