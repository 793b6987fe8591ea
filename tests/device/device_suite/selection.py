"""Which cases run here: by id, by operator, by what this torch and this machine have."""

from __future__ import annotations

import fnmatch
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

import torch

from .cases import Case
from .touch import TouchMap
from .versions import is_at_least

# The driver's watchdog ends a process that holds more bytes than this: a case that needs more is left out.
MEMORY_LIMIT = "DEVICE_SUITE_MEMORY_BYTES"


@dataclass(frozen=True)
class Shard:
    """One of several parts of the suite, for processes beside each other."""

    part: int
    parts: int

    @classmethod
    def of(cls, text: str) -> Shard | None:
        """Return the part that a text names, None for an empty one; raise ValueError where it names none.

        >>> Shard.of("1/4"), Shard.of("")
        (Shard(part=1, parts=4), None)
        """
        if not text:
            return None
        part, _, parts = text.partition("/")
        if not (part.isdigit() and parts.isdigit() and int(part) < int(parts)):
            raise ValueError(f"--shard takes I/N with 0 <= I < N, not {text}")
        return cls(int(part), int(parts))

    def holds(self, case_id: str) -> bool:
        """Say whether a case is of this part. What an operator's cases compile is compiled in one process.

        >>> [Shard(part, 3).holds("condition-exp-int8") for part in range(3)]
        [False, False, True]
        >>> [Shard(part, 3).holds("overload-exp.out") for part in range(3)]
        [False, False, True]
        >>> [Shard(part, 3).holds("exp:gradient:4") for part in range(3)]
        [False, False, True]
        """
        operator, is_drawn, _ = case_id.partition(":")
        area = operator if is_drawn else [*case_id.split("-", 2), ""][1].partition(".")[0]
        return zlib.crc32(area.encode()) % self.parts == self.part


@dataclass(frozen=True)
class Selection:
    """The options that choose cases; texts are comma-separated ids or patterns."""

    only: str
    after: str
    without: str
    operator: str
    touch: TouchMap
    shard: Shard | None = None

    def choose(self, cases: list[Case]) -> list[Case]:
        """Return the chosen cases, in their order; all of them where `after` is not one of them."""
        ids = [case.id for case in cases]
        if self.after in ids:
            cases = cases[ids.index(self.after) + 1 :]
        return [
            case
            for case in cases
            if (self.shard is None or self.shard.holds(case.id))
            and (not self.only or _listed(case.id, self.only))
            and not _listed(case.id, self.without)
            and (not self.operator or self.touch.touches(case.id, self.operator))
        ]


def _listed(case_id: str, patterns: str) -> bool:
    return any(fnmatch.fnmatchcase(case_id, pattern.strip()) for pattern in patterns.split(",") if pattern.strip())


def why_not_here(case: Case, *, device: torch.device, full: bool) -> str | None:
    """Return the reason why a case cannot be asked here, or None."""
    if case.full and not full:
        return "only with --full"
    if case.since is not None and not is_at_least(case.since):
        return f"needs torch {case.since}, this is {torch.__version__}"
    if case.devices and device.type not in case.devices:
        return f"a question for {', '.join(case.devices)} only"
    if case.memory_bytes == 0:
        return None
    free, limit = free_memory_bytes(), int(os.environ.get(MEMORY_LIMIT, case.memory_bytes))
    if case.memory_bytes > min(free, limit):
        what = "are free" if free <= limit else "are what the watchdog allows"
        return f"needs {case.memory_bytes / 2**30:.1f} GiB, {min(free, limit) / 2**30:.1f} GiB {what}"
    return None


def free_memory_bytes() -> int:
    """Return the memory the host can still give; on macOS half of all, which the GPU shares."""
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        for line in meminfo.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):
        return 4 << 30


def prepare_device(name: str) -> torch.device:
    """Return the device, set to compute as exactly as it can; raise ValueError where it is not there."""
    device = torch.device(name)
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise ValueError("torch sees no CUDA device")
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.deterministic = True
        if hasattr(torch.backends.cuda, "enable_cudnn_sdp"):  # it compiles a program for each shape, for seconds
            torch.backends.cuda.enable_cudnn_sdp(False)
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        if hasattr(torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction"):
            torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    if device.type == "mps":
        backend = getattr(torch.backends, "mps", None)
        if backend is None or not backend.is_available():
            raise ValueError("torch sees no MPS device")
    return device
