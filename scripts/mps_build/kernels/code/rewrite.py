"""A checked module, rewritten for this machine: AIR's functions defined, threadgroup memory placed, one entry."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..read.metadata import BUILTINS, Argument, Metadata
from .bfloat import widen_bfloat_bits
from .compiled import ARENA_BASE, ARENA_STEP, ENTRY, Variable
from .declarations import NotTranslated, parse_declaration
from .division import guard_divisions
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


class Untranslated(Exception):
    """The kernel is sound, as far as it was looked at, and needs what is not translated here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """LLVM IR for this machine, and what a run must know of it."""

    text: str
    variables: tuple[Variable, ...]
    is_cooperative: bool


def translate(module: ModuleText, metadata: Metadata, *, datalayout: str, triple: str, track: bool) -> Translation:
    """Return the module that LLVM compiles.

    Args:
        track: call the runtime before each load and store of device and threadgroup memory (race detection).

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
    if track:
        code = instrument(code, module.types)
    parts = [
        f'target datalayout = "{datalayout}"\ntarget triple = "{triple}"',
        *types,
        *plain,
        code,
        _RUNTIME,
        *declared,
        _entry(metadata),
    ]
    is_cooperative = COOPERATIVE.search("\n".join(module.declarations)) is not None
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


def _entry(metadata: Metadata) -> str:
    """Return `void rt_entry(ptr arguments, ptr ids)`: buffers by address, built-ins from the thread's words."""
    lines = [f"define void @{ENTRY}(ptr %arguments, ptr %ids) nounwind {{"]
    passed = []
    for argument in metadata.arguments:
        lines += _buffer(argument) if argument.is_buffer else _builtin(argument)
        passed.append(f"{_type(argument)} %v{argument.index}")
    name = metadata.function if re.fullmatch(r"[\w.$-]+", metadata.function) else f'"{metadata.function}"'
    return "\n".join([*lines, f"  call void @{name}({', '.join(passed)})", "  ret void", "}"])


def _type(argument: Argument) -> str:
    if argument.is_buffer:
        return f"ptr addrspace({argument.space})"
    word, count = _word(argument)
    return word if count == 1 else f"<{count} x {word}>"


def _buffer(argument: Argument) -> list[str]:
    n = argument.index
    return [
        f"  %s{n} = getelementptr ptr, ptr %arguments, i64 {n}",
        f"  %g{n} = load ptr, ptr %s{n}",
        f"  %v{n} = addrspacecast ptr %g{n} to ptr addrspace({argument.space})",
    ]


def _word(argument: Argument) -> tuple[str, int]:
    match = re.fullmatch(r"(uint|ushort|int|short|ulong)([234]?)", argument.type)
    if not match or argument.kind not in BUILTINS:
        raise Untranslated(f"its argument {argument.kind} of type {argument.type} is not known")
    word = {"uint": "i32", "int": "i32", "ushort": "i16", "short": "i16", "ulong": "i64"}[match[1]]
    return word, int(match[2] or 1)


def _builtin(argument: Argument) -> list[str]:
    word, count = _word(argument)
    first, components = BUILTINS[argument.kind]
    if count > components:
        raise Untranslated(f"its argument {argument.kind} has {count} components")
    n, lines, whole = argument.index, [], "poison"
    convert = {"i16": "trunc", "i64": "zext"}.get(word)
    for c in range(count):
        lines.append(f"  %p{n}_{c} = getelementptr i32, ptr %ids, i64 {first + c}")
        lines.append(f"  %w{n}_{c} = load i32, ptr %p{n}_{c}")
        value = f"%w{n}_{c}"
        if convert:
            lines.append(f"  %x{n}_{c} = {convert} i32 {value} to {word}")
            value = f"%x{n}_{c}"
        target = f"%v{n}" if c == count - 1 else f"%i{n}_{c}"
        if count == 1:
            lines.append(f"  {target} = select i1 true, {word} {value}, {word} {value}")
        else:
            lines.append(f"  {target} = insertelement <{count} x {word}> {whole}, {word} {value}, i32 {c}")
            whole = target
    return lines
