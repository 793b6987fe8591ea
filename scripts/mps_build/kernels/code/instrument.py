"""A call of the runtime before every load and store that another thread may see."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .sizes import split_top, store_size, take_type

_SPACE = re.compile(r"^ptr addrspace\(([123])\) ")
_ATOMIC = re.compile(r" %a0(?:\.\d+)?$")


def instrument(text: str, named: Mapping[str, str]) -> str:
    """Return the code with `rt_access(address, bytes, what)` before accesses of device and threadgroup memory."""
    lines = []
    used = set()
    for line in text.splitlines():
        access = _access(line, named) if "addrspace(" in line else None
        if access is not None:
            space, pointer, size, what = access
            used.add(space)
            lines.append(f"  call void @rt_access{space}(ptr addrspace({space}) {pointer}, i32 {size}, i32 {what})")
        lines.append(line)
    lines += [f"declare void @rt_access{space}(ptr addrspace({space}), i32, i32)" for space in sorted(used)]
    return "\n".join(lines)


def _access(line: str, named: Mapping[str, str]) -> tuple[str, str, int, int] | None:
    """Return space, pointer, bytes, and what is done: 0 a load, 1 a store, 2 more for an atomic one.

    >>> _access("  %3 = load float, ptr addrspace(1) %2, align 4", {})
    ('1', '%2', 4, 0)
    >>> _access("  store <2 x half> %3, ptr addrspace(3) inttoptr (i64 64 to ptr addrspace(3)), align 4", {})
    ('3', 'inttoptr (i64 64 to ptr addrspace(3))', 4, 1)
    >>> _access("  store volatile i32 %n, ptr addrspace(1) %a0", {})
    ('1', '%a0', 4, 3)
    >>> _access("  store volatile i32 %n, ptr addrspace(1) %a0.7", {})
    ('1', '%a0.7', 4, 3)
    """
    bare = line.strip()
    # Atomic operations (atomics.body) may meet each other, not a plain access.
    atomic = 2 if " volatile " in bare and _ATOMIC.search(bare) else 0
    if bare.startswith("store "):
        parts = split_top(bare[6:].removeprefix("volatile "))
        value, target, is_write = parts[0], parts[1], 1
    elif " = load " in bare:
        parts = split_top(bare.partition(" = load ")[2].removeprefix("volatile "))
        value, target, is_write = parts[0], parts[1], 0
    else:
        return None
    match = _SPACE.match(target)
    if not match:
        return None
    return match[1], target[match.end() :], store_size(take_type(value)[0], named), is_write + atomic
