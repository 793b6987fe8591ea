"""Which cases run here: by id, by operator, by what this torch and this machine have."""

from __future__ import annotations

import difflib
import fnmatch
import json
import os
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Iterable

import torch

from .cases import Case
from .versions import is_at_least

LAYERS = ("smoke", "regressions", "scenarios", "drawn")
# The driver's watchdog ends a process that holds more bytes than this: a case that needs more is left out.
MEMORY_LIMIT = "DEVICE_SUITE_MEMORY_BYTES"
# Of the regressions --quick has what this issue showed part by part, but no whole net, whose layers are a graph each:
# what adds up more terms. All else that a graph key can buy, drawn cases buy more of (benchmarks/README.md).
_QUICK_ISSUE, _QUICK_TERMS, _QUICK_SECONDS = "82707", 512, 60.0

# CUDA compiles the special functions when they are first called (jiterator: 2 to 16 s each on an H200): as many seconds
# as so many other cases take.
_COMPILED_LATE, _CASES_FOR_COMPILING = "special_", 80


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
        """Say whether a case of the core is of this part."""
        return zlib.crc32(case_id.encode()) % self.parts == self.part

    def operators(self, drawn: Iterable[str]) -> frozenset[str]:
        """Return the operators of this part, given the ids of all drawn cases: each part has as much to do.

        What an operator's cases compile is compiled in one process.

        >>> drawn = 5 * ["add:layout:1"] + 3 * ["exp:size:1"] + 2 * ["sin:alias:1"]
        >>> [sorted(Shard(part, 2).operators(drawn)) for part in range(2)]
        [['add'], ['exp', 'sin']]
        """
        work = Counter(case_id.partition(":")[0] for case_id in drawn)
        for name in work:
            work[name] += _CASES_FOR_COMPILING * name.startswith(_COMPILED_LATE)
        loads, mine = [0] * self.parts, set()
        for name, cost in sorted(work.items(), key=lambda each: (-each[1], each[0])):
            least = loads.index(min(loads))
            loads[least] += cost
            if least == self.part:
                mine.add(name)
        return frozenset(mine)


@dataclass(frozen=True)
class Selection:
    """The options that choose cases; texts are comma-separated ids or patterns.

    `done`: ids of an interrupted run that this one goes on with.
    """

    only: str
    after: str
    without: str
    layers: tuple[str, ...] = ()
    quick: bool = False
    shard: Shard | None = None
    done: frozenset[str] = frozenset()

    def choose(self, cases: list[Case]) -> list[Case]:
        """Return the chosen cases, in their order; all of them where `after` is not one of them."""
        cases = [case for case in cases if not self.layers or case.layer in self.layers]
        if self.quick:
            cases = quick_cases(cases)
        drawn = [case.id for case in cases if case.layer == "drawn"]
        operators = self.shard.operators(drawn) if self.shard is not None else frozenset()
        ids = [case.id for case in cases]
        if self.after in ids:
            cases = cases[ids.index(self.after) + 1 :]
        return [
            case
            for case in cases
            if self._is_mine(case, operators)
            and (not self.only or _listed(case.id, self.only))
            and not _listed(case.id, self.without)
            and case.id not in self.done
        ]

    def _is_mine(self, case: Case, operators: frozenset[str]) -> bool:
        if self.shard is None:
            return True
        return case.id.partition(":")[0] in operators if case.layer == "drawn" else self.shard.holds(case.id)

    def leaves_out(self, path: Path) -> bool:
        """Say whether no case of a file can be chosen, as its layer tells; where ids are named each file may have them.

        >>> quick = Selection(only="", after="", without="", quick=True)
        >>> quick.leaves_out(Path("scenarios/test_models.py")), quick.leaves_out(Path("scenarios/test_smoke.py"))
        (True, False)
        """
        layer = path.stem[len("test_") :] if path.stem in ("test_smoke", "test_drawn") else path.parent.name
        if self.only or layer not in LAYERS:
            return False
        return (self.quick and layer == "scenarios") or bool(self.layers and layer not in self.layers)

    def unknown(self, cases: Iterable[str]) -> str:
        """Return what is wrong with the ids that were named, given all there are; an empty text where each is one.

        A pattern that begins with `[x]` need not fit anything: the driver writes so what not every release has.
        """
        named = (name.strip() for name in self.only.split(","))
        names = [name for name in named if name and not fnmatch.fnmatchcase(name, "[[]?[]]*")]
        ids = [] if not names else list(cases)
        for name in names:
            if not any(fnmatch.fnmatchcase(one, name) for one in ids):
                near = difflib.get_close_matches(name, ids, n=3, cutoff=0.8)
                return f"--only {name}: no case has this id" + (f"; did you mean {', '.join(near)}?" if near else "")
        return ""


def quick_cases(cases: list[Case]) -> list[Case]:
    """Return the cases of a file that --quick asks: smoke, the parts of #82707, and what is drawn.

    Another shape between two calls is half of what a case compiles: it is left out.
    """
    return [
        replace(case, states=tuple(state for state in case.states if state != "other"))
        for case in cases
        if case.layer in ("smoke", "drawn")
        or (case.layer == "regressions" and _QUICK_ISSUE in case.issues and _is_short(case))
    ]


def _is_short(case: Case) -> bool:
    return case.terms <= _QUICK_TERMS and case.limit_seconds <= _QUICK_SECONDS and not case.full


def load_done(path: str) -> frozenset[str]:
    """Return the ids in a JSON list, none for an empty path; raise ValueError where the file is none."""
    if not path:
        return frozenset()
    ids = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(ids, list):
        raise ValueError(f"{path}: --done takes a JSON list of ids")
    return frozenset(map(str, ids))


def _listed(case_id: str, patterns: str) -> bool:
    return any(fnmatch.fnmatchcase(case_id, pattern.strip()) for pattern in patterns.split(",") if pattern.strip())


def why_not_here(case: Case, *, device: torch.device, full: bool) -> str | None:
    """Return the reason why a case cannot be run here, or None."""
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
