"""Images made larger or smaller."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.errors import NotBound
from ...program.launch import Program, Reference, Value, dense_strides
from ..shared.contracts import Case, Kernel
from ..shared.tensors import filled, result, strides_of, threads
from ..shared.zeroed import zeroed

# Batch, channels, input sizes, output sizes: outputs are powers of two, so that positions are exact in float.
UPSAMPLED = (
    (2, 3, (3, 5, 7), (4, 8, 16)),
    (1, 2, (6, 3, 12), (4, 4, 8)),
    (2, 1, (1, 4, 1), (2, 4, 4)),
)


def upsample(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each output position; sizes and strides outermost first, scales innermost first."""
    mode, nd, is_backward = _mode(kernel), _dimensions(kernel), "_backward" in kernel.name
    source, target = ("gradOutputData", "gradInputData") if is_backward else ("inputData", "outputData")
    dtype = kernel.dtype(source)
    if dtype.kind == "complex":
        raise NotBound("no reference for complex images")
    has_corners = mode in ("linear", "bilinear", "trilinear", "bicubic")
    gathers = is_backward and any(each.type == "uint3" for each in kernel.metadata.arguments)
    for number, (n, c, sizes, outs) in enumerate(UPSAMPLED):
        small, large = (n, c, *sizes[-nd:]), (n, c, *outs[-nd:])
        align = has_corners and number % 2 == 1
        low, high = (0.0, 255.0) if dtype.name == "uchar" else (-99.0, 99.0) if dtype.is_exact else (-2.0, 2.0)
        if not is_backward:
            x = filled(case, dtype, small, strides=tuple(2 * s for s in dense_strides(small)), low=low, high=high)
            got = result(kernel.dtype(target), large)
        else:
            x, got = filled(case, dtype, large), result(dtype, small) if gathers else zeroed(dtype, small)
        inner, outer = (got, x) if is_backward else (x, got)
        params: dict[str, object] = {
            "input_strides": strides_of(inner),
            "input_sizes": inner.shape,
            "output_strides": strides_of(outer),
            "output_sizes": outer.shape,
            "scales": [_scale(i, o, align) for i, o in zip(reversed(small[2:]), reversed(large[2:]), strict=True)],
        }
        arguments: dict[str | int, Value] = {source: x.buffer, target: got.buffer}
        if kernel.has("params"):
            if has_corners or any(each.name == "align_corners" for each in kernel.argument("params").fields):
                params["align_corners"] = align
            arguments["params"] = kernel.pack("params", params)
        else:  # up to 2.13 each is an argument of its own; one scale is both
            params |= {"align_corners": align, "scales": (list(params["scales"]) * 2)[:2]}  # type: ignore[call-overload]
            if not any(each.startswith("upsample_linear1d") for each in case.kernels):
                # Before the release that brought linear1d, sizes and strides came innermost first.
                inner_first = ("input_strides", "input_sizes", "output_strides", "output_sizes")
                params |= {name: tuple(reversed(params[name])) for name in inner_first}  # type: ignore[call-overload]
            arguments |= {name: kernel.pack(name, value) for name, value in params.items()}
        count = 1
        for each in large[2:]:
            count *= each
        grid = (small[3], small[2], n * c) if gathers else (count,)
        inputs: dict[str, object] = {"x": x, "mode": mode, "align": align if has_corners else None}
        inputs |= {"antialias": "_aa" in kernel.name, "small": list(small), "large": list(large[2:])}
        name = "nn_upsample_backward" if is_backward else "nn_upsample"
        atomic = is_backward and not gathers
        scale = 0.0 if mode.startswith("nearest") and not is_backward else 2.0**-17
        if atomic and dtype.size == 2:
            scale = 64 * 2.0 ** (-7 if dtype.name == "bfloat" else -10)
        check = Reference(got=got, name=name, inputs=inputs, scale=scale)
        steps = [threads(kernel, arguments, grid)]
        label = f"{small} to {large[2:]}, align {align}"
        yield Program(label=label, steps=steps, checks=[check], varies="float atomics" if atomic else "")


def _scale(small: int, large: int, align: bool) -> float:
    if align:
        return (small - 1) / (large - 1) if large > 1 else 0.0
    return small / large


def _mode(kernel: Kernel) -> str:
    name = kernel.parts["mode"]
    if name.startswith("nearest_exact"):
        return "nearest-exact"
    return next(each for each in ("nearest", "trilinear", "bilinear", "bicubic", "linear") if name.startswith(each))


def _dimensions(kernel: Kernel) -> int:
    name = kernel.parts["mode"]
    return 3 if "3d" in name or "trilinear" in name else 2 if "2d" in name else 1
