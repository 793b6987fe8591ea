"""Atomic operations: one host thread runs, and threads take turns only at barriers, so plain memory does."""

from __future__ import annotations

from typing import Protocol


class Declared(Protocol):
    """What is needed of a declaration."""

    @property
    def name(self) -> str:
        """The intrinsic's name in the IR, such as `air.atomic.global.add.s.i32`."""

    @property
    def result(self) -> str:
        """The type of its result in the IR."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The types of its parameters in the IR, in order."""

    @property
    def operation(self) -> str:
        """What it does: load, store, add, max and the like."""

    @property
    def is_unsigned(self) -> bool:
        """True if the operands are compared as unsigned numbers."""


def body(declaration: Declared) -> str | None:
    """Return the instructions of an atomic operation, or None if it is not known."""
    what = declaration.operation.split(".")[2:]
    if declaration.operation == "atomic.fence":
        return "  ret void"
    if not what or what[0] not in ("load", "store", "cmpxchg", *_UPDATES):
        return None
    pointer, result = declaration.parameters[0], declaration.result
    if what[0] == "load":
        return f"  %r = load volatile {result}, {pointer} %a0\n  ret {result} %r"
    value = declaration.parameters[1]
    if what[0] == "store":
        return f"  store volatile {value} %a1, {pointer} %a0\n  ret void"
    if what[0] == "cmpxchg":
        return _exchange_if_equal(declaration)
    update = _update(what[0], value, is_unsigned=declaration.is_unsigned)
    if update is None:
        return None
    answer = "  ret void" if result == "void" else f"  ret {result} %o"
    return (
        f"  %o = load volatile {value}, {pointer} %a0\n{update}\n  store volatile {value} %n, {pointer} %a0\n{answer}"
    )


_UPDATES = ("add", "sub", "min", "max", "and", "or", "xor", "xchg", "exchange")


def _update(what: str, kind: str, *, is_unsigned: bool) -> str | None:
    is_float = not kind.startswith("i")
    if what in ("xchg", "exchange"):
        return f"  %n = select i1 true, {kind} %a1, {kind} %o"
    if is_float:
        if what not in ("add", "sub"):
            return None
        return f"  %n = f{what} {kind} %o, %a1"
    if what in ("min", "max"):
        return f"  %n = call {kind} @llvm.{'u' if is_unsigned else 's'}{what}.{kind}({kind} %o, {kind} %a1)"
    return f"  %n = {what} {kind} %o, %a1"


def _exchange_if_equal(declaration: Declared) -> str:
    """Compare bits, store on success, and leave what was found in `expected`; it never fails by chance."""
    pointer, expected, kind = declaration.parameters[:3]
    bits = {"float": "i32", "double": "i64", "half": "i16", "bfloat": "i16"}.get(kind, kind)
    return (
        f"  %o = load volatile {bits}, {pointer} %a0\n  %e = load {bits}, {expected} %a1\n"
        f"  %v = bitcast {kind} %a2 to {bits}\n  %same = icmp eq {bits} %o, %e\n"
        f"  %n = select i1 %same, {bits} %v, {bits} %o\n  store volatile {bits} %n, {pointer} %a0\n"
        f"  store {bits} %o, {expected} %a1\n  %r = bitcast {bits} %o to {kind}\n  ret {kind} %r"
    )
