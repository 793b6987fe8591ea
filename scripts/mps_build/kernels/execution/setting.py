"""What all batches of a run share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..code.compiled import Injection
from ..read.host_code import HostCode
from ..read.library import Library
from .large_host import NOTHING

Place = tuple[int, int]
"""A library's number, and a function's in it."""
Pairs = Mapping[Place, Place | None]
"""Which kernel each is compared with; None: with none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all batches of a run share.

    Args:
        reader: the socket of the server of processes that read bitcode; `machine`: of those that run kernels;
            `judge`: of the judge's.
        selected: the first library's kernels that the run examines.
        known: verdicts of earlier runs (store.py).
        version: torch's, whose known issues count.
        is_large: tensors past 2**31 and 2**32 (examine_large.py), in place of the contracts' own cases.
        host: with `is_large`, what the wheel's host code asks before it launches.
        pairs: nothing is run; a kernel (library, function) is only read, beside the one that it is compared with.
    """

    libraries: tuple[Library, ...]
    references: Mapping[str, Mapping[str, Any]]
    runtime: Path
    store: Path
    reader: Path
    machine: Path
    judge: Path
    seed: int
    is_quick: bool
    fault: Injection | None = None
    compile_only: bool = False
    selected: tuple[int, ...] = ()
    known: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pairs: Pairs | None = None
    with_answers: bool = False
    is_large: bool = False
    host: HostCode = NOTHING
    version: str | None = None
