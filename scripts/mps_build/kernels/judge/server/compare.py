"""A kernel's result against float64, in units in the last place, beside the CPU's own error in the same type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# Tensors over buffers, and inputs in the types that references are computed in.


def take_view(view: Any, buffers: Any) -> Any:
    """Return a tensor over a buffer: dtype, shape, strides and offset in elements."""
    dtype = getattr(torch, view["dtype"])
    buffer = buffers[view["buffer"]]
    size = torch.empty((), dtype=dtype).element_size()
    flat = torch.frombuffer(buffer, dtype=torch.uint8)[: len(buffer) // size * size].view(dtype)
    return torch.as_strided(flat, view["shape"], view["strides"], view["offset"])


def widen(value: Any) -> Any:
    """Return an input for the float64 reference: floats widened, integers and bools as they are."""
    if isinstance(value, torch.Tensor):
        if value.dtype.is_complex:
            return value.to(torch.complex64).to(torch.complex128)
        if value.dtype.is_floating_point:
            return value.to(torch.float32).to(torch.float64)
    return value


def as_bits(tensor: Any) -> Any:
    """Return the tensor's bits as integers of the same width; a complex number counts as two."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.to(torch.complex64))
    kinds = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return (
        tensor.contiguous().view(kinds[tensor.element_size()]) if tensor.dtype != torch.bool else tensor.to(torch.int8)
    )


def whole(value: Any) -> Any:
    """Unsigned types that the CPU does not compute in: as int64 (uint64 keeps its bits)."""
    if isinstance(value, torch.Tensor) and value.dtype in (torch.uint16, torch.uint32):
        return value.to(torch.int64)
    if isinstance(value, torch.Tensor) and value.dtype == torch.uint64:
        return value.view(torch.int64)
    return value


def in_order(value: Any) -> Any:
    """uint64 as int64 in the same order, for comparisons, which the CPU has for signed integers alone."""
    if isinstance(value, torch.Tensor) and value.dtype == torch.uint64:
        return value.view(torch.int64) ^ torch.iinfo(torch.int64).min
    return value


def as_numbers(value: Any) -> Any:
    """Bools as numbers, where an operator knows no bools; the result is a bool again."""
    return value.to(torch.int64) if isinstance(value, torch.Tensor) and value.dtype == torch.bool else value


def in_type(want: Any, dtype: Any) -> Any:
    """Return the wanted values in a result's type; uint64 is taken from int64's bits."""
    if dtype == torch.uint64 and want.dtype == torch.int64:
        return want.view(torch.uint64)
    return want.to(dtype)


# Errors in units in the last place, of real and of complex results.
# Significant bits, and the exponent (of frexp) of the smallest normal number.
FORMATS = {torch.float16: (11, -13), torch.bfloat16: (8, -125), torch.float32: (24, -125), torch.float64: (53, -1021),
           torch.float8_e4m3fn: (4, -5), torch.float8_e5m2: (3, -13)}  # fmt: skip
COMPONENT = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}


def ulp_of(want: Any, dtype: Any) -> Any:
    """Return the distance of neighbours of `dtype` at each float64 value."""
    bits, lowest = FORMATS[dtype]
    _, exponent = torch.frexp(torch.where(torch.isfinite(want), want, torch.ones_like(want)))
    return torch.ldexp(torch.ones_like(want), torch.clamp(exponent, min=lowest) - bits)


def error_in_ulp(got: Any, want: Any, dtype: Any, scale: Any, magnitude: Any = None, coarse: Any = False) -> Any:
    """Return each element's error: 0 for equal infinities and two NaNs, infinite where one of the two is not finite.

    Args:
        magnitude: how large the numbers are that the formula adds: errors are in units of that, where it is larger.
        coarse: infinities and NaN count as the same.
    """
    g = got.to(torch.float64)
    largest, smallest = torch.finfo(dtype).max, torch.finfo(dtype).smallest_normal
    unit = ulp_of(
        want if magnitude is None else torch.maximum(want.abs(), magnitude.expand_as(want).nan_to_num(largest)), dtype
    )
    # Rounding may carry a value over the largest number: both answers are right half a step beyond it.
    near_top = (want.abs() > largest * (1 - 2.0 ** (2 - FORMATS[dtype][0]))) & torch.isfinite(want)
    error = (g - want).abs()
    error = torch.clamp(error - scale, min=0) / unit
    error = torch.where(
        want.abs() > largest, torch.where(torch.isinf(g) & (g.sign() == want.sign()), 0.0, error), error
    )
    error = torch.where(near_top & torch.isinf(g) & (g.sign() == want.sign()), torch.zeros_like(error), error)
    # Subnormal results are flushed, in whole or on the way.
    error = torch.where((want.abs() < smallest) & (g.abs() <= 2 * smallest), torch.zeros_like(error), error)
    error = torch.where(torch.isnan(want) & torch.isnan(g), torch.zeros_like(error), error)
    error = torch.where(torch.isinf(want) & (g == want), torch.zeros_like(error), error)
    if coarse:
        either = ~torch.isfinite(g) & (~torch.isfinite(want) | (want.abs() > largest))
        error = torch.where(either, torch.zeros_like(error), error)
    if magnitude is not None:
        error = torch.where(magnitude.expand_as(want) <= largest, error, torch.zeros_like(error))
    return torch.nan_to_num(error, nan=float("inf"), posinf=float("inf"))


