"""AIR's functions of integers, and its conversions between types, as LLVM IR."""

from __future__ import annotations

import re

from .declarations import Declaration, element, is_vector, splat, suffix


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
