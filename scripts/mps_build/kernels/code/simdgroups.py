"""Simdgroup and threadgroup operations: calls of the runtime's scheduler (runtime/simd.c has the same numbers)."""

from __future__ import annotations

import re

from .text import Declaration

(SUM, PRODUCT, MAXIMUM, MINIMUM, ANY, ALL, FIRST, PREFIX_EXCLUSIVE, PREFIX_INCLUSIVE, SHUFFLE, XOR, DOWN, UP, BROADCAST,
 BROADCAST_FIRST, FILL_UP, FILL_DOWN, MULTIPLY, BARRIER, BIT_AND, BIT_OR, BIT_XOR, BALLOT, ROTATE_DOWN, ROTATE_UP,
 PRODUCT_EXCLUSIVE, PRODUCT_INCLUSIVE) = range(27)  # fmt: skip
_FOLDS = {"simd_sum": SUM, "simd_product": PRODUCT, "simd_max": MAXIMUM, "simd_min": MINIMUM, "simd_and": BIT_AND,
          "simd_or": BIT_OR, "simd_xor": BIT_XOR, "simd_prefix_exclusive_sum": PREFIX_EXCLUSIVE,
          "simd_prefix_inclusive_sum": PREFIX_INCLUSIVE, "simd_prefix_exclusive_product": PRODUCT_EXCLUSIVE,
          "simd_prefix_inclusive_product": PRODUCT_INCLUSIVE}  # fmt: skip
_MOVES = {"simd_shuffle": SHUFFLE, "simd_shuffle_xor": XOR, "simd_shuffle_down": DOWN, "simd_shuffle_up": UP,
          "simd_broadcast": BROADCAST, "simd_broadcast_first": BROADCAST_FIRST, "simd_shuffle_and_fill_up": FILL_UP,
          "simd_shuffle_and_fill_down": FILL_DOWN, "simd_shuffle_rotate_down": ROTATE_DOWN,
          "simd_shuffle_rotate_up": ROTATE_UP}  # fmt: skip
_VOTES = {"simd_any": ANY, "simd_all": ALL, "simd_is_first": FIRST}
_SIZES = {"half": 2, "bfloat": 2, "float": 4, "double": 8}
_SIGNED, _UNSIGNED, _FLOAT, _HALF, _BFLOAT = range(5)
COOPERATIVE = re.compile(r'^declare .*@"?air\.(?:wg\.barrier|simdgroup|simd_|quad_)', re.MULTILINE)


def body(declaration: Declaration) -> str | None:
    """Return the instructions of an operation among threads, or None if it is not known."""
    operation, result = declaration.operation, declaration.result
    if operation == "wg.barrier":
        return "  call void @rt_barrier(i32 %a0, i32 %a1)\n  ret void"
    if operation == "simdgroup.barrier":
        return f"  call void @rt_simd(i32 {BARRIER}, i32 0, ptr null, ptr null, ptr null, i32 0, i32 0)\n  ret void"
    if operation in ("get_simdgroup_size", "get_threads_per_simdgroup"):
        return f"  ret {result} 32"
    if operation == "get_thread_index_in_simdgroup":
        convert = "trunc" if int(result[1:]) < 32 else "zext"
        lane = "  %l = call i32 @rt_lane()\n"
        return (
            f"{lane}  ret i32 %l"
            if result == "i32"
            else f"{lane}  %r = {convert} i32 %l to {result}\n  ret {result} %r"
        )
    if operation in _FOLDS:
        return _call(_FOLDS[operation], _arithmetic_type(result, is_unsigned=declaration.is_unsigned), declaration)
    if operation in _MOVES:
        return _call(_MOVES[operation], _bytes(result), declaration)
    if operation in _VOTES:
        return _vote(_VOTES[operation], declaration)
    if operation in ("simd_ballot", "simd_active_threads_mask") and result == "i64":
        return _vote(BALLOT, declaration)
    if operation.startswith("simdgroup_matrix_8x8_"):
        return _matrix(operation.removeprefix("simdgroup_matrix_8x8_"), declaration)
    return None


def _element(kind: str) -> tuple[str, int]:
    if kind.startswith("<"):
        count, _, rest = kind[1:-1].partition(" x ")
        return rest, int(count)
    return kind, 1


