"""What each function of AIR takes and returns, by its full name: a declaration that says otherwise is refused.

Apple documents none of it. The rows were read from the metallibs of torch 2.6 to 2.15, and hold for the other types
that Metal has; every declaration of those wheels is in tests/recorded/air_functions.json.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SCALARS = {
    "f16": "half",
    "f32": "float",
    "bf16": "bfloat",
    "i1": "i1",
    "i8": "i8",
    "i16": "i16",
    "i32": "i32",
    "i64": "i64",
}
_TYPE = r"(?:v[234])?(?:bf16|f16|f32|i1|i8|i16|i32|i64)"
_FLOATS = r"(?:v[234])?(?:bf16|f16|f32)"
_INTEGERS = r"(?:v[234])?(?:i8|i16|i32|i64)"
_SPACE = {"global": "ptr addrspace(1)", "local": "ptr addrspace(3)", "p1": "ptr addrspace(1)", "p3": "ptr addrspace(3)"}
_MATRIX = r"v64(?:bf16|f16|f32)"

# By the shape of a signature (T: the type that the name ends with), the names that have it.
_OF_FLOATS = {
    "T(T)": "fabs sqrt floor ceil trunc rint round exp exp2 exp10 log log2 log10 sin cos tan asin acos atan sinh cosh "
    "tanh asinh acosh atanh sinpi cospi tanpi rsqrt fract saturate",
    "T(T,T)": "fmin fmax copysign pow powr atan2 fmod nextafter",
    "T(T,T,T)": "fma fclamp clamp",
    "T(T,ptr)": "sincos",
}
_OF_INTEGERS = {
    "T(T)": "abs popcount reverse_bits",
    "T(T,i1)": "clz ctz",
    "T(T,T)": "max min add_sat sub_sat rotate mul_hi",
    "T(T,T,T)": "clamp",
}
_OF_EITHER = {
    "T(T)": "simd_sum simd_product simd_max simd_min simd_and simd_or simd_xor simd_prefix_exclusive_sum "
    "simd_prefix_inclusive_sum simd_prefix_exclusive_product simd_prefix_inclusive_product simd_broadcast_first",
    "T(T,i16)": "simd_shuffle simd_shuffle_xor simd_shuffle_down simd_shuffle_up simd_broadcast "
    "simd_shuffle_rotate_down simd_shuffle_rotate_up",
    "T(T,T,i16,i16)": "simd_shuffle_and_fill_up simd_shuffle_and_fill_down",
}
_ALONE = {
    "wg.barrier": "void (i32, i32)",
    "simdgroup.barrier": "void (i32, i32)",
    "atomic.fence": "void (i32, i32, i32)",
    "simd_any": "i1 (i1)",
    "simd_all": "i1 (i1)",
    "simd_is_first": "i1 ()",
    "simd_ballot.i64": "i64 (i1)",
    "simd_active_threads_mask.i64": "i64 ()",
    "get_simdgroup_size.i16": "i16 ()",
    "get_simdgroup_size.i32": "i32 ()",
    "get_threads_per_simdgroup.i16": "i16 ()",
    "get_threads_per_simdgroup.i32": "i32 ()",
    "get_thread_index_in_simdgroup.i16": "i16 ()",
    "get_thread_index_in_simdgroup.i32": "i32 ()",
}
_SIGNATURES = {
    **{(each, "f"): shape for shape, names in _OF_FLOATS.items() for each in names.split()},
    **{(each, "i"): shape for shape, names in _OF_INTEGERS.items() for each in names.split()},
    **{(each, kind): shape for shape, names in _OF_EITHER.items() for each in names.split() for kind in "fi"},
}
_PLAIN = re.compile(rf"(?:fast_|precise_)?(\w+?)(?:\.([su]))?\.({_TYPE})")
_CONVERSION = re.compile(
    rf"convert\.(?:f\.({_FLOATS})|[su]\.({_INTEGERS}|(?:v[234])?i1))\.(?:f\.({_FLOATS})|[su]\.({_INTEGERS}|(?:v[234])?i1))"
    r"(?:\.rt[zepn])?"
)
_ATOMIC = re.compile(
    r"atomic\.(global|local)\.(load|store|cmpxchg\.weak|add|sub|min|max|and|or|xor|xchg|exchange)(?:\.[su])?\.(i32|i64|f32)"
)
_VOTE = re.compile(r"(any|all)\.(v[234]i1)")
_DOT = re.compile(r"dot\.((?:v[234])(?:bf16|f16|f32))")
_LDEXP = re.compile(rf"ldexp\.({_FLOATS})")
_OF_MATRIX = re.compile(
    rf"simdgroup_matrix_8x8_(?:(init_filled|init_diag)\.({_MATRIX})\.(bf16|f16|f32)"
    rf"|(load|store)\.({_MATRIX})\.(p[13])(bf16|f16|f32)"
    rf"|multiply_accumulate\.({_MATRIX})\.({_MATRIX})\.({_MATRIX})\.({_MATRIX}))"
)
_PLACES = ("<2 x i64>, <2 x i64>, <2 x i64>", "i64, <2 x i64>, i1")


def is_known(name: str, signature: str) -> bool:
    """Return whether AIR has a function of this name, and with this type as LLVM prints it.

    >>> is_known("air.exp.f32", "float (float)"), is_known("air.exp.f32", "ptr (i64)"), is_known("air.system", "i32 ()")
    (True, False, False)
    """
    return signature in _types_of(name)


@lru_cache(maxsize=4096)
def _types_of(name: str) -> tuple[str, ...]:
    """Return the types that a function of AIR may be declared with; nothing for an unknown name."""
    if not name.startswith("air."):
        return ()
    rest = name[4:]
    if rest in _ALONE:
        return (_ALONE[rest],)
    for pattern, types in _FORMS:
        if match := pattern.fullmatch(rest):
            return types(match)
    return ()


def _plain(match: re.Match[str]) -> tuple[str, ...]:
    operation, sign, kind = match.groups()
    shape = _SIGNATURES.get((operation, "f" if "f" in kind else "i"))
    if shape is None or (sign and "f" in kind):
        return ()
    result, _, parameters = shape[:-1].partition("(")
    words = {"T": _type(kind)}
    return (f"{words.get(result, result)} ({', '.join(words.get(each, each) for each in parameters.split(','))})",)


def _conversion(match: re.Match[str]) -> tuple[str, ...]:
    target, source = (match[1] or match[2]), (match[3] or match[4])
    same = target[:2] == source[:2] if "v" in (target[0], source[0]) else True
    return (f"{_type(target)} ({_type(source)})",) if same else ()


def _atomic(match: re.Match[str]) -> tuple[str, ...]:
    pointer, kind = _SPACE[match[1]], _type(match[3])
    if match[2] == "load":
        return (f"{kind} ({pointer}, i32, i32, i1)",)
    if match[2] == "cmpxchg.weak":
        return (f"{kind} ({pointer}, ptr, {kind}, i32, i32, i32, i1)",)
    update = f"({pointer}, {kind}, i32, i32, i1)"
    return (f"void {update}",) if match[2] == "store" else (f"{kind} {update}", f"void {update}")


def _matrix(match: re.Match[str]) -> tuple[str, ...]:
    making, made, element, moving, moved, space, of, *product = match.groups()
    if making:
        return (f"{_type(made)} ({_type(element)})",) if made == f"v64{element}" else ()
    if moving:
        if moved != f"v64{of}":
            return ()
        kind, pointer = _type(moved), _SPACE[space]
        if moving == "load":
            return tuple(f"{kind} ({pointer}, {places})" for places in _PLACES)
        return tuple(f"void ({kind}, {pointer}, {places})" for places in _PLACES)
    return (f"{_type(product[0])} ({', '.join(_type(each) for each in product[1:])})",)


def _type(word: str) -> str:
    """
    >>> _type("v2f16"), _type("i32")
    ('<2 x half>', 'i32')
    """
    match = re.fullmatch(r"(?:v(\d+))?(.+)", word)
    assert match is not None
    scalar = _SCALARS[match[2]]
    return f"<{match[1]} x {scalar}>" if match[1] else scalar


_FORMS = (
    (_CONVERSION, _conversion),
    (_ATOMIC, _atomic),
    (_VOTE, lambda match: (f"i1 ({_type(match[2])})",)),
    (_DOT, lambda match: (f"{_type(match[1][2:])} ({_type(match[1])}, {_type(match[1])})",)),
    (_LDEXP, lambda match: (f"{_type(match[1])} ({_type(match[1])}, {_type(_like(match[1]))})",)),
    (_OF_MATRIX, _matrix),
    (_PLAIN, _plain),
)


def _like(floats: str) -> str:
    return (floats[:2] if floats[0] == "v" else "") + "i32"
