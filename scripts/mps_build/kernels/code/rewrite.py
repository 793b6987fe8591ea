"""A checked module, rewritten for this machine: AIR's functions defined, threadgroup memory placed, one entry."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..read.metadata import Metadata
from .compiled import ARENA_BASE, ARENA_STEP, Variable
from .entries import UnknownArgument, entry, row
from .intrinsics import define
from .simdgroups import COOPERATIVE
from .text import (
    NAME,
    ModuleText,
    NotTranslated,
    UnknownType,
    parse_declaration,
    size_and_alignment,
    split_top,
    store_size,
    take_type,
)

# Addresses as Apple's processors take them: what asks for an alignment goes to the address rounded down to it.
#
# A store of a vector and an atomic operation do so; a wrong answer of PyTorch on a Mac shows only where this is done
# (https://github.com/pytorch/pytorch/pull/183790, https://github.com/pytorch/pytorch/issues/195081). Reads are left.

_STORE = re.compile(
    r"^ +store (?P<kind><\d+ x \w+>) .*, (?P<pointer>ptr addrspace\(1\)) (?P<at>%[\w.]+)"
    r"(?:, align (?P<align>\d+))?(?:, !.*)?$"
)
# What intrinsics.atomic writes.
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


# The bits of a bfloat, taken by way of float.
#
# LLVM 22 asks for the sign of a bfloat as for that of a float (TargetLowering::SimplifyDemandedBits makes an FGETSIGN
# of 32 bits; float16 is left out there, bfloat is not) and shifts it as 16 bits: where an operation uses nothing but
# the sign of `bitcast bfloat to i16`, an assertion ends the process. A bfloat is the upper half of a float.

_BITS = re.compile(r"^ *(%[^ ]+) = bitcast bfloat ([^ ,]+) to i16$", re.MULTILINE)


def widen_bfloat_bits(text: str) -> str:
    """Return the code with the bits of each bfloat taken from a float.

    >>> print(widen_bfloat_bits("  %2 = bitcast bfloat %1 to i16"))
      %bits0.float = fpext bfloat %1 to float
      %bits0.word = bitcast float %bits0.float to i32
      %bits0.upper = lshr i32 %bits0.word, 16
      %2 = trunc i32 %bits0.upper to i16
    """
    numbers = itertools.count()

    def widened(match: re.Match[str]) -> str:
        n, result, value = next(numbers), *match.groups()
        return (
            f"  %bits{n}.float = fpext bfloat {value} to float\n"
            f"  %bits{n}.word = bitcast float %bits{n}.float to i32\n"
            f"  %bits{n}.upper = lshr i32 %bits{n}.word, 16\n"
            f"  {result} = trunc i32 %bits{n}.upper to i16"
        )

    return _BITS.sub(widened, text) if "bitcast bfloat" in text else text


# Integer division: by zero it stops a processor, and leaves a GPU with some number; here it gives all ones.

_DIVISION = re.compile(r"^(\s*%[\w.]+ = )([su])(div|rem) (?:exact )?(.*)$")


def guard_divisions(text: str) -> str:
    """Return the code with every division by a variable replaced by one that does not trap.

    >>> print(guard_divisions("  %3 = srem i32 %1, %2").splitlines()[0])
      %3 = call i32 @"rt.srem.i32"(i32 %1, i32 %2)
    """
    if "div " not in text and "rem " not in text:
        return text
    lines, used = [], set()
    for line in text.splitlines():
        match = _DIVISION.match(line)
        if match:
            kind, rest = take_type(match[4])
            first, second = split_top(rest)
            if not re.fullmatch(r"[1-9]\d*", second):
                used.add((match[2], match[3], kind))
                name = f'@"rt.{match[2]}{match[3]}.{kind}"'
                line = f"{match[1]}call {kind} {name}({kind} {first}, {kind} {second})"  # noqa: PLW2901
        lines.append(line)
    return "\n".join([*lines, *(_definition(*each) for each in sorted(used))])


def _definition(sign: str, what: str, kind: str) -> str:
    bits = int(re.findall(r"i(\d+)", kind)[0])
    truth = kind.replace(f"i{bits}", "i1")
    one, most, least = (_constant(kind, number) for number in (1, -1, -(1 << (bits - 1))))
    lines = [
        f'define internal {kind} @"rt.{sign}{what}.{kind}"({kind} %a, {kind} %b) alwaysinline nounwind {{',
        f"  %z = icmp eq {kind} %b, zeroinitializer" if kind.startswith("<") else f"  %z = icmp eq {kind} %b, 0",
    ]
    bad = "%z"
    if sign == "s":
        lines += [f"  %m = icmp eq {kind} %a, {least}", f"  %n = icmp eq {kind} %b, {most}"]
        lines += [f"  %o = and {truth} %m, %n", f"  %w = or {truth} %z, %o"]
        bad = "%w"
    lines += [
        f"  %s = select {truth} {bad}, {kind} {one}, {kind} %b",
        f"  %q = {sign}{what} {kind} %a, %s",
        f"  %r = select {truth} %z, {kind} {most}, {kind} %q",
        f"  ret {kind} %r\n}}",
    ]
    return "\n".join(lines)


def _constant(kind: str, number: int) -> str:
    if not kind.startswith("<"):
        return str(number)
    count, _, scalar = kind[1:-1].partition(" x ")
    return "<" + ", ".join(f"{scalar} {number}" for _ in range(int(count))) + ">"


# A call of the runtime before every load and store that another thread may see.

_SPACE = re.compile(r"^ptr addrspace\(([123])\) ")
_TAKEN_BY_ATOMIC = re.compile(r" %a0(?:\.\d+)?$")


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
    # Atomic operations (intrinsics.atomic) may meet each other, not a plain access.
    atomic = 2 if " volatile " in bare and _TAKEN_BY_ATOMIC.search(bare) else 0
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


_FLAGS = re.compile(r" (?:nuw|nsw|inbounds|reassoc|nsz|arcp|contract|afn|nnan|ninf|fast)(?= )")
_PROMISES = re.compile(
    r" (?:noundef|nonnull|noalias|readonly|writeonly|readnone|returned|immarg|captures\(none\)|nocapture"
    r"|dereferenceable(?:_or_null)?\(\d+\))(?=[ ,)])"
)
_STRING_ATTRIBUTE = re.compile(r' "air-[^"]*"(?:="[^"]*")?')
_HEADER = re.compile(
    rf"define (?:[\w]+ )*?(?=(?:fastcc |void|i\d|ptr|<|\{{|\[|half|float|bfloat|double|%))"
    rf"(.*?)({NAME})\((.*)\)[^)]*\{{$"
)
_VARIABLE = re.compile(rf"^({NAME}) = .*?\baddrspace\(3\) global (.*)$")
_REFERENCE = re.compile(NAME)
_RUNTIME = """\
declare void @rt_barrier(i32, i32)
declare void @rt_simd(i32, i32, ptr, ptr, ptr, i32, i32)
declare i32 @rt_lane()
declare i32 @rt_matrix_row(i32)
declare i32 @rt_matrix_column(i32)
"""


# What the runtime answers for the thread that it has started; of a row it starts the first.
_ASKS_ITS_LANE = "@rt_lane("


class Untranslated(Exception):
    """The kernel is sound, as far as it was looked at, and needs what is not translated here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """LLVM IR for this machine, and what a run must know of it."""

    text: str
    variables: tuple[Variable, ...]
    is_cooperative: bool


