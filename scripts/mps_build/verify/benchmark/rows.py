"""The rows of the benchmark by name: a wrong one is refused before an environment is made.

benchmarks/device/device_benchmark/workloads.py has the rows themselves, and needs torch to say which; a test compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from mps_build.common.errors import UsageError

_MODELS = ("resnet50", "vgg16", "decoder", "bert")
_KERNELS = ("matmul", "matmul_bf16", "conv", "attention", "layer_norm")
_COPIES = tuple(f"copy_{way}_{size}" for size in ("4kB", "1MB", "256MB") for way in ("in", "out"))
ROWS = (
    *(f"{name}:kernel" for name in (*_KERNELS, *_COPIES)),
    *(f"{name}:{mode}" for mode in ("inference", "training") for name in _MODELS),
    "largest_batch:memory",
)


def check_rows(only: Sequence[str]) -> None:
    """Refuse a name that is no row's (`bert:training`) and no group's (`bert`).

    Raises:
        UsageError: there is one; all such are named, with the nearest that there are.
    """
    names = dict.fromkeys([*(row.partition(":")[0] for row in ROWS), *ROWS])
    unknown = [name for name in only if name not in names]
    if unknown:
        near = dict.fromkeys(match for name in unknown for match in get_close_matches(name, names, n=2))
        meant = f"did you mean {', '.join(near)}? " if near else ""
        there = ", ".join(name for name in names if ":" not in name)
        raise UsageError(f"no row {', '.join(unknown)}", hint=f"{meant}rows: {there}; or one's mode: bert:training")
