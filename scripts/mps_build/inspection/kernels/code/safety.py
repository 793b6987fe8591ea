"""What a kernel may contain. A wheel is untrusted: bitcode can name any function of this process."""

from __future__ import annotations

import re

from .text import NAME, ModuleText

_LLVM = re.compile(
    r"llvm\.(?:lifetime\.(?:start|end)|memcpy|memmove|memset|fmuladd|fma|[us](?:max|min)|abs|[us](?:add|sub)\.sat"
    r"|ctpop|ctlz|cttz|bitreverse|bswap|fshl|fshr|umul\.with\.overflow|smul\.with\.overflow|assume|sqrt|fabs|floor|ceil|trunc|rint"
    r"|copysign|minnum|maxnum|minimum|maximum|vector\.reduce\.\w+|experimental\.noalias\.scope\.decl)(?:\.[\w.]+)?"
)
_FORBIDDEN = re.compile(
    r"\b(asm|inttoptr|invoke|callbr|indirectbr|blockaddress|landingpad|va_arg|catchpad|cleanuppad"
    r"|dso_local_equivalent|ptrauth|personality|gc|prologue|prefix|thread_local|external|available_externally)\b"
)
_DECLARED = re.compile(rf"({NAME})\(")
_SPECIAL_GLOBALS = ("llvm.global_ctors", "llvm.global_dtors", "llvm.used", "llvm.compiler.used")


class Rejected(Exception):
    """The kernel is not compiled, with the reason."""


class Beyond(Rejected):
    """The kernel is sound, and needs what is not run here: tensor operations of Metal 4."""


def check(module: ModuleText) -> None:
    """Accept a module that calls only its own functions, AIR's and a list of LLVM's.

    Raises:
        Rejected: inline assembly, made-up addresses, calls through pointers, constructors, foreign functions.
    """
    if module.unknown:
        raise Rejected(f"it has a line of an unknown kind: {module.unknown[0][:80]}")
    defined = {_DECLARED.search(lines[0])[1] for lines in module.definitions if _DECLARED.search(lines[0])}  # type: ignore[index]
    callable_names = set(defined)
    for line in module.declarations:
        match = _DECLARED.search(line)
        if not match or not is_known(match[1].strip('@"')):
            raise Rejected(f"it declares a function that no Metal kernel needs: {match[1] if match else line[:80]}")
        callable_names.add(match[1])
    for line in module.globals:
        _check_global(line)
    for lines in module.definitions:
        for line in lines:
            _check_line(line, callable_names)


def is_known(name: str) -> bool:
    """Return whether a kernel may declare a function of this name.

    >>> is_known("air.exp.f32"), is_known("llvm.memcpy.p0.p1.i64"), is_known("system"), is_known("llvm.read_register")
    (True, True, False, False)
    """
    return name.startswith(("air.", "__tensorops_impl_")) or _LLVM.fullmatch(name) is not None


def _check_global(line: str) -> None:
    name, _, rest = line.partition(" = ")
    if name.strip('@"') in _SPECIAL_GLOBALS:
        raise Rejected(f"it has a {name[1:]} table")
    if _FORBIDDEN.search(re.sub(r'c?"(?:[^"\\]|\\.)*"', "", rest)):
        raise Rejected(f"its global {name} is not plain data: {rest[:80]}")
    if " alias " in rest or " ifunc " in rest:
        raise Rejected(f"its global {name} is an alias")


def _check_line(line: str, known: set[str]) -> None:
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line) if '"' in line else line
    if match := _FORBIDDEN.search(bare):
        raise Rejected(f"it uses {match[1]}: {line.strip()[:80]}")
    if "call " in line and re.search(r"\bcall\b", bare):
        callee = _callee(line)
        if callee not in known:
            raise Rejected(f"it calls {callee or 'through a pointer'}: {line.strip()[:80]}")


_CALLEE = re.compile(rf"\bcall\b.*?\s({NAME}|%[\w.]+)\(")


def _callee(line: str) -> str | None:
    """Return the function of a call; a type may hold a `%name`, never followed by a bracket.

    >>> _callee("  %3 = tail call <2 x float> @air.fabs.v2f32(<2 x float> %2)"), _callee("  call void %4(ptr %1)")
    ('@air.fabs.v2f32', '%4')
    """
    match = _CALLEE.search(line)
    return match[1] if match else None
