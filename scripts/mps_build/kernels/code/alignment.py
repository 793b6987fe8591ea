"""Addresses as Apple's processors take them: what asks for an alignment goes to the address rounded down to it.

A store of a vector and an atomic operation do so; a wrong answer of PyTorch on a Mac shows only where this is done
(https://github.com/pytorch/pytorch/pull/183790, https://github.com/pytorch/pytorch/issues/195081). Reads are left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .sizes import size_and_alignment, store_size

_STORE = re.compile(
    r"^ +store (?P<kind><\d+ x \w+>) .*, (?P<pointer>ptr addrspace\(1\)) (?P<at>%[\w.]+)"
    r"(?:, align (?P<align>\d+))?(?:, !.*)?$"
)
# What atomics.body writes.
_ATOMIC = re.compile(
    r"^ +(?:%\w+ = load|store) volatile (?P<kind>\w+)(?: %\w+)?, (?P<pointer>ptr addrspace\([13]\)) (?P<at>%a0)$"
)


def round_addresses_down(text: str, named: Mapping[str, str]) -> str:
    """Return the code with the addresses of vector stores to device memory and of atomic operations rounded down.

    Args:
        named: the module's types by name.

    >>> print(round_addresses_down("  store <4 x i8> %v, ptr addrspace(1) %p, align 4", {}))
      %p.a0 = ptrtoint ptr addrspace(1) %p to i64
      %p.b0 = and i64 %p.a0, -4
      %p.0 = inttoptr i64 %p.b0 to ptr addrspace(1)
      store <4 x i8> %v, ptr addrspace(1) %p.0, align 4
    """
    lines = []
    for number, line in enumerate(text.split("\n")):
        match = _STORE.match(line) if " store <" in line else _ATOMIC.match(line) if " volatile " in line else None
        if match is None:
            lines.append(line)
            continue
        at, pointer = match["at"], match["pointer"]
        size = _alignment(match, named)
        # A name of its own, which instrument.py still knows for an atomic operation's.
        base = at if not at[1:].isdigit() else f"%v{at[1:]}"
        lines += [
            f"  {base}.a{number} = ptrtoint {pointer} {at} to i64",
            f"  {base}.b{number} = and i64 {base}.a{number}, -{size}",
            f"  {base}.{number} = inttoptr i64 {base}.b{number} to {pointer}",
            f"{line[: match.start('at')]}{base}.{number}{line[match.end('at') :]}",
        ]
    return "\n".join(lines)


def _alignment(match: re.Match[str], named: Mapping[str, str]) -> int:
    if match.re is _ATOMIC:
        return store_size(match["kind"], named)
    return int(match["align"] or 0) or size_and_alignment(match["kind"], named)[1]