def translate(
    module: ModuleText,
    metadata: Metadata,
    *,
    datalayout: str,
    triple: str,
    track: bool,
    rows: bool = False,
    rounds_down: bool = False,
) -> Translation:
    """Return the module that LLVM compiles.

    Args:
        track: call the runtime before each load and store of device and threadgroup memory (race detection).
        rows: with an entry for a row of threads, where they run one after another.
        rounds_down: misaligned vector stores and atomic operations go where Apple's processors let them go.

    Raises:
        Untranslated: an AIR function that is not known here, or a type whose size is not.
    """
    try:
        variables, places = _place_variables(module)
        definitions = [_exported(lines) for lines in module.definitions]
        helpers, declared = _helpers(module)
    except (NotTranslated, UnknownType) as error:
        raise Untranslated(f"it needs {error}, which is not translated") from error
    body = "\n".join(part for parts in definitions for part in parts)
    body = _REFERENCE.sub(lambda match: places.get(match[0], match[0]), body) if places else body
    body = body.replace("@llvm.fmuladd.", "@llvm.fma.")
    plain = [line for line in module.globals if not _VARIABLE.match(line)]
    types = [f"{name} = type {rest}" for name, rest in module.types.items()]
    code = widen_bfloat_bits(guard_divisions(_shrink(body + "\n" + helpers)))
    if rounds_down:
        code = round_addresses_down(code, module.types)
    if track:
        code = instrument(code, module.types)
    is_cooperative = COOPERATIVE.search("\n".join(module.declarations)) is not None
    try:
        entries = [entry(metadata)]
        if rows and not is_cooperative and _ASKS_ITS_LANE not in helpers:
            entries.append(row(metadata))
    except UnknownArgument as error:
        raise Untranslated(str(error)) from error
    parts = [
        f'target datalayout = "{datalayout}"\ntarget triple = "{triple}"',
        *types,
        *plain,
        code,
        _RUNTIME,
        *declared,
        *entries,
    ]
    return Translation(text="\n".join(parts) + "\n", variables=variables, is_cooperative=is_cooperative)


