"""Where arithmetic of 32 bits reaches an address, read from the code: it may wrap for tensors past 2**31 or 2**32."""

from __future__ import annotations

import hashlib
import re

from . import compiler
from .text import split_top, take_type

_DEFINITION = re.compile(r"^  (%[\w.]+) = (.*)$", re.MULTILINE)
_OPERAND = re.compile(r"%[\w.]+")
_ADDRESS = re.compile(r"^(?:inbounds |nuw |nusw )*(.*)$")
_WIDENED = re.compile(r"^(?:zext|sext)(?: nneg)? ")
_THROUGH = re.compile(
    r"^(?:phi|select|freeze|trunc|bitcast|insertelement|extractelement|shufflevector|add|sub|mul|shl|or)\b"
)
_PRODUCT = re.compile(r"^(mul|shl) (?:nuw |nsw )*(i32|<\d+ x i32>) (.*)$")
_SUM = re.compile(r"^(add|sub) (?:nuw |nsw )*(i32|<\d+ x i32>) (%[\w.]+), (%[\w.]+)$")
_NARROWED = re.compile(r"^trunc (?:nuw |nsw )*(?:i64|<\d+ x i64>) (.*) to (i32|<\d+ x i32>)$")
_POINTERS = re.compile(r"^(?:load|store|atomicrmw|cmpxchg)\b")
_EFFECT = re.compile(r"^(?:call|tail call|br|switch|ret|fence|unreachable)\b")
_LABEL = re.compile(r"^([\w.]+):")
# A function of numbers alone; it may be any, as long as no address is made of what it returns.
_OF_NUMBERS = re.compile(
    r"^(?:tail )?call (?:[a-z]+ )*(?:half|bfloat|float|<\d+ x (?:half|bfloat|float)>) @[^(]*\((?!.*\bptr\b)"
)
_MARKS = re.compile(r", ![\w.]+ !\d+|, align \d+| ; preds = .*$")
# No arithmetic, only what an address is made of.
PASSES = "always-inline,dce,sroa,instcombine,simplifycfg"


def narrow_addresses(text: str) -> list[str]:
    """Return the 32-bit products, sums and truncations of which an address in device memory is made.

    Args:
        text: a module that LLVM prints, everything inlined (`inlined`).

    >>> code = '''  %2 = mul i32 %0, %1
    ...   %3 = zext i32 %2 to i64
    ...   %4 = getelementptr float, ptr addrspace(1) %b, i64 %3'''
    >>> narrow_addresses(code), narrow_addresses(code.replace("mul i32", "and i32"))
    (['mul i32 %0, %1'], [])
    """
    found: dict[str, None] = {}
    for function in text.split("\ndefine "):
        defined = dict(_DEFINITION.findall(function))
        for operation in defined.values():
            for index in _indices(operation):
                for each in _narrow(index, defined):
                    found[each] = None
    return list(found)


def _indices(operation: str) -> list[str]:
    """Return the values by which a `getelementptr` into device or constant memory moves."""
    if not operation.startswith("getelementptr "):
        return []
    parts = split_top(_ADDRESS.sub(r"\1", operation.removeprefix("getelementptr ")))
    if len(parts) < 3 or not parts[1].startswith(("ptr addrspace(1)", "ptr addrspace(2)")):
        return []
    return [value for _, value in map(take_type, parts[2:]) if value.startswith("%")]


def _narrow(index: str, defined: dict[str, str]) -> list[str]:
    found, seen, queue = [], {index}, [index]
    while queue:
        operation = defined.get(queue.pop(), "")
        if _PRODUCT.match(operation) or _SUM.match(operation) or _NARROWED.match(operation):
            found.append(re.sub(r", ![\w.]+ !\d+", "", operation))
        elif not (_WIDENED.match(operation) or _THROUGH.match(operation)):
            continue
        for name in _OPERAND.findall(operation):
            if name not in seen:
                seen.add(name)
                queue.append(name)
    return found


def address_digest(text: str) -> str:
    """Return a digest of how a kernel moves: its branches, and all of which addresses and conditions are made.

    Two kernels of one form with equal digests touch the same places in launches of the same sizes, whatever they
    compute with what lies there.

    Args:
        text: a module that LLVM prints, everything inlined (`inlined`).
    """
    digest = hashlib.sha256()
    for function in text.split("\ndefine ")[1:]:
        lines = [_MARKS.sub("", line) for line in function.splitlines()]
        defined = {match[1]: match[2] for line in lines if (match := _DEFINITION.match(line))}
        digest.update(_renamed("\n".join(_kept(lines, defined))).encode())
    return digest.hexdigest()[:32]


def _renamed(text: str) -> str:
    """Return a text with its values named by the order in which they appear.

    >>> _renamed("%a = add i32 %7, %a")
    '%v0 = add i32 %v1, %v0'
    """
    names: dict[str, str] = {}
    return _OPERAND.sub(lambda match: names.setdefault(match[0], f"%v{len(names)}"), text)


def _kept(lines: list[str], defined: dict[str, str]) -> list[str]:
    """Return the lines that decide where a function reads and writes; stored values are left out."""
    needed: set[str] = set()
    queue: list[str] = []
    for line in lines:
        queue += _OPERAND.findall(_aim(line))
    while queue:
        name = queue.pop()
        if name in needed:
            continue
        needed.add(name)
        if name in defined:
            queue += _OPERAND.findall(defined[name])
    kept = []
    for line in lines:
        match = _DEFINITION.match(line)
        if match and match[1] in needed:
            kept.append(line)
        elif aim := _aim(line):
            kept.append(aim)
    return kept


def _aim(line: str) -> str:
    """Return of a line that has an effect, or touches memory, what decides where; nothing of any other."""
    if label := _LABEL.match(line):
        return f"%{label[1]}:"
    match = _DEFINITION.match(line)
    operation = match[2] if match else line.strip()
    if operation.startswith("store "):
        value, pointer = split_top(operation.removeprefix("store "))[:2]
        return f"store {take_type(value)[0]}, {pointer}"
    if _POINTERS.match(operation) or (_EFFECT.match(operation) and not (match and _OF_NUMBERS.match(operation))):
        return operation
    return ""


def inlined(text: str) -> str:
    """Return a translated module (rewrite.py) with all helpers inlined into its entry."""
    everywhere = re.sub(
        r"^(define internal .*\)) nounwind \{$", r"\1 alwaysinline nounwind {", text, flags=re.MULTILINE
    )
    return compiler.optimised(everywhere, PASSES)
