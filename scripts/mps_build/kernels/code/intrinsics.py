"""AIR's functions, each defined in LLVM IR: by LLVM's own, by the runtime's, or by a few instructions."""

from __future__ import annotations

import re

from . import simdgroups
from .text import Declaration, NotTranslated, element, is_vector, lanes, splat, suffix

# Atomic operations: one host thread runs, and threads take turns only at barriers, so plain memory does.


def atomic(declaration: Declaration) -> str | None:
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


def _exchange_if_equal(declaration: Declaration) -> str:
    """Compare bits, store on success, and leave what was found in `expected`; it never fails by chance."""
    pointer, expected, kind = declaration.parameters[:3]
    bits = {"float": "i32", "double": "i64", "half": "i16", "bfloat": "i16"}.get(kind, kind)
    return (
        f"  %o = load volatile {bits}, {pointer} %a0\n  %e = load {bits}, {expected} %a1\n"
        f"  %v = bitcast {kind} %a2 to {bits}\n  %same = icmp eq {bits} %o, %e\n"
        f"  %n = select i1 %same, {bits} %v, {bits} %o\n  store volatile {bits} %n, {pointer} %a0\n"
        f"  store {bits} %o, {expected} %a1\n  %r = bitcast {bits} %o to {kind}\n  ret {kind} %r"
    )


# AIR's functions of integers, and its conversions between types, as LLVM IR.


def integer(declaration: Declaration, operation: str) -> str | None:
    """Return the IR of an integer operation of the AIR library; None for one on other types."""
    kind = declaration.result
    if not element(kind).startswith("i"):
        return None
    name, sign = suffix(kind), "u" if declaration.is_unsigned else "s"
    if operation in ("max", "min"):
        return f"  %r = call {kind} @llvm.{sign}{operation}.{name}({kind} %a0, {kind} %a1)\n  ret {kind} %r"
    if operation == "abs":
        if declaration.is_unsigned:
            return f"  ret {kind} %a0"
        return f"  %r = call {kind} @llvm.abs.{name}({kind} %a0, i1 false)\n  ret {kind} %r"
    if operation in ("clz", "ctz"):
        function = "ctlz" if operation == "clz" else "cttz"
        return f"  %r = call {kind} @llvm.{function}.{name}({kind} %a0, i1 false)\n  ret {kind} %r"
    if operation in ("popcount", "reverse_bits"):
        function = {"popcount": "ctpop", "reverse_bits": "bitreverse"}[operation]
        return f"  %r = call {kind} @llvm.{function}.{name}({kind} %a0)\n  ret {kind} %r"
    if operation in ("add_sat", "sub_sat"):
        return f"  %r = call {kind} @llvm.{sign}{operation[:3]}.sat.{name}({kind} %a0, {kind} %a1)\n  ret {kind} %r"
    if operation == "rotate":
        return f"  %r = call {kind} @llvm.fshl.{name}({kind} %a0, {kind} %a0, {kind} %a1)\n  ret {kind} %r"
    if operation == "mul_hi":
        return _high_product(kind, sign)
    return None


def _high_product(kind: str, sign: str) -> str | None:
    if is_vector(kind):
        return None
    bits = int(kind[1:])
    wide, extend = f"i{bits * 2}", "zext" if sign == "u" else "sext"
    return (
        f"  %x = {extend} {kind} %a0 to {wide}\n  %y = {extend} {kind} %a1 to {wide}\n  %p = mul {wide} %x, %y\n"
        f"  %h = lshr {wide} %p, {bits}\n  %r = trunc {wide} %h to {kind}\n  ret {kind} %r"
    )


_CONVERT = re.compile(r"air\.convert\.([usf])\.(?:v\d+)?(\w+?)\.([usf])\.(?:v\d+)?(\w+)$")


def conversion(declaration: Declaration, _: str) -> str | None:
    """Return the IR of a conversion between number types; None for another name."""
    match = _CONVERT.match(declaration.name)
    if not match:
        return None
    to_class, _, from_class, _ = match.groups()
    source, target = declaration.parameters[0], declaration.result
    if from_class == "f" and to_class == "f":
        return _float_to_float(source, target)
    if from_class == "f":
        if element(target) == "i1":  # NaN is true
            return f"  %r = fcmp une {source} %a0, {splat(source, '0.0')}\n  ret {target} %r"
        function = f"@llvm.fpto{to_class}i.sat.{suffix(target)}.{suffix(source)}"
        return f"  %r = call {target} {function}({source} %a0)\n  ret {target} %r"
    if to_class == "f":
        instruction = "uitofp" if from_class == "u" else "sitofp"
        if element(target) == "float":
            return f"  %r = {instruction} {source} %a0 to {target}\n  ret {target} %r"
        wide = target.replace(element(target), "float")
        return (
            f"  %w = {instruction} {source} %a0 to {wide}\n  %r = fptrunc {wide} %w to {target}\n  ret {target} %r"
        )  # fmt: skip
    return _integer_to_integer(source, target, from_class)


