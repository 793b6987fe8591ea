"""How a program is run, and what a run leaves."""

from __future__ import annotations

from dataclasses import dataclass, field

from .troubles import Trouble

FORWARD, REVERSE, SHUFFLED, SIMDGROUPS_IN_TURN = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """How a program is run: results must not depend on it.

    Args:
        poison: the byte that fills outputs and threadgroup memory.
        at_begin: buffers begin at a protected page; else they end at one.
        order: of the threads.
        narrow: another threadgroup size for `free` steps.
        flush: denormals become zero, as on the GPU.
        track: look for races (only cooperative kernels are instrumented).
        aligned: all buffers on 16 bytes, as kernels need that load vectors; else they end exactly at the page.
    """

    poison: int = 0xA5
    at_begin: bool = False
    order: int = FORWARD
    narrow: bool = False
    flush: bool = False
    track: bool = False
    milliseconds: int = 5000
    seed: int = 1
    aligned: bool = False


@dataclass(slots=True, kw_only=True)
class Ran:
    """What a run left behind: each buffer's bytes, and trouble."""

    contents: dict[int, bytes] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    threads: int = 0
    inactive: int = 0
    divergent: int = 0
    unwritten: int = 0
