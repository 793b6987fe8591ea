"""A checked module, rewritten for this machine: AIR's functions defined, threadgroup memory placed, one entry."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..read.metadata import Metadata
from .alignment import round_addresses_down
from .bfloat import widen_bfloat_bits
from .compiled import ARENA_BASE, ARENA_STEP, Variable
from .declarations import NotTranslated, parse_declaration
from .division import guard_divisions
from .entries import UnknownArgument, entry, row
from .instrument import instrument
from .intrinsics import define
from .simdgroups import COOPERATIVE
from .sizes import UnknownType, size_and_alignment, take_type
from .text import NAME, ModuleText

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
        definitions = [_definition(lines) for lines in module.definitions]
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


def _definition(lines: tuple[str, ...]) -> list[str]:
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
    from .sizes import split_top

    parameters = ", ".join(take_type(part)[0] for part in split_top(match[2]))
    # The runtime's mathematics reads no memory: what is not needed is dropped.
    pure = " memory(none) nounwind willreturn" if name.startswith("rt_") else ""
    return f"declare {match[1]} @{name}({parameters}){pure}"


def _shrink(text: str) -> str:
    """Simdgroup matrices have 64 elements, of which a lane uses two: <2 x float> compiles many times faster."""
    if "<64 x " not in text or "shufflevector <64" in text:
        return text
    return re.sub(r"<64 x (half|float|bfloat|i32|i16)>", r"<2 x \1>", text)