def _place_variables(module: ModuleText) -> tuple[tuple[Variable, ...], dict[str, str]]:
    variables: list[Variable] = []
    places: dict[str, str] = {}
    for line in module.globals:
        match = _VARIABLE.match(line)
        if not match:
            continue
        kind, rest = take_type(match[2])
        size, align = size_and_alignment(kind, module.types)
        base = ARENA_BASE + len(variables) * ARENA_STEP
        if size > ARENA_STEP // 2:
            raise UnknownType(f"threadgroup memory of {size} bytes")
        begin = base + ARENA_STEP // 2 - (size + max(align, 4) - 1) // max(align, 4) * max(align, 4)
        begin -= begin % max(align, 4)
        is_zero = not rest.startswith(("undef", "poison"))
        variables.append(Variable(address=begin, size=size, is_zero=is_zero))
        places[match[1]] = f"inttoptr (i64 {begin} to ptr addrspace(3))"
    return tuple(variables), places


def _exported(lines: tuple[str, ...]) -> list[str]:
    """Make a function internal; drop the promises about pointers and overflow, which a faulty kernel breaks."""
    match = _HEADER.match(lines[0])
    if not match:
        raise UnknownType(lines[0][:80])
    header = f"define internal {match[1]}{match[2]}({match[3]}) nounwind {{"
    body = "\n".join(line for line in lines[1:] if "@llvm.lifetime." not in line)
    return [_PROMISES.sub("", _STRING_ATTRIBUTE.sub("", header)), _PROMISES.sub("", _FLAGS.sub("", body))]


def _helpers(module: ModuleText) -> tuple[str, list[str]]:
    """Return definitions of AIR's functions, and declarations of LLVM's."""
    definitions, declared = [], []
    for line in module.declarations:
        if "@llvm." in line:
            if "llvm.lifetime." not in line:
                declared.append(_PROMISES.sub("", line.replace("@llvm.fmuladd.", "@llvm.fma.")))
            continue
        declaration = parse_declaration(line)
        if not declaration.name.startswith("air."):
            raise NotTranslated(declaration.name)
        definitions.append(define(declaration))
    text = "".join(definitions)
    defined = set(re.findall(r"@(llvm\.[\w.]+)\(", "\n".join(declared)))
    for name in sorted(set(re.findall(r"@((?:llvm|rt)[._][\w.]+)\(", text)) - defined):
        if name not in _RUNTIME:
            declared.append(_declare(name, text))
    return text, list(dict.fromkeys(declared))


def _declare(name: str, text: str) -> str:
    """Return a declaration that fits a call."""
    match = re.search(rf"call (.*?) @{re.escape(name)}\((.*)\)", text)
    if not match:
        raise NotTranslated(name)
    from .text import split_top

    parameters = ", ".join(take_type(part)[0] for part in split_top(match[2]))
    # The runtime's mathematics reads no memory: what is not needed is dropped.
    pure = " memory(none) nounwind willreturn" if name.startswith("rt_") else ""
    return f"declare {match[1]} @{name}({parameters}){pure}"


def _shrink(text: str) -> str:
    """Simdgroup matrices have 64 elements, of which a lane uses two: <2 x float> compiles many times faster."""
    if "<64 x " not in text or "shufflevector <64" in text:
        return text
    return re.sub(r"<64 x (half|float|bfloat|i32|i16)>", r"<2 x \1>", text)
