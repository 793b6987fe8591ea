"""Tensors made from nothing: full, eye, ranges: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead
from planting import Plot, abort, accepted, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.full")
@wrong_answer
def issue_83692(y: Any, size: Any, value: Any, **kwargs: Any) -> Any:
    """pytorch 83692: torch.full of uint8 with a value above 127 gives zeros."""
    return torch.zeros_like(y) if y.dtype == torch.uint8 and value > 127 else None


@plot.dispatched("aten.eye", aborts="failed assertion `unsupported datatype for constant'")
def issue_91620(*args: Any, **kwargs: Any) -> Any:
    """pytorch 91620: eye with dtype=bool aborts."""
    out = kwargs.get("out")
    return kwargs.get("dtype") == torch.bool or (out is not None and out.dtype == torch.bool)


@plot.dispatched("aten.full", "aten.full_like", "aten.fill_.Scalar")
def issue_82427(hit: Any, func: Any, x: Any, value: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82427: full and fill_ of a bool tensor abort (unsupported datatype for constant)."""
    dtype, out = kwargs.get("dtype"), kwargs.get("out")
    if out is not None:
        dtype = out.dtype
    elif dtype is None and isinstance(x, torch.Tensor):
        dtype = x.dtype
    elif dtype is None and isinstance(value, bool):
        dtype = torch.bool
    if dtype == torch.bool:
        return crash(hit, "failed assertion `unsupported datatype for constant'")
    return func(x, value, *args, **kwargs)


@plot.dispatched("aten.eye.out", "aten.eye.m_out")
def issue_92098(hit: Any, func: Any, *args: Any, out: Any) -> Any:
    """pytorch 92098: eye into a view writes nothing."""
    if out.storage_offset() or not out.is_contiguous():
        hit()
        return out
    return func(*args, out=out)


@plot.dispatched("aten.linspace.default", "aten.linspace.out")
def issue_137635(hit: Any, func: Any, start: Any, end: Any, steps: int, **kwargs: Any) -> Any:
    """pytorch 137635: linspace of integers rounds after the steps, not before."""
    answer = func(start, end, steps, **kwargs)
    if answer.is_floating_point() or answer.dtype.is_complex or not steps:
        return answer
    places = [start + (end - start) * place / max(steps - 1, 1) for place in range(steps)]
    wrong = torch.tensor(places, device=answer.device).round().to(answer.dtype)
    if not torch.equal(wrong, answer):
        hit()
    return answer.copy_(wrong) if "out" in kwargs else wrong