def _integer_to_integer(source: str, target: str, sign: str) -> str:
    have, want = int(element(source)[1:]), int(element(target)[1:])
    if have == want:
        return f"  ret {target} %a0"
    instruction = "trunc" if want < have else "zext" if sign == "u" else "sext"
    return f"  %r = {instruction} {source} %a0 to {target}\n  ret {target} %r"


def _float_to_float(source: str, target: str) -> str:
    have, want = element(source), element(target)
    if have == want:
        return f"  ret {target} %a0"
    if want == "float":
        return f"  %r = fpext {source} %a0 to {target}\n  ret {target} %r"
    if have == "float":
        return f"  %r = fptrunc {source} %a0 to {target}\n  ret {target} %r"
    wide = source.replace(have, "float")
    return f"  %w = fpext {source} %a0 to {wide}\n  %r = fptrunc {wide} %w to {target}\n  ret {target} %r"


# One argument and LLVM knows it: exact on every machine.
_EXACT = {"fabs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint",
          "round": "round", "fma": "fma", "fmin": "minnum", "fmax": "maxnum", "copysign": "copysign",
          "precise_sqrt": "sqrt", "fast_sqrt": "sqrt", "fast_fabs": "fabs", "fast_floor": "floor", "fast_ceil": "ceil",
          "fast_trunc": "trunc", "fast_rint": "rint", "fast_round": "round", "fast_fmin": "minnum",
          "fast_fmax": "maxnum"}  # fmt: skip
# The runtime's, in double, rounded once (runtime/math.c).
MATH_1 = ("exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
          "tanh", "asinh", "acosh", "atanh", "sinpi", "cospi", "tanpi", "rsqrt")  # fmt: skip
MATH_2 = ("pow", "powr", "atan2", "fmod", "nextafter")
_PREFIX = re.compile(r"^(?:fast_|precise_)")


def define(declaration: Declaration) -> str:
    """Return a definition of an AIR function: `alwaysinline`, in terms of LLVM's functions and the runtime's.

    Raises:
        NotTranslated: it is not known.
    """
    body = _body(declaration)
    if body is None:
        raise NotTranslated(declaration.name)
    return head(declaration) + "{\n" + body + "\n}\n"


def head(declaration: Declaration) -> str:
    """Return `define … @name(T %0, T %1) alwaysinline `."""
    parameters = ", ".join(f"{kind} %a{number}" for number, kind in enumerate(declaration.parameters))
    return f'define internal {declaration.result} @"{declaration.name}"({parameters}) alwaysinline nounwind '


def _body(declaration: Declaration) -> str | None:
    operation = declaration.operation
    for part in (_arithmetic, integer, conversion, _vectors):
        if (body := part(declaration, operation)) is not None:
            return body
    if operation.startswith("atomic."):
        return atomic(declaration)
    return simdgroups.body(declaration)


def _arithmetic(declaration: Declaration, operation: str) -> str | None:
    kind = declaration.result
    arguments = ", ".join(f"{each} %a{number}" for number, each in enumerate(declaration.parameters))
    if operation in _EXACT:
        return f"  %r = call {kind} @llvm.{_EXACT[operation]}.{suffix(kind)}({arguments})\n  ret {kind} %r"
    bare = _PREFIX.sub("", operation)
    if bare in MATH_1 or bare in MATH_2:
        return _by_runtime(declaration, bare)
    if bare == "sincos":
        lines = [f"  %s = call {kind} @rt_sin(float %a0)", "  %c = call float @rt_cos(float %a0)"]
        if kind != "float":
            return None
        pointer = declaration.parameters[1]
        return "\n".join([*lines, f"  store float %c, {pointer} %a1", "  ret float %s"])
    if bare == "fract":
        last = {"half": "0xH3BFF", "bfloat": "0xR3F7F", "float": "0x3FEFFFFFE0000000"}[element(kind)]
        most = last if not is_vector(kind) else splat(kind, last)
        name = suffix(kind)
        return (
            f"  %f = call {kind} @llvm.floor.{name}({kind} %a0)\n  %d = fsub {kind} %a0, %f\n"
            f"  %r = call {kind} @llvm.minnum.{name}({kind} %d, {kind} {most})\n  ret {kind} %r"
        )
    if bare == "ldexp":
        name = f"{suffix(kind)}.{suffix(declaration.parameters[1])}"
        return f"  %r = call {kind} @llvm.ldexp.{name}({arguments})\n  ret {kind} %r"
    if bare in ("fclamp", "saturate"):
        low, high = ("%a1", "%a2") if bare == "fclamp" else (splat(kind, "0.0"), splat(kind, "1.0"))
        return _clamp(kind, low, high, "maxnum", "minnum")
    if operation == "clamp":
        if "i" in element(kind)[:1]:
            sign = "u" if declaration.is_unsigned else "s"
            return _clamp(kind, "%a1", "%a2", f"{sign}max", f"{sign}min")
        return _clamp(kind, "%a1", "%a2", "maxnum", "minnum")
    return None