def equal(a: Any, b: Any) -> Any:
    """Compare two results as equal, NaN with NaN; types of eight bits are compared in float32."""
    a, b = (
        each.to(torch.float32) if each.dtype.itemsize == 1 and each.dtype.is_floating_point else each for each in (a, b)
    )
    return (a == b) | ((a != a) & (b != b))  # noqa: PLR0124


def complex_error(g: Any, w: Any, size: Any, component: Any, scale: Any) -> Any:
    """Error of complex results in units of the last place of the larger component."""
    unit = ulp_of(size, component)
    error = torch.clamp((g.to(torch.float64) - w).abs() - scale, min=0) / unit
    smallest, largest = torch.finfo(component).smallest_normal, torch.finfo(component).max
    error = torch.where((w.abs() < smallest) & (g == 0), torch.zeros_like(error), error)
    error = torch.where(torch.isnan(w) & torch.isnan(g), torch.zeros_like(error), error)
    error = torch.where((g == w), torch.zeros_like(error), error)
    error = torch.where((w.abs() > largest) & torch.isinf(g), torch.zeros_like(error), error)
    # C's rules for infinite and undefined complex results leave much open: only finite magnitudes are judged.
    finite = (
        ((torch.linalg.vector_norm(w, dim=-1, keepdim=True) <= largest / 4) & (size <= largest))
        .all(-1, keepdim=True)
        .expand_as(w)
    )
    return torch.where(finite, torch.nan_to_num(error, nan=float("inf"), posinf=float("inf")), torch.zeros_like(error))


def all_finite(inputs: Any, error: Any) -> Any:
    """Where the inputs are finite; everywhere, if inputs and result have other shapes."""
    where = torch.ones_like(error, dtype=torch.bool)
    for value in inputs.values():
        if (
            isinstance(value, torch.Tensor)
            and value.shape == error.shape
            and (value.is_complex() or value.is_floating_point())
        ):
            where &= torch.isfinite(value.to(torch.complex64) if value.is_complex() else value.to(torch.float32))
    return where


# Which wrong element is shown, and how: the most ordinary one, so that a person sees the fault at a glance.
# Numbers that a reader takes for usual: a witness among them is worth more than a larger error elsewhere.
ORDINARY = (1e-3, 1e4)


def most_ordinary(wrong: Any, inputs: Any) -> Any:
    """Return the wrong places with the most ordinary inputs: from a thousandth to 1e4 or 0; else finite; else all."""
    usual, finite = wrong.clone(), wrong.clone()
    for value in inputs.values():
        if not isinstance(value, torch.Tensor) or value.shape != wrong.shape:
            continue
        wide = value.to(torch.complex128 if value.is_complex() else torch.float64)
        size = torch.view_as_real(wide).abs() if wide.is_complex() else wide.abs().unsqueeze(-1)
        usual &= ((size == 0) | ((size >= ORDINARY[0]) & (size <= ORDINARY[1]))).all(-1)
        finite &= torch.isfinite(size).all(-1)
    return next(each for each in (usual, finite, wrong) if each is wrong or bool(each.any()))


def show(tensor: Any, at: Any) -> Any:
    """Return an element as Python writes it."""
    value = tensor.contiguous().reshape(-1)[at].item()
    return repr(value)