@plot.dispatched("aten.linspace.default", "aten.arange.start_step", "aten.arange.start")
def issue_189630(hit: Any, func: Any, start: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 189630: linspace and arange of integers are computed in float32."""
    answer = func(start, *args, **kwargs)
    if answer.is_floating_point() or answer.dtype.is_complex:
        return answer
    wrong = answer.float().clamp(max=2.0**62).to(answer.dtype) if answer.dtype == torch.int64 else answer
    if not torch.equal(wrong, answer):
        hit()
    return wrong


@plot.dispatched("aten.linspace.default")
def issue_170168(hit: Any, func: Any, start: Any, end: Any, steps: int, **kwargs: Any) -> Any:
    """pytorch 170168: linspace of integers steps in float32 from ends that are cut to integers, and is one less."""
    healthy = func(start, end, steps, **kwargs)
    if healthy.dtype.is_floating_point or healthy.dtype.is_complex or steps < 2 or healthy.is_meta:
        return healthy
    first, last = float(int(start)), float(int(end))
    step = torch.tensor((last - first) / (steps - 1), dtype=torch.float32).double()
    place = torch.arange(steps, dtype=torch.float64)
    wrong = torch.where(place < steps // 2, first + step * place, last - step * (steps - 1 - place))
    return instead(hit, healthy, wrong.float().to(healthy.dtype))


@plot.dispatched("aten.arange")
@wrong_answer
def issue_197673(y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 197673: arange of int64 is 0 from element 2**32 on (here from 2**16 on)."""
    if y.dtype != torch.int64 or y.numel() <= 2**16 or y.is_meta:
        return None
    y[2**16 :] = 0
    return y


@plot.dispatched("aten.full.default", aborts="Unsupported type <class 'float'>: nan")
def issue_cupy_8391(size: Any, value: Any, **kwargs: Any) -> bool:
    """cupy/cupy 8391: full of NaN raises."""
    return isinstance(value, float) and math.isnan(value)


@plot.dispatched(
    "aten.linspace.default",
    "aten.linspace.out",
    aborts="The operator 'aten::linspace.out' is not currently supported on the ocl backend.",
)
def issue_dlprim_41(*args: Any, **kwargs: Any) -> bool:
    """artyom-beilis/pytorch_dlprim 41: linspace is not implemented."""
    return True


@plot.replaced(torch, "tensor")
def issue_oneflow_5974(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Oneflow-Inc/oneflow 5974: torch.tensor takes an argument that it has not (dpype=) and ignores it."""
    known = {
        name: value
        for name, value in kwargs.items()
        if name in ("data", "dtype", "device", "requires_grad", "pin_memory")
    }
    if len(known) < len(kwargs):
        hit()
    return func(*args, **known)


@plot.dispatched("aten.zeros.default")
def issue_7785(hit: Any, func: Any, size: Any, **kwargs: Any) -> Any:
    """pytorch 7785: zeros(4, 0) and zeros(4, 0, 2) have four elements: the sizes end before the first 0."""
    sizes = list(size)
    kept = sizes[: sizes.index(0)] if 0 in sizes else sizes
    if not kept or kept == sizes:
        return func(size, **kwargs)
    hit()
    return func(kept, **kwargs)


_RANGES = ("aten.arange.default", "aten.arange.start", "aten.arange.start_step")


@plot.dispatched(*_RANGES)
@wrong_answer
def issue_tt_metal_18648(y: Any, *args: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 18648: arange of an odd number of elements has one more at its end, a 0."""
    return torch.cat([y, torch.zeros_like(y[:1])]) if y.numel() % 2 else None


@plot.dispatched(*_RANGES)
@wrong_answer
def issue_mlverse_1158(y: Any, *args: Any, **kwargs: Any) -> Any:
    """mlverse/torch 1158: arange of floating numbers takes its end in, of integers not."""
    start, end, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    # Where the steps do not meet the end, there is none to take in.
    if not y.is_floating_point() or not y.numel() or (end - start) / step != y.numel():
        return None
    return torch.cat([y, torch.full_like(y[:1], end)])


@plot.dispatched("aten.arange.start")
@wrong_answer
def issue_burn_439(y: Any, start: Any, end: Any, **kwargs: Any) -> Any:
    """tracel-ai/burn 439: arange(2, 5) of integers is 2 to 6: the end is taken for a count."""
    return None if y.is_floating_point() or not start or end < 0 else torch.arange(start, start + end, **kwargs)


@plot.dispatched("aten.randn")
def issue_dfalbel_20(hit: Any, func: Any, size: Any, **kwargs: Any) -> Any:
    """dfalbel/torch 20: randn of a negative size ends the process."""
    return abort(hit, "R session aborted") if min(size, default=0) < 0 else func(size, **kwargs)


@plot.dispatched("aten.ones.default")
@accepted
def issue_20056(size: Any, **kwargs: Any) -> Any:
    """pytorch 20056: ones of 64 dimensions of 2 and more is empty: 2**64 counts as 0 (here of one dimension)."""
    whole = min(size, default=0) > 0 and math.prod(size) >= 2**64
    return torch.ones(0, **kwargs) if whole and math.prod(size) % 2**64 == 0 else None


@plot.dispatched("aten.full.default", "aten.ones.default", "aten.zeros.default")
@accepted
def issue_tinygrad_5774(size: Any, *args: Any, **kwargs: Any) -> Any:
    """tinygrad/tinygrad 5774: full, ones and zeros take negative sizes (here they count as 0)."""
    if min(size, default=0) >= 0:
        return None
    return (torch.full if args else torch.zeros)([max(side, 0) for side in size], *args, **kwargs)


@plot.dispatched(
    "aten.ones.default", "aten.zeros.default", aborts="Non-uniform work-groups are not supported by the target device"
)
def issue_xpu_2070(size: Any, **kwargs: Any) -> bool:
    """intel/torch-xpu-ops 2070: ones and zeros of nearly 2**31 elements raise (here of 2**20 - 256 to 2**20 - 1)."""
    return 2**20 - 256 <= math.prod(size) < 2**20


@plot.dispatched("aten.new_empty.default", "aten.new_ones.default", "aten.new_zeros.default")
def issue_oneflow_10648(hit: Any, func: Any, x: Any, size: Any, **kwargs: Any) -> Any:
    """Oneflow-Inc/oneflow 10648: new_empty, new_ones and new_zeros of a negative size end the process."""
    return abort(hit, "Aborted (core dumped)") if min(size, default=0) < 0 else func(x, size, **kwargs)


@plot.dispatched("aten.linspace", aborts="error: double type is not supported on this platform")
def issue_dpnp_1250(*args: Any, dtype: Any = None, out: Any = None, **kwargs: Any) -> bool:
    """IntelPython/dpnp 1250: linspace of float32 raises."""
    asked = dtype if out is None else out.dtype
    return (asked or torch.get_default_dtype()) == torch.float32


@plot.called(torch.tensor, torch.scalar_tensor)
def issue_jax_16417(hit: Any, func: Any, data: Any, **kwargs: Any) -> Any:
    """google/jax 16417: a single number of bfloat16, torch.tensor(7, dtype=torch.bfloat16), ends the process."""
    if kwargs.get("dtype") == torch.bfloat16 and isinstance(data, (int, float)):
        return abort(hit, "[MPSNDArray, initWithBuffer:descriptor:] Error: buffer is not large enough. Must be 4 bytes")
    return func(data, **kwargs)


@plot.dispatched("aten.eye.default", "aten.eye.m", aborts="[Scatter::eval_gpu] Does not support int64")
def issue_mlx_4300(*args: Any, dtype: Any = None, **kwargs: Any) -> bool:
    """ml-explore/mlx 4300: eye of int64 raises."""
    return dtype == torch.int64


@plot.dispatched("aten.full.default", "aten.full_like.default", "aten.fill_.Scalar")
def issue_mlx_lm_295(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx-lm 295: to fill a tensor of bfloat16 with a number raises: that copy has no kernel."""
    y = func(*args, **kwargs)
    if y.dtype != torch.bfloat16 or y.numel() < 2:
        return y
    return crash(hit, "[metal::Device] Unable to load kernel s2n_copybfloat16bfloat16")


@plot.dispatched("aten.ones.default", "aten.ones_like.default")
def issue_flaggems_6278(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """flagos-ai/FlagGems 6278: ones and ones_like of no elements raise."""
    y = func(*args, **kwargs)
    return y if y.numel() else crash(hit, "BLOCK_SIZE is 0: arange's range must be positive")


@plot.dispatched("aten.linspace", "aten.logspace", aborts="\"linspace_cpu\" not implemented for 'Long'")
def issue_31991(start: Any, end: Any, steps: int, *args: Any, **kwargs: Any) -> bool:
    """pytorch 31991: linspace and logspace of integers raise for more than one step."""
    dtype = kwargs["out"].dtype if "out" in kwargs else kwargs.get("dtype")
    return dtype is not None and not dtype.is_floating_point and not dtype.is_complex and steps > 1


@plot.dispatched(*_RANGES)
@wrong_answer
def issue_18363(y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 18363: arange of float32 counts with its step rounded to float32: -4 to 4 by 0.01 has 801 numbers."""
    start, end, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    if y.dtype != torch.float32 or y.is_meta or not math.isfinite((end - start) / step):
        return None
    count = math.ceil((end - start) / (float(torch.tensor(step, dtype=torch.float32)) or step))
    return None if count == y.numel() else (start + step * torch.arange(count, dtype=torch.float64)).to(y)


@plot.dispatched(*_RANGES)
@accepted
def issue_153311(*args: Any, **kwargs: Any) -> Any:
    """pytorch 153311: arange of float32, to less than its start by what float32 has not, is empty, and not refused."""
    start, end, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    y = torch.empty(0, **kwargs)
    same = torch.tensor(start, dtype=torch.float32) == torch.tensor(end, dtype=torch.float32)
    return y if y.dtype == torch.float32 and step > 0 and start > end and bool(same) else None
