"""Copies: of bytes, into longer tensors, turned around, repeated, put one behind the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import (
    Known,
    Program,
    Reference,
    Step,
    Value,
    View,
    dense_strides,
    inout_buffer,
    input_buffer,
    output_buffer,
)
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import (
    Arguments,
    bound,
    grid_of,
    groups,
    known_bytes,
    one_launch,
    padded,
    places_of,
    random_bytes,
    reach,
    result,
    threads,
)

BYTE = DTYPES["uchar"]


def copy_contiguous(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`contiguous_byte_copy`: `chunk_bytes` from `base` on; every alignment of the two."""
    for count, base in ((1, 0), (16, 0), (77, 0), (128, 16), (50, 8), (35, 4), (31, 2), (40, 3)):
        data, before = random_bytes(case, base + count + 5), random_bytes(case, base + count + 5)
        out = View(buffer=inout_buffer(before, align=16), dtype=BYTE, shape=(len(before),))
        values = {"out": out, "in": input_buffer(data, align=16), "chunk_bytes": count, "base": base}
        want = before[:base] + data[base : base + count] + before[base + count :]
        step = threads(kernel, bound(kernel, values), (-(-count // 16),))
        yield Program(label=f"{count} bytes from {base}", steps=[step], checks=[Known(got=out, want=want)])


# Outer sizes, bytes of a row, and bytes between rows of the input and of the result.
ROWS = (
    ((3,), 32, 48, 32),
    ((2, 3), 7, 9, 8),
    ((4,), 20, 24, 20),
    ((1,), 100, 100, 100),
    ((2, 2), 6, 6, 10),
    ((3,), 33, 40, 34),
)


def copy_inner_contiguous(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`inner_contiguous_copy`: rows of bytes; outer sizes and strides innermost first."""
    for outer, inner, step_in, step_out in ROWS:
        count = math.prod(outer)
        data, before = random_bytes(case, step_in * count), random_bytes(case, step_out * count)
        out = View(buffer=inout_buffer(before, align=16), dtype=BYTE, shape=(len(before),))
        first = outer[-1]
        values: dict[str, object] = {"output": out, "input": input_buffer(data, align=16)}
        values |= {"outer_sizes": outer[::-1], "ndim_outer_inner_bytes": (len(outer), inner)}
        # The innermost of the outer dimensions has the longer step: rows of the result lie in another order.
        values |= {"input_outer_strides": [step_in, step_in * first][: len(outer)]}
        turned = [step_out * (count // first), step_out] if len(outer) == 2 else [step_out]
        values |= {"output_outer_strides": turned}
        want = bytearray(before)
        for at in range(count):
            place = at % first * turned[0] + (at // first * turned[1] if len(outer) == 2 else 0)
            want[place : place + inner] = data[at * step_in : at * step_in + inner]
        step = threads(kernel, bound(kernel, values), (-(-inner // 16), count))
        yield Program(label=f"{outer} rows of {inner}", steps=[step], checks=[Known(got=out, want=bytes(want))])


def copy_padded(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`inner_contiguous_scatter`: slices that lie side by side, each into a longer one of the result, at an offset."""
    for count, size, long, offset, begin in (
        (3, 32, 48, 16, 0),
        (5, 7, 9, 1, 0),
        (2, 100, 128, 20, 32),
        (4, 6, 8, 2, 0),
    ):
        data, before = random_bytes(case, count * size), random_bytes(case, count * long)
        out = View(buffer=inout_buffer(before, align=16), dtype=BYTE, shape=(len(before),))
        total = len(data) - begin
        params = {"chunk_base": begin, "slice_bytes": size, "out_stride_bytes": long, "off_bytes": offset}
        values = {"input": input_buffer(data, align=16), "output": out, "params": params | {"nbytes": total}}
        want = bytearray(before)
        for at in range(begin, len(data)):
            want[at // size * long + at % size + offset] = data[at]
        step = threads(kernel, bound(kernel, values), (-(-total // 16),))
        yield Program(
            label=f"{count} slices of {size}, from {begin}", steps=[step], checks=[Known(got=out, want=bytes(want))]
        )


def copy_channels_last(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`nchw_to_nhwc`: dims (channels, pixels); a threadgroup of 256 a tile; images along z."""
    dtype, tall, wide = kernel.dtype("src"), int(kernel.parts["tall"]), int(kernel.parts["wide"])
    whole = [kernel.parts[name] == "true" for name in ("in_vectors", "out_vectors")]
    for batch, tall_by, wide_by in ((2, 5, 38), (1, tall, wide), (1, 2 * tall + 2, wide + 6)):
        channels, pixels = (
            tall_by + (4 - tall_by % 4 if whole[1] else 0),
            wide_by + (4 - wide_by % 4 if whole[0] else 0),
        )
        data = case.values.sweep(dtype, batch * channels * pixels)
        size, want = dtype.size, b""
        for b, p, c in itertools.product(range(batch), range(pixels), range(channels)):
            at = ((b * channels + c) * pixels + p) * size
            want += data[at : at + size]
        out = output_buffer(len(data))
        arguments = bound(kernel, {"src": input_buffer(data), "dst": out, "dims": (channels, pixels)})
        launch = groups(kernel, arguments, (-(-pixels // wide), -(-channels // tall), batch), (256,))
        got = View(buffer=out, dtype=dtype, shape=(batch * channels * pixels,))
        yield Program(label=f"{batch} x {channels} x {pixels}", steps=[launch], checks=[Known(got=got, want=want)])


def cat(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`cat`: one input into its place along `cat_dim`; strides in elements, outermost first; two launches share it."""
    source, target = kernel.dtype("input"), kernel.dtype("output")
    for shape, dim, offset, total, pad, split in (
        ((2, 3, 5), 1, 4, 9, 0, 0),
        ((4, 37), 1, 0, 40, 1, 70),
        ((7,), 0, 2, 9, 0, 3),
        ((3, 2, 1, 6), 0, 1, 5, 2, 0),
    ):
        out_shape = tuple(total if d == dim else n for d, n in enumerate(shape))
        in_strides, out_strides = padded(shape, pad)[::1], padded(out_shape, pad)
        if pad and len(shape) > 1:
            in_strides = tuple(reversed(padded(shape[::-1], pad)))
        x = input_buffer(case.values.sweep(source, reach(shape, in_strides)))
        out = output_buffer(reach(out_shape, out_strides) * target.size)
        count, steps = math.prod(shape), []
        shared = {"ndim": len(shape), "cat_dim": dim, "output_strides": out_strides, "output_sizes": out_shape}
        for begin, number in ((0, split or count), (split, count - split))[: 2 if split else 1]:
            own = {
                "cat_dim_offset": offset,
                "input_element_offset": begin,
                "input_strides": in_strides,
                "input_sizes": shape,
            }
            arguments: Arguments = {
                "input": x,
                "output": out,
                "shared_params": kernel.pack("shared_params", shared),
                "input_params": kernel.pack("input_params", own),
            }
            steps.append(
                Step(
                    kernel=kernel.name,
                    arguments=arguments,
                    grid=grid_of(number),
                    threadgroup=grid_of(min(number, 32)),
                )
            )
        view = View(buffer=x, dtype=source, shape=shape, strides=in_strides)
        got = View(buffer=out, dtype=target, shape=shape, strides=out_strides, offset=offset * out_strides[dim])
        check = Reference(got=got, name="cast", inputs={"x": view, "to": target.torch})
        yield Program(label=f"{shape} at {offset} of {total} along {dim}, gaps of {pad}", steps=steps, checks=[check])


def flip(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`flip`: strides in bytes of both, innermost first; what turns is given by the strides."""
    size = int(kernel.parts["bits"]) // 8
    dtype = {1: DTYPES["uchar"], 2: DTYPES["ushort"], 4: DTYPES["uint"], 8: DTYPES["ulong"]}[size]
    for shape, gap in (((3, 7, 5), 0), ((2, 4, 9), 1), ((1, 1, 40), 2)):
        order = list(reversed(range(len(shape))))
        source = padded(shape, gap)
        # A permuted result: what is turned about is where each element goes.
        target = tuple(reversed(dense_strides(shape[::-1])))
        data, want = case.values.sweep(dtype, reach(shape, source)), bytearray(math.prod(shape) * size)
        for at, to in zip(places_of(shape, source), places_of(shape, target), strict=True):
            want[to * size : (to + 1) * size] = data[at * size : (at + 1) * size]
        out = output_buffer(len(want))
        arguments: Arguments = {
            "output": out,
            "input": input_buffer(data),
            "output_strides": kernel.pack("output_strides", [target[d] * size for d in order]),
            "input_strides": kernel.pack("input_strides", [source[d] * size for d in order]),
        }
        grid = (math.prod(shape), 1, 1)
        if kernel.has("sizes"):
            arguments |= {
                "sizes": kernel.pack("sizes", [shape[d] for d in order]),
                "ndim": kernel.pack("ndim", len(shape)),
            }
        else:
            grid = (shape[2], shape[1], shape[0])
        yield Program(
            label=f"{shape}, gaps of {gap}",
            steps=[one_launch(kernel, arguments, grid)],
            checks=[known_bytes(out, dtype, bytes(want))],
        )


def repeat_interleave(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each count: it writes its own index so often, before its cumulative sum."""
    kind = kernel.dtype("repeat_ptr")
    for count in (1, 37, 70):
        repeats = [*case.values.integers(count - 1, 0, 4), 2]
        sums = [sum(repeats[: i + 1]) for i in range(count)]
        x = View(buffer=input_buffer(pack(kind, repeats)), dtype=kind, shape=(count,))
        y = result(kernel.dtype("result_ptr"), (sums[-1],))
        arguments: dict[str | int, Value] = {
            "repeat_ptr": x.buffer,
            "cumsum_ptr": input_buffer(pack(DTYPES["long"], sums)),
            "result_ptr": y.buffer,
        }
        if kernel.has("repeat_stride"):
            arguments["repeat_stride"] = kernel.pack("repeat_stride", 1)
        check = Reference(got=y, name="nn_repeat", inputs={"x": x})
        yield Program(label=f"{count} counts", steps=[threads(kernel, arguments, (count,))], checks=[check])


def repeat_by_runs(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`repeat_interleave`: index i as often as repeat[i] says; cumsum is the running sum of repeat."""
    dtype = kernel.dtype("repeat_ptr")
    for count, every in ((33, 1), (20, 3), (1, 1)):
        numbers = [case.values.random.randrange(5) for _ in range(count)]
        numbers[-1] = 2
        spread = [0] * ((count - 1) * every + 1)
        spread[::every] = numbers
        want = [i for i, times in enumerate(numbers) for _ in range(times)]
        out = output_buffer(len(want) * dtype.size)
        arguments: Arguments = {
            "repeat_ptr": input_buffer(pack(dtype, spread)),
            "result_ptr": out,
            "cumsum_ptr": input_buffer(pack(DTYPES["long"], list(itertools.accumulate(numbers)))),
            "repeat_stride": kernel.pack("repeat_stride", every),
        }
        yield Program(
            label=f"{count} numbers, every {every}",
            steps=[one_launch(kernel, arguments, (count, 1, 1))],
            checks=[known_bytes(out, dtype, pack(dtype, want))],
        )