def _bytes(kind: str) -> int:
    scalar, count = _element(kind)
    return count * (_SIZES.get(scalar) or max(1, int(scalar[1:]) // 8))


def _arithmetic_type(kind: str, *, is_unsigned: bool) -> int:
    scalar, count = _element(kind)
    code = {"half": _HALF, "bfloat": _BFLOAT, "float": _FLOAT}.get(scalar, _UNSIGNED if is_unsigned else _SIGNED)
    return _bytes(scalar) | code << 8 | count << 16


def _call(operation: int, type_code: int, declaration: Declaration) -> str:
    """Put the operands on the thread's own stack, wait, and take the result from there."""
    kind = declaration.result
    has_fill = operation in (FILL_UP, FILL_DOWN)
    numbers = list(declaration.parameters[2 if has_fill else 1 :])
    lines = [f"  %in = alloca {kind}, align 16", f"  %out = alloca {kind}, align 16", f"  store {kind} %a0, ptr %in"]
    second = "null"
    if has_fill:
        lines += [f"  %in2 = alloca {kind}, align 16", f"  store {kind} %a1, ptr %in2"]
        second = "%in2"
    arguments = ["0", "0"]
    for number, width in enumerate(numbers[:2]):
        source = f"%a{number + (2 if has_fill else 1)}"
        if width == "i32":
            arguments[number] = source
            continue
        # A shuffle's lane is a ushort: 65535 is far away, not one before.
        lines.append(f"  %n{number} = {'zext' if int(width[1:]) < 32 else 'trunc'} {width} {source} to i32")
        arguments[number] = f"%n{number}"
    lines += [
        f"  call void @rt_simd(i32 {operation}, i32 {type_code}, ptr %in, ptr {second}, ptr %out, "
        f"i32 {arguments[0]}, i32 {arguments[1]})",
        f"  %r = load {kind}, ptr %out",
        f"  ret {kind} %r",
    ]
    return "\n".join(lines)


def _vote(operation: int, declaration: Declaration) -> str:
    kind = declaration.result
    held = "i8" if kind == "i1" else kind
    value = "%a0" if declaration.parameters else "true"
    lines = [
        "  %in = alloca i8",
        f"  %out = alloca {held}, align 8",
        f"  %v = zext i1 {value} to i8",
        "  store i8 %v, ptr %in",
        f"  call void @rt_simd(i32 {operation}, i32 {_bytes(held)}, ptr %in, ptr null, ptr %out, i32 0, i32 0)",
        f"  %o = load {held}, ptr %out",
    ]
    if kind != "i1":
        return "\n".join([*lines, f"  ret {kind} %o"])
    return "\n".join([*lines, "  %r = trunc i8 %o to i1", "  ret i1 %r"])


def _matrix(operation: str, declaration: Declaration) -> str | None:
    """An 8 x 8 matrix: each lane holds two neighbours of a row, in elements 0 and 1."""
    kind = declaration.result if declaration.result != "void" else declaration.parameters[0]
    scalar, _ = _element(kind)
    if operation == "init_filled":
        return _pair(kind, scalar, ["%a0", "%a0"], [])
    if operation == "init_diag":
        lines = [
            *_place(),
            "  %d0 = icmp eq i32 %row, %col",
            "  %c1 = add i32 %col, 1",
            "  %d1 = icmp eq i32 %row, %c1",
        ]
        zero = "0xR0000" if scalar == "bfloat" else "0.0"
        lines += [f"  %v{n} = select i1 %d{n}, {scalar} %a0, {scalar} {zero}" for n in (0, 1)]
        return _pair(kind, scalar, ["%v0", "%v1"], lines)
    if operation == "load":
        lines = _addresses(declaration, scalar, first=1, pointer="%a0", pointer_type=declaration.parameters[0])
        lines += [f"  %v{n} = load {scalar}, {declaration.parameters[0]} %p{n}" for n in (0, 1)]
        return _pair(kind, scalar, ["%v0", "%v1"], lines)
    if operation == "store":
        pointer = declaration.parameters[1]
        lines = _addresses(declaration, scalar, first=2, pointer="%a1", pointer_type=pointer)
        for n in (0, 1):
            lines.append(f"  %v{n} = extractelement {kind} %a0, i32 {n}")
            lines.append(f"  store {scalar} %v{n}, {pointer} %p{n}")
        return "\n".join([*lines, "  ret void"])
    if operation == "multiply_accumulate":
        return _multiply(declaration, kind, scalar)
    return None


def _pair(kind: str, scalar: str, values: list[str], lines: list[str]) -> str:
    return "\n".join(
        [
            *lines,
            f"  %m0 = insertelement {kind} zeroinitializer, {scalar} {values[0]}, i32 0",
            f"  %m1 = insertelement {kind} %m0, {scalar} {values[1]}, i32 1",
            f"  ret {kind} %m1",
        ]
    )


def _place() -> list[str]:
    return [
        "  %lane = call i32 @rt_lane()",
        "  %row = call i32 @rt_matrix_row(i32 %lane)",
        "  %col = call i32 @rt_matrix_column(i32 %lane)",
    ]


def _addresses(declaration: Declaration, scalar: str, *, first: int, pointer: str, pointer_type: str) -> list[str]:
    """Element (r, c) lies at origin + c * strides[0] + r * strides[1], or, in the older form, at a row stride."""
    lines = [*_place(), "  %r64 = zext i32 %row to i64", "  %c64 = zext i32 %col to i64"]
    if declaration.parameters[first] == "i64":
        origin, flip = f"%a{first + 1}", f"%a{first + 2}"
        lines += [f"  %s1 = add i64 %a{first}, 0", "  %s0 = add i64 1, 0"]
    else:
        origin, flip = f"%a{first + 2}", ""
        lines += [f"  %s{n} = extractelement <2 x i64> %a{first + 1}, i32 {n}" for n in (0, 1)]
    lines += [f"  %o{n} = extractelement <2 x i64> {origin}, i32 {n}" for n in (0, 1)]
    for n in (0, 1):
        lines += [
            f"  %k{n} = add i64 %c64, {n}",
            *(
                [f"  %x{n} = select i1 {flip}, i64 %r64, i64 %k{n}", f"  %y{n} = select i1 {flip}, i64 %k{n}, i64 %r64"]
                if flip
                else [f"  %x{n} = add i64 %k{n}, 0", f"  %y{n} = add i64 %r64, 0"]
            ),
            f"  %xo{n} = add i64 %x{n}, %o0",
            f"  %yo{n} = add i64 %y{n}, %o1",
            f"  %u{n} = mul i64 %xo{n}, %s0",
            f"  %w{n} = mul i64 %yo{n}, %s1",
            f"  %f{n} = add i64 %u{n}, %w{n}",
            f"  %p{n} = getelementptr {scalar}, {pointer_type} {pointer}, i64 %f{n}",
        ]
    return lines


def _multiply(declaration: Declaration, kind: str, scalar: str) -> str:
    lines = ["  %in = alloca [6 x float], align 16", "  %out = alloca [2 x float], align 16"]
    for operand, source in enumerate(declaration.parameters):
        held, _ = _element(source)
        for n in (0, 1):
            name = f"{operand}_{n}"
            lines.append(f"  %e{name} = extractelement {source} %a{operand}, i32 {n}")
            value = f"%e{name}"
            if held != "float":
                lines.append(f"  %w{name} = fpext {held} {value} to float")
                value = f"%w{name}"
            lines.append(f"  %p{name} = getelementptr float, ptr %in, i64 {operand * 2 + n}")
            lines.append(f"  store float {value}, ptr %p{name}")
    lines.append(f"  call void @rt_simd(i32 {MULTIPLY}, i32 0, ptr %in, ptr null, ptr %out, i32 0, i32 0)")
    for n in (0, 1):
        lines += [f"  %q{n} = getelementptr float, ptr %out, i64 {n}", f"  %l{n} = load float, ptr %q{n}"]
        if scalar != "float":
            lines.append(f"  %v{n} = fptrunc float %l{n} to {scalar}")
    values = [f"%{'l' if scalar == 'float' else 'v'}{n}" for n in (0, 1)]
    return _pair(kind, scalar, values, lines)
