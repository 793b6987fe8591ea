"""Where environments are kept, and how pip reaches the world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.reporter import Reporter


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """Where environments are kept, and how pip reaches the world.

    `environ` forbids bytecode: pip looks at interpreters that are not ours (kept_environment.make_overlay).
    `wants_cuda`: torch is to run on a GPU of NVIDIA's.
    """

    cache: Path
    environ: Mapping[str, str]
    log: Path
    reporter: Reporter
    offline: bool = False
    wants_cuda: bool = False
