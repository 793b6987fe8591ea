"""What a kernel may contain, by LLVM's own objects. A wheel is untrusted: bitcode can name anything.

Everything is on a list: opcodes, kinds of operands, linkages, attributes, functions by name and type. What is on none
is refused. llvmlite's classes make an object of every operand; its functions are called directly here, which takes
0.8 ms a kernel instead of 7.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from . import compiler, signatures
from .text import NAME, ModuleText

_LLVM = re.compile(
    r"llvm\.(?:lifetime\.(?:start|end)|memcpy|memmove|memset|fmuladd|fma|[us](?:max|min)|abs|[us](?:add|sub)\.sat"
    r"|ctpop|ctlz|cttz|bitreverse|bswap|fshl|fshr|umul\.with\.overflow|smul\.with\.overflow|assume|sqrt|fabs|floor|ceil|trunc|rint"
    r"|copysign|minnum|maxnum|minimum|maximum|vector\.reduce\.\w+|experimental\.noalias\.scope\.decl)(?:\.[\w.]+)?"
)
# Of LLVM's, what a translated module may declare beside: conversions, and C's mathematics that LLVM expands itself.
_LLVM_TRANSLATED = re.compile(_LLVM.pattern + r"|llvm\.(?:fpto[us]i\.sat|round|ldexp)(?:\.[\w.]+)?")
TENSORS = re.compile(r"__tensorops_impl_\w+|air\.\w*tensor[\w.]*")
_OPCODES = frozenset(word.encode() for word in (
    "fneg", "fadd", "fsub", "fmul", "fdiv", "frem", "add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "shl", "lshr",
    "ashr", "and", "or", "xor", "icmp", "fcmp", "select", "phi", "br", "ret", "switch", "unreachable", "call", "load",
    "store", "alloca", "getelementptr", "bitcast", "addrspacecast", "zext", "sext", "trunc", "fpext", "fptrunc",
    "fptosi", "fptoui", "sitofp", "uitofp", "ptrtoint", "extractelement", "insertelement", "shufflevector",
    "extractvalue", "insertvalue", "freeze",
))  # fmt: skip
_FUNCTION, _ALIAS, _IFUNC, _BLOCK_ADDRESS, _EXPRESSION, _ASSEMBLY = 5, 6, 7, 9, 10, 23  # llvm-c/Core.h, LLVMValueKind
# Values of instructions, arguments, blocks, globals, constants and expressions of them; not a function's address.
_OPERANDS = frozenset({0, 1, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 24, 25})
_IN_WORDS = {
    _FUNCTION: "a function's address", _ALIAS: "an alias", _IFUNC: "an indirect function",
    _BLOCK_ADDRESS: "a block's address", _ASSEMBLY: "inline assembly",
}  # fmt: skip
_EXTERNAL, _DEFINED = 0, frozenset({0, 2, 3, 5, 6, 8, 9})  # external; those, linkonce, weak, internal, private
_ATTRIBUTES = frozenset({
    "convergent", "inlinehint", "alwaysinline", "noinline", "mustprogress", "nobuiltin", "nocallback",
    "nocreateundeforpoison", "nofree", "norecurse", "nosync", "nounwind", "speculatable", "willreturn", "cold", "hot",
    "minsize", "optsize", "optnone", "noundef", "nonnull", "noalias", "nocapture", "readonly", "readnone", "writeonly",
    "returned", "immarg", "signext", "zeroext", "inreg", "align", "alignstack", "dereferenceable",
    "dereferenceable_or_null", "memory", "captures", "range", "initializes", "nofpclass",
})  # fmt: skip
_STRINGS = re.compile(
    r'"(?:air-[\w-]+|deferred-static-alloca-size|frame-pointer|less-precise-fpmad|max-work-group-size|min-legal-vector-width'
    r'|no-builtins|no-infs-fp-math|no-nans-fp-math|no-signed-zeros-fp-math|no-trapping-math|stack-protector-buffer-size'
    r'|unsafe-fp-math|approx-func-fp-math|no-jump-tables|no-inline-line-tables|correctly-rounded-divide-sqrt-fp-math'
    r'|disable-tail-calls|target-cpu|target-features|uwtable|denormal-fp-math(?:-f32)?)"(?:="[^"]*")?'
)  # fmt: skip
# A global's initialiser, once its quoted names are out, holds numbers and names of other globals.
_NOT_DATA = re.compile(
    r"\b(asm|alias|ifunc|inttoptr|ptrtoint|blockaddress|dso_local_equivalent|no_cfi|ptrauth|thread_local|section|comdat"
    r"|partition|externally_initialized)\b"
)
_QUOTED = re.compile(r'c?"(?:[^"\\]|\\.)*"')
_EMPTY_TABLES = ("llvm.global_ctors", "llvm.global_dtors")
# What a kernel is, many times over: the largest of the official wheels has 60,000 instructions.
MOST_INSTRUCTIONS = 1_000_000


class Rejected(Exception):
    """The kernel is not run: it has what no Metal kernel has, with the reason."""


class Beyond(Rejected):
    """The kernel is sound, and needs what is not run here: tensor operations of Metal 4."""


def check(module: Any, text: ModuleText) -> None:
    """Accept a module that holds plain data, and code that calls only its own functions, AIR's and a list of LLVM's.

    Args:
        module: llvmlite's module.
        text: the same, as LLVM prints it: what LLVM's lists leave out (aliases, assembly) is seen by the count.

    Raises:
        Rejected: anything else, by its name.
        Beyond: it declares tensor operations, which are not run.
    """
    try:
        _check(module, text)
    except UnicodeDecodeError as error:  # llvmlite decodes each name that is read
        raise Rejected(compiler.NOT_UTF8) from error


def _check(module: Any, text: ModuleText) -> None:
    if text.unknown:
        raise Rejected(f"it has a line of an unknown kind: {text.unknown[0][:80]}")
    functions = list(module.functions)
    globals_ = _check_globals(module, functions)
    printed = (len(text.globals) + text.empty_tables, len(text.declarations) + len(text.definitions))
    if printed != (globals_, len(functions)):
        raise Rejected(
            f"it has aliases, or what LLVM does not list: {printed} printed, {(globals_, len(functions))} there"
        )
    needs_tensors = False
    count = 0
    for each in functions:
        if each.is_declaration:
            needs_tensors |= _check_declaration(each)
            continue
        if int(each.linkage) not in _DEFINED:
            raise Rejected(f"its function {each.name} is {each.linkage.name}")
        _check_attributes(each)
        count += _check_code(each)
        if count > MOST_INSTRUCTIONS:
            raise Rejected(f"it has more than {MOST_INSTRUCTIONS:,} instructions")
    if needs_tensors:
        raise Beyond("it needs tensor operations of Metal 4, which are not run here")


def check_translated(module: Any, runtime: frozenset[str]) -> None:
    """Accept what is compiled in the end: nothing from outside but the runtime's functions and LLVM's own.

    Raises:
        Rejected: a name that compiled code would look up in this process.
    """
    functions = list(module.functions)
    _check_globals(module, functions)
    for each in functions:
        name = each.name
        if each.is_declaration:
            if int(each.linkage) != _EXTERNAL or not (name in runtime or _LLVM_TRANSLATED.fullmatch(name)):
                raise Rejected(f"translated, it declares {name}")
        elif int(each.linkage) not in _DEFINED:
            raise Rejected(f"translated, its function {name} is {each.linkage.name}")


def _check_globals(module: Any, functions: Sequence[Any]) -> int:
    """Return how many globals a module has; each is data of its own."""
    count, code = 0, {each.name for each in functions}
    for each in module.global_variables:
        count += 1
        name, linkage, text = each.name, int(each.linkage), str(each)
        if name in _EMPTY_TABLES and "[0 x " in text:
            continue  # Metal 3.0's compiler writes it into every module
        if each.is_declaration or linkage not in _DEFINED or linkage == _EXTERNAL or name.startswith("llvm."):
            raise Rejected(f"its global {name} is {each.linkage.name}, not data of its own")
        value = text.partition(" = ")[2]
        if word := _NOT_DATA.search(_QUOTED.sub('""', value)):
            raise Rejected(f"its global {name} is not plain data: {word[1]}")
        if found := code.intersection(held.strip('@"') for held in re.findall(NAME, value)):
            raise Rejected(f"its global {name} holds a function's address: {min(found)}")
    return count


def _check_declaration(function: Any) -> bool:
    """Return whether a declared function is a tensor operation."""
    name, kind = function.name, str(function.global_value_type)
    if int(function.linkage) != _EXTERNAL:
        raise Rejected(f"it declares {name} as {function.linkage.name}")
    if TENSORS.fullmatch(name):
        return True
    if not _LLVM.fullmatch(name) and not signatures.is_known(name, kind):
        raise Rejected(f"it declares a function that no Metal kernel needs: {name[:80]} of type {kind[:80]}")
    _check_attributes(function)
    return False


def _check_attributes(function: Any) -> None:
    for each in function.attributes:
        if word := _unlisted(each):
            raise Rejected(f"its function {function.name} has the attribute {word[:60]}")


@cache
def _unlisted(attributes: bytes) -> str:
    """Return the first attribute of a list, as LLVM prints it, that is on none of ours; nothing if all are."""
    bare = re.sub(r"\([^()]*\)", "", _STRINGS.sub("", attributes.decode("utf-8", "replace")))
    return next((word for word in bare.split() if word not in _ATTRIBUTES and not word.isdigit()), "")


def _check_code(function: Any) -> int:
    """Return how many instructions a function has; each has an opcode and operands that are on the lists."""
    lib, count = _lib(), 0
    next_instruction, next_operand = lib.LLVMPY_InstructionsIterNext, lib.LLVMPY_OperandsIterNext
    begin, end, kind_of = lib.LLVMPY_InstructionOperandsIter, lib.LLVMPY_DisposeOperandsIter, lib.LLVMPY_GetValueKind
    opcode_of = lib.LLVMPY_GetOpcodeName
    for block in function.blocks:
        instructions = lib.LLVMPY_BlockInstructionsIter(block._ptr)
        while instruction := next_instruction(instructions):
            count += 1
            opcode = opcode_of(instruction)
            if opcode not in _OPCODES:
                raise Rejected(f"its function {function.name} uses {opcode.decode()}")
            found, kinds = begin(instruction), []
            while value := next_operand(found):
                kinds.append(kind := kind_of(value))
                if kind == _EXPRESSION:
                    _check_expression(lib, value, function.name)
            end(found)
            if opcode == b"call" and (callee := kinds.pop()) != _FUNCTION:
                raise Rejected(f"its function {function.name} calls {_IN_WORDS.get(callee, 'through a pointer')}")
            if not _OPERANDS.issuperset(kinds):
                kind = min({*kinds} - _OPERANDS)
                raise Rejected(f"its function {function.name} uses {_IN_WORDS.get(kind, f'a value of kind {kind}')}")
        lib.LLVMPY_DisposeInstructionsIter(instructions)
    return count


def _check_expression(lib: Any, value: int, name: str) -> None:
    text = _QUOTED.sub('""', _printed(lib, value))
    if word := _NOT_DATA.search(text):
        raise Rejected(f"its function {name} uses a constant that is computed: {word[1]}")


def _printed(lib: Any, value: int) -> str:
    text = ctypes.c_char_p()
    lib.LLVMPY_PrintValueToString(value, ctypes.byref(text))
    try:
        return (text.value or b"").decode("utf-8", "replace")
    finally:
        lib.LLVMPY_DisposeString(text)


@cache
def _lib() -> Any:
    """Return llvmlite's library a second time: without its lock for each call, and without an object for each value."""
    from llvmlite.binding import ffi

    lib = ctypes.PyDLL(ffi.lib._name)
    pointer = ctypes.c_void_p
    for kind in ("BlockInstructions", "InstructionOperands"):
        getattr(lib, f"LLVMPY_{kind}Iter").argtypes = [pointer]
        getattr(lib, f"LLVMPY_{kind}Iter").restype = pointer
    for kind in ("Instructions", "Operands"):
        getattr(lib, f"LLVMPY_{kind}IterNext").argtypes = [pointer]
        getattr(lib, f"LLVMPY_{kind}IterNext").restype = pointer
        getattr(lib, f"LLVMPY_Dispose{kind}Iter").argtypes = [pointer]
        getattr(lib, f"LLVMPY_Dispose{kind}Iter").restype = None
    # The names are never freed, a few bytes an instruction: the process ends after some kernels.
    lib.LLVMPY_GetOpcodeName.argtypes, lib.LLVMPY_GetOpcodeName.restype = [pointer], ctypes.c_char_p
    lib.LLVMPY_GetValueKind.argtypes, lib.LLVMPY_GetValueKind.restype = [pointer], ctypes.c_int
    lib.LLVMPY_PrintValueToString.argtypes, lib.LLVMPY_PrintValueToString.restype = [pointer, pointer], None
    lib.LLVMPY_DisposeString.argtypes, lib.LLVMPY_DisposeString.restype = [pointer], None
    return lib
