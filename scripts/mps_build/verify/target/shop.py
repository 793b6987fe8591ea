"""Where environments are kept, and how pip reaches the world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.reporter import Reporter
from mps_build.common.wheels.pip_call import Limits, limits_of_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """Where environments are kept, and how pip reaches the world.

    `environ` forbids bytecode: pip looks at interpreters that are not ours (kept_environment.make_overlay).
    What it brings will run; `trust` takes it without a hash of the index too.
    `wants_cuda`: torch is to run on a GPU of NVIDIA's.
    """

    cache: Path
    environ: Mapping[str, str]
    log: Path
    reporter: Reporter
    offline: bool = False
    trust: bool = False
    wants_cuda: bool = False

    @property
    def limits(self) -> Limits:
        """What pip is held to."""
        return limits_of_run(trust=self.trust)
