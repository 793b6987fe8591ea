"""AIR's functions, each defined in LLVM IR: by LLVM's own, by the runtime's, or by a few instructions."""

from __future__ import annotations

import re

from . import atomics, simdgroups
from .declarations import Declaration, NotTranslated, element, is_vector, lanes, splat, suffix
from .integers import conversion, integer

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
        return atomics.body(declaration)
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