def inputs_at(inputs: Any, got: Any, at: Any) -> Any:
    """Say what stood at the place, where inputs and result have one shape."""
    shown = {}
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor) and value.shape == got.shape:
            shown[name] = show(value, at)
        elif isinstance(value, torch.Tensor) and value.numel() == 1:
            shown[name] = show(value, 0)
        elif not isinstance(value, torch.Tensor):
            shown[name] = repr(value)[:80]
    return {"inputs": shown}


WORSE = 8  # how many times worse than the CPU's own error is still no finding


def compare(function: Any, inputs: Any, got: Any, question: Any, row: Any) -> Any:
    """Return the largest error in ulp, the bound, and the first element that is wrong."""
    out = got.dtype
    if question["name"] == "cast":
        return converted(inputs["x"], got)
    masks = question.get("masks", {})
    if not (out.is_floating_point or out.is_complex):
        return exact(function, inputs, got, row, masks)
    wide = {name: widen(value) for name, value in inputs.items()}
    if not row.get("integers"):
        wide = {
            name: value.to(torch.float64)
            if isinstance(value, torch.Tensor) and not (value.dtype.is_floating_point or value.dtype.is_complex)
            else value
            for name, value in wide.items()
        }
    want = function(**wide)
    cpu = native(function, inputs, out)
    magnitude = question["magnitude"](**wide) if question.get("magnitude") else None
    left_out = _left_out(wide, got, question, row)
    want = want.to(torch.complex128 if out.is_complex else torch.float64).broadcast_to(got.shape)
    bound = question.get("ulp") or row.get("ulp", 4)
    if isinstance(bound, dict):
        bound = bound.get(str(out).removeprefix("torch."), bound.get("else", 4))
    scale = question.get("scale") or 0.0
    masks = {name: _explained(function, wide, got, want) for name, function in masks.items()}
    return judge(
        got, want, cpu, bound, inputs, scale=scale, row=row, magnitude=magnitude, left_out=left_out, masks=masks
    )


def _explained(function: Any, wide: Any, got: Any, want: Any) -> Any:
    """Return where a known issue explains what is wrong."""
    if got.dtype.is_floating_point or got.dtype.is_complex:
        info = torch.finfo(COMPONENT.get(got.dtype, got.dtype))
        names = {"eps": info.eps, "tiny": info.smallest_normal, "largest": info.max, "want": want, "got": widen(got)}
    else:
        names = {"largest": 1 if got.dtype == torch.bool else torch.iinfo(got.dtype).max, "want": want, "got": got}
    return torch.as_tensor(function(**wide, **names)).broadcast_to(got.shape)


def _left_out(wide: Any, got: Any, question: Any, row: Any) -> Any:
    """Return where the row says that there is no right answer: NaN in, or an intermediate result too large."""
    out = None if row.get("strict") else _subnormal_inputs(wide, got)
    if got.dtype.is_complex and not row.get("strict"):
        beyond = _squares_are_not_normal(wide, got)
        out = beyond if out is None else out | beyond
    if row.get("skip_nan"):
        nans = [
            torch.isnan(each) for each in wide.values() if isinstance(each, torch.Tensor) and each.shape == got.shape
        ]
        out = torch.stack([*nans, *([out] if out is not None else [])]).any(0) if nans else out
    if question.get("overflow"):
        kind = COMPONENT.get(got.dtype, got.dtype)
        large = ~(question["overflow"](**wide).abs() <= torch.finfo(kind).max / 4)
        out = large if out is None else out | large
    return out


def _squares_are_not_normal(wide: Any, got: Any) -> Any:
    """Return where a complex input's squared magnitude over- or underflows: formulas on the GPU square it."""
    info = torch.finfo(COMPONENT[got.dtype])
    found = torch.zeros(got.shape, dtype=torch.bool)
    for each in wide.values():
        if isinstance(each, torch.Tensor) and each.shape == got.shape and each.dtype == torch.complex128:
            square = each.abs() ** 2
            found |= ~((square < info.max / 16) & (square > 16 * info.smallest_normal)) & (each != 0)
    return found


def _subnormal_inputs(wide: Any, got: Any) -> Any:
    """Return where an input is subnormal in float or bfloat: a GPU may take it for zero."""
    smallest = 2.0**-126
    found = None
    for each in wide.values():
        if (
            isinstance(each, torch.Tensor)
            and each.shape == got.shape
            and each.dtype in (torch.float64, torch.complex128)
        ):
            parts = torch.view_as_real(each).abs() if each.is_complex() else each.abs().unsqueeze(-1)
            tiny = ((parts > 0) & (parts < smallest)).any(-1)
            found = tiny if found is None else found | tiny
    return found