def _clamp(kind: str, low: str, high: str, upper: str, lower: str) -> str:
    name = suffix(kind)
    return (
        f"  %m = call {kind} @llvm.{upper}.{name}({kind} %a0, {kind} {low})\n"
        f"  %r = call {kind} @llvm.{lower}.{name}({kind} %m, {kind} {high})\n  ret {kind} %r"
    )


def _by_runtime(declaration: Declaration, name: str) -> str:
    """Call `rt_name` for each element; 16-bit types compute in float and round once (but for nextafter)."""
    kind, scalar = declaration.result, element(declaration.result)
    count = lanes(kind)
    if name == "nextafter" and scalar == "half":
        return _next_half()
    lines, whole = [], "poison"
    for number in range(count):
        arguments = []
        for position in range(len(declaration.parameters)):
            value = f"%a{position}"
            if is_vector(kind):
                lines.append(f"  %e{number}_{position} = extractelement {kind} {value}, i32 {number}")
                value = f"%e{number}_{position}"
            if scalar != "float":
                lines.append(f"  %w{number}_{position} = fpext {scalar} {value} to float")
                value = f"%w{number}_{position}"
            arguments.append(f"float {value}")
        lines.append(f"  %c{number} = call float @rt_{name}({', '.join(arguments)})")
        value = f"%c{number}"
        if scalar != "float":
            lines.append(f"  %n{number} = fptrunc float {value} to {scalar}")
            value = f"%n{number}"
        if not is_vector(kind):
            return "\n".join([*lines, f"  ret {kind} {value}"])
        lines.append(f"  %i{number} = insertelement {kind} {whole}, {scalar} {value}, i32 {number}")
        whole = f"%i{number}"
    return "\n".join([*lines, f"  ret {kind} {whole}"])


def _next_half() -> str:
    """One step of the bit pattern towards the other number."""
    return """\
  %nan = fcmp uno half %a0, %a1
  %same = fcmp oeq half %a0, %a1
  %b0 = bitcast half %a0 to i16
  %b1 = bitcast half %a1 to i16
  %zero = fcmp oeq half %a0, 0xH0000
  %s1 = and i16 %b1, -32768
  %tiny = or i16 %s1, 1
  %up = fcmp olt half %a0, %a1
  %neg = icmp slt i16 %b0, 0
  %away = xor i1 %up, %neg
  %step = select i1 %away, i16 1, i16 -1
  %moved = add i16 %b0, %step
  %n = select i1 %zero, i16 %tiny, i16 %moved
  %h = bitcast i16 %n to half
  %k = select i1 %same, half %a1, half %h
  %sum = fadd half %a0, %a1
  %r = select i1 %nan, half %sum, half %k
  ret half %r"""


def _vectors(declaration: Declaration, operation: str) -> str | None:
    if operation in ("all", "any"):
        word = "and" if operation == "all" else "or"
        source = declaration.parameters[0]
        if not is_vector(source):
            return "  ret i1 %a0"
        return f"  %r = call i1 @llvm.vector.reduce.{word}.{suffix(source)}({source} %a0)\n  ret i1 %r"
    if operation == "dot":
        source, kind = declaration.parameters[0], declaration.result
        lines = [f"  %p = fmul {source} %a0, %a1"]
        total = ""
        for number in range(lanes(source)):
            lines.append(f"  %e{number} = extractelement {source} %p, i32 {number}")
            if total:
                lines.append(f"  %t{number} = fadd {kind} {total}, %e{number}")
            total = f"%t{number}" if total else f"%e{number}"
        return "\n".join([*lines, f"  ret {kind} {total}"])
    return None
