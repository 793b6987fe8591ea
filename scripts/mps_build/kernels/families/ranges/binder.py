"""`arange` and `linspace` into dense tensors."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DTYPES, DType
from ...program.launch import Known, Program, Reference, Step, View, output_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.strided import Arguments
from .span import span


def arange(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`arange`: se (start, step), p (stride, first index)."""
    dtype = kernel.dtype("out")
    for count, stride, begin, start, step in ((77, 1, 0, 3, 2), (33, 3, 0, 1, 1), (64, 1, 5, 0, 3)):
        if begin and not kernel.has("p"):
            continue
        out = output_buffer(((count + begin - 1) * stride + 1) * dtype.size)
        arguments: Arguments = {
            "out": out,
            "se": pack(_scalar(kernel), [start, step]),
        }
        if kernel.has("p"):
            arguments["p"] = pack(_word(kernel, "p", 2), [stride, begin])
        else:
            arguments["stride"] = kernel.pack("stride", stride)
        launch = Step(kernel=kernel.name, arguments=arguments, grid=(count, 1, 1), threadgroup=(32, 1, 1))
        want = pack(dtype, [start + step * (i + begin) for i in range(count)])
        got = View(buffer=out, dtype=dtype, shape=(count,), strides=(stride,), offset=begin * stride)
        yield Program(label=f"{count} from {start} by {step}", steps=[launch], checks=[Known(got=got, want=want)])


def _scalar(kernel: Kernel) -> DType:
    """Return the type of start and step: floats, and for integers long."""
    argument = kernel.argument("se")
    if kernel.dtype("out").is_exact:
        return DTYPES["long" if (argument.size or argument.element) == 16 else "int"]
    return DTYPES["float"]


def linspace(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`linspace`: v (start, step, end), p (steps, stride, first index); the second half counts from the end."""
    dtype = kernel.dtype("out")
    for count, stride, begin, low, high in ((77, 1, 0, -1.5, 3.25), (32, 3, 0, 2.0, -7.0), (9, 1, 0, 0.5, 1000.0)):
        start, end = low, high
        if dtype.is_exact:
            # Steps that floats have exactly: what is cut off then does not depend on rounding.
            start, end = 1.0, 1.0 + (count - 1) * (1.5 if count % 2 else 0.5)
        step = (end - start) / (count - 1)
        v = kernel.argument("v")
        scalar = dtype if not dtype.is_exact and (v.size or v.element) == 3 * dtype.size else None
        out = output_buffer(((count - 1) * stride + 1) * dtype.size)
        arguments: Arguments = {
            "out": out,
            "v": pack(scalar or DTYPES["float"], [start, step, end]),
            "p": kernel.pack("p", span(kernel, count, stride, begin)),
        }
        launch = Step(kernel=kernel.name, arguments=arguments, grid=(count, 1, 1), threadgroup=(32, 1, 1))
        got = View(buffer=out, dtype=dtype, shape=(count,), strides=(stride,))
        scale = max(abs(start), abs(end)) * {"half": 2.0**-8, "bfloat": 2.0**-5}.get(dtype.name, 2.0**-20)
        check = Reference(
            got=got, name="made_linspace", inputs={"start": start, "end": end, "count": count}, scale=scale
        )
        yield Program(label=f"{count} from {start} to {end}", steps=[launch], checks=[check])


def _word(kernel: Kernel, name: str, length: int) -> DType:
    argument = kernel.argument(name)
    return DTYPES["long" if (argument.size or argument.element) == 8 * length else "int"]