def converted(source: Any, got: Any) -> Any:
    """A result that a kernel wrote as another type; out of range, a conversion to integers has no right answer."""
    target = got.dtype
    x = source.real if source.is_complex() and not target.is_complex else source
    wide = x.to(torch.complex64) if x.is_complex() else x
    if target == torch.bool:
        want, valid = (wide != 0), None
    elif target.is_complex or target.is_floating_point:
        # To 16 bits by way of float, as a cast in Metal's C++ goes; the CPU does the same.
        want, valid = (wide if wide.is_complex() or x.is_floating_point() else wide.to(torch.float32)).to(target), None
    elif x.is_floating_point():
        f = x.to(torch.float64)
        info = torch.iinfo(target)
        valid = torch.isfinite(f) & (f > float(info.min) - 1) & (f < float(info.max) + 1)
        valid &= (f.abs() < 2.0**63) if target in (torch.int64, torch.uint64) else valid
        want = torch.where(valid, f, torch.zeros_like(f)).to(torch.int64)
        want = want.to(target) if target != torch.uint64 else want.view(torch.uint64)
    else:
        want, valid = x.to(torch.int64) if x.dtype != torch.uint64 else x.view(torch.int64), None
        want = want.to(target) if target != torch.uint64 else want.view(torch.uint64)
    wrong = as_bits(got) != as_bits(want.contiguous())
    if target.is_complex:
        want_parts, got_parts = (
            torch.view_as_real(want.to(torch.complex64)),
            torch.view_as_real(got.to(torch.complex64)),
        )
        wrong = ~equal(want_parts, got_parts).all(-1)
    elif target.is_floating_point:
        wrong = ~equal(want.to(torch.float32), got.to(torch.float32))
    if valid is not None:
        wrong = wrong.reshape(valid.shape) & valid
    found = {"max_ulp": 0.0, "bound_ulp": 0.0, "wrong": int(wrong.sum()), "count": got.numel()}
    if found["wrong"]:
        at = int(torch.nonzero(wrong.reshape(-1))[0])
        found |= {"index": at, "got": show(got, at), "want": show(want, at), "inputs": {"x": show(source, at)}}
    return found


def native(function: Any, inputs: Any, out: Any) -> Any:
    """Return what the CPU answers in the kernel's own types, or None where it has no such operator."""
    try:
        answer = function(
            **{name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}
        )
        return answer.to(out)
    except Exception:
        return None


def _unexplained(wrong: Any, masks: Any) -> Any:
    """Return what no known issue explains, or if there is none, all that is wrong and the issues that explain it."""
    beyond = wrong.clone()
    for mask in masks.values():
        beyond &= ~mask
    if beyond.any():
        return beyond, []
    return wrong, [name for name, mask in masks.items() if (wrong & mask).any()]


def exact(function: Any, inputs: Any, got: Any, row: Any, masks: Any) -> Any:
    """Return the exact result: the reference computed in the widest type that its operators take."""
    want = None
    if row.get("order"):
        inputs = {name: in_order(value) for name, value in inputs.items()}
        got = in_order(got)
    attempts: tuple[Callable[[Any], Any], ...] = (lambda v: v, whole, as_numbers, widen)
    for attempt in attempts:
        try:
            want = function(**{name: attempt(value) for name, value in inputs.items()})
            break
        except (RuntimeError, NotImplementedError, TypeError) as error:
            failure = error
    if want is None:
        raise failure
    if want.dtype != got.dtype:
        want = in_type(want, got.dtype)
    want = want.broadcast_to(got.shape)
    wrong = as_bits(got) != as_bits(want.contiguous())
    explained = []
    if masks and wrong.any():
        known = {name: _explained(mask, inputs, got, want) for name, mask in masks.items()}
        wrong, explained = _unexplained(wrong, known)
    found = {"max_ulp": 0.0, "bound_ulp": 0.0, "wrong": int(wrong.sum()), "count": got.numel(), "explained": explained}
    if found["wrong"]:
        at = int(torch.nonzero(most_ordinary(wrong, inputs).reshape(-1))[0])
        found |= {"index": at, "got": show(got, at), "want": show(want, at), **inputs_at(inputs, got, at)}
    return found


