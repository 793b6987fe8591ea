"""Rules that inject a fault into a kernel's LLVM IR: each finds places in the text, and changes one of them.

A rule is a pattern on one line and what the line becomes. Only lines inside functions are looked at.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Change = Callable[[re.Match[str]], str | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of fault: which lines, and what becomes of them (None: this line cannot take it)."""

    kind: str
    pattern: re.Pattern[str]
    change: Change


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at one line of a kernel."""

    kind: str
    line: int
    before: str
    after: str


_OTHER = {
    "fadd": "fsub", "fsub": "fadd", "fmul": "fadd", "fdiv": "fmul", "add": "sub", "sub": "add", "mul": "add",
    "and": "or", "or": "and", "xor": "or", "shl": "lshr", "lshr": "shl", "ashr": "lshr", "udiv": "urem", "urem": "udiv",
    "sdiv": "srem", "srem": "sdiv",
}  # fmt: skip
_EDGE = {
    "ult": "ule", "ule": "ult", "ugt": "uge", "uge": "ugt", "slt": "sle", "sle": "slt", "sgt": "sge", "sge": "sgt",
    "eq": "ne", "ne": "eq", "olt": "ole", "ole": "olt", "ogt": "oge", "oge": "ogt", "oeq": "one", "une": "ueq",
}  # fmt: skip
_CALLS = {
    "air.fmax": "air.fmin", "air.fmin": "air.fmax", "air.min.": "air.max.", "air.max.": "air.min.",
    "air.sin.": "air.cos.", "air.cos.": "air.sin.", "air.exp.": "air.exp2.", "air.log.": "air.log2.",
    "air.floor.": "air.ceil.", "air.ceil.": "air.floor.", "air.simd_max": "air.simd_min",
    "air.simd_min": "air.simd_max", "air.atomic.global.add.s": "air.atomic.global.sub.s",
}  # fmt: skip


def _operation(match: re.Match[str]) -> str:
    return f"{match[1]}{_OTHER[match[2]]} {_without_flags(match[3])}"


def _without_flags(text: str) -> str:
    return re.sub(r"\b(nuw|nsw|exact|disjoint) ", "", text)


def _call(match: re.Match[str]) -> str | None:
    for name, other in _CALLS.items():
        if name in match[0]:
            return match[0].replace(name, other)
    return None


def _constant(match: re.Match[str]) -> str | None:
    number = int(match[3])
    return f"{match[1]}{match[2]}{number + 1}{match[4]}" if abs(number) < 1 << 40 else None


def _float_constant(match: re.Match[str]) -> str | None:
    """A double's hexadecimal digits: the lowest but five bits of a float's mantissa, or the exponent, change."""
    bits = int(match[2], 16)
    return None if bits & 0x7FF0000000000000 == 0x7FF0000000000000 else f"{match[1]}0x{bits ^ 1 << 40:016X}{match[3]}"


def _decimal(match: re.Match[str]) -> str:
    return f"{match[1]}{float(match[2]) * 1.5 + 0.25:e}{match[3]}"


def _index(match: re.Match[str]) -> str | None:
    """The next element; of a struct the field before, since the first may be the only one."""
    index = int(match[2])
    if "struct" not in match[1] and '%"' not in match[1]:
        return f"{match[1]}{index + 1}"
    return f"{match[1]}{index - 1}" if index else None


def _stride(match: re.Match[str]) -> str:
    return f"{match[1]}add {match[2]}"


def _narrow(match: re.Match[str]) -> str:
    """A 32-bit value that becomes 64 bits long goes by way of 8."""
    name, value = match[2], match[4]
    return f"  %n{name[1:]} = trunc i32 {value} to i8\n  {name} = {match[3]} i8 %n{name[1:]} to i64"


def _narrow_float(match: re.Match[str]) -> str:
    name, rest = match[1], match[2]
    wide, half = f"%w{name[1:]}", f"%h{name[1:]}"
    return f"  {wide} = {rest}\n  {half} = fptrunc float {wide} to half\n  {name} = fpext half {half} to float"


def _barrier(match: re.Match[str]) -> str:
    del match
    return "  ; a barrier was here"


_NAME = r"(?:%[\w.]+)"
RULES = (
    Rule("operation", re.compile(rf"^( +{_NAME} = )({'|'.join(_OTHER)}) (.*)$"), _operation),
    Rule("operation", re.compile(r"^ .*call .*@air\.(?:fmax|fmin|min|max|sin|cos|exp|log|floor|ceil|simd_m|atomic).*$"),
         _call),
    Rule("constant", re.compile(rf"^( +{_NAME} = (?:add|sub|mul|shl|lshr|and|or|icmp) .*?)(, )(-?\d+)((?:,.*)?)$"),
         _constant),
    Rule("constant", re.compile(r"^( .*\b(?:float|double|half|bfloat) .*?)0x([0-9A-F]{16})(.*)$"), _float_constant),
    Rule("constant", re.compile(r"^( +%[\w.]+ = f.*?)(-?\d\.\d+e[+-]\d\d)(.*)$"), _decimal),
    Rule("index", re.compile(rf"^( +{_NAME} = getelementptr .*i(?:32|64) )(\d+)$"), _index),
    Rule("stride", re.compile(rf"^( +{_NAME} = )mul (?:nuw |nsw )*(i(?:32|64) %[\w.]+, %[\w.]+)$"), _stride),
    Rule("comparison", re.compile(rf"^( +{_NAME} = (?:icmp|fcmp) )(\w+)( .*)$"),
         lambda match: f"{match[1]}{_EDGE[match[2]]}{match[3]}" if match[2] in _EDGE else None),
    Rule("barrier", re.compile(r"^ +(?:tail )?call void @air\.(?:wg|simdgroup)\.barrier\(.*$"), _barrier),
    Rule("width", re.compile(rf"^( +)({_NAME}) = (zext|sext) (?:nneg )?i32 (%[\w.]+) to i64$"), _narrow),
    Rule("width", re.compile(rf"^ +({_NAME}) = ((?:fmul|fadd|fsub|fdiv) float .*)$"), _narrow_float),
)  # fmt: skip


def faults_of(text: str) -> Iterator[Fault]:
    """Yield every fault that the rules can inject into a kernel."""
    inside = False
    for number, line in enumerate(text.splitlines()):
        if line.startswith("define "):
            inside = True
        elif line.startswith("}"):
            inside = False
        if not inside:
            continue
        bare = line.partition(", !")[0]
        for rule in RULES:
            match = rule.pattern.match(bare)
            after = rule.change(match) if match else None
            if after is not None and after != bare:
                yield Fault(rule.kind, number, bare.strip(), after)


def draw(text: str, source: random.Random) -> Fault | None:
    """Return one fault: every kind that the kernel can take is as likely as any other."""
    by_kind: dict[str, list[Fault]] = {}
    for fault in faults_of(text):
        by_kind.setdefault(fault.kind, []).append(fault)
    return source.choice(by_kind[source.choice(sorted(by_kind))]) if by_kind else None


def inject(text: str, fault: Fault) -> str:
    """Return the kernel with the fault in it."""
    lines = text.splitlines()
    lines[fault.line] = fault.after
    if "@air.atomic.global.sub" in fault.after:
        lines.append(re.sub(r"\(.*", "", fault.after))
    return "\n".join(lines) + "\n"