def judge(
    got: Any,
    want: Any,
    cpu: Any,
    bound: Any,
    inputs: Any,
    *,
    scale: Any,
    row: Any,
    magnitude: Any,
    left_out: Any,
    masks: Any,
) -> Any:
    """Compare a result with the exact one; an error may be the bound, or what the CPU itself errs by."""
    out, coarse = got.dtype, bool(row.get("coarse"))
    if out.is_complex:
        component = COMPONENT[out]
        g, w = torch.view_as_real(got.to(torch.complex64)), torch.view_as_real(want)
        # A complex product's small component may lose digits: the error is measured against the larger one.
        size = w.abs().amax(-1, keepdim=True).expand_as(w)
        if magnitude is not None:
            size = torch.maximum(size, magnitude.unsqueeze(-1).expand_as(w).nan_to_num(0.0))
        error = complex_error(g, w, size, component, scale)
        theirs = (
            complex_error(torch.view_as_real(cpu.to(torch.complex64)).broadcast_to(g.shape), w, size, component, scale)
            if cpu is not None
            else None
        )
        error, theirs = error.amax(-1), theirs.amax(-1) if theirs is not None else None
        error = torch.where(all_finite(inputs, error), error, torch.zeros_like(error))
    else:
        error = error_in_ulp(got, want, out, scale, magnitude, coarse)
        theirs = (
            error_in_ulp(cpu.broadcast_to(got.shape), want, out, scale, magnitude, coarse) if cpu is not None else None
        )
    allowed = torch.full_like(error, float(bound))
    if theirs is not None:  # noqa: SIM102
        if not row.get("strict"):
            allowed = torch.maximum(allowed, WORSE * theirs)
    if left_out is not None:
        error = torch.where(left_out.expand_as(error), torch.zeros_like(error), error)
    wrong = ~(error <= allowed)
    if theirs is not None:
        wrong &= ~equal(got, cpu.broadcast_to(got.shape))
    if row.get("signed_zero") and not out.is_complex:
        zero = (got == 0) & (want == 0) & (torch.signbit(got.to(torch.float64)) != torch.signbit(want))
        wrong |= zero
    wrong, explained = _unexplained(wrong, masks)
    finite = error[torch.isfinite(error)]
    found = {"max_ulp": float(finite.max()) if finite.numel() else 0.0, "bound_ulp": float(bound)}
    found |= {"wrong": int(wrong.sum()), "count": got.numel(), "explained": explained}
    if (profile := _profile(inputs, got, error, wrong)) is not None:
        found["profile"] = profile
    if theirs is not None and theirs.numel():
        held = theirs[torch.isfinite(theirs)]
        found["cpu_ulp"] = float(held.max()) if held.numel() else 0.0
    if found["wrong"]:
        shown = most_ordinary(wrong, inputs)
        worst = torch.where(shown, torch.nan_to_num(error, posinf=1e300), torch.full_like(error, -1)).reshape(-1)
        at = int(worst.argmax())
        found |= {
            "index": at,
            "got": show(got, at),
            "want": show(want, at),
            "ulp": min(float(error.reshape(-1)[at]), 1e300),
        }
        if cpu is not None:
            found["cpu"] = show(cpu.broadcast_to(got.shape), at)
        found |= inputs_at(inputs, got, at)
    return found


BINS, FEWEST = 64, 1000


def _profile(inputs: Any, got: Any, error: Any, wrong: Any) -> Any:
    """Return the largest error in each of 64 parts of the first input's values, from -inf to inf."""
    kinds = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32}
    fits = (each for each in inputs.values() if isinstance(each, torch.Tensor) and each.shape == got.shape)
    x = next((each for each in fits if each.dtype in kinds), None)
    if x is None or got.numel() < FEWEST:
        return None
    half = 1 << (x.element_size() * 8 - 1)
    bits = x.contiguous().view(kinds[x.dtype]).to(torch.int64).reshape(-1)
    ordered = torch.where(bits < 0, -(bits + half), bits) + half
    beyond = wrong.to(torch.float64) * 1e300  # an infinite error that is nobody's fault is left out
    errors = torch.where(torch.isfinite(error), error.to(torch.float64), beyond).reshape(-1)
    at = torch.div(ordered * BINS, 2 * half, rounding_mode="floor").clamp(0, BINS - 1)
    largest = torch.zeros(BINS, dtype=torch.float64).scatter_reduce(0, at, errors, "amax")
    return [float(f"{each:.3g}") for each in largest.tolist()]
