"""Layer, group and RMS norms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...program.launch import Program, Reference, Value, View
from ..shared.contracts import Case, Kernel
from ..shared.tensors import filled, groups, result

# Batch, channels, groups, elements a channel, threads.
GROUPED = ((2, 6, 3, 35, 64), (1, 4, 1, 1, 32), (2, 4, 4, 257, 96), (1, 2, 2, 1500, 1024))


EPS = 2.0**-16


def group_forward(kernel: Kernel, case: Case) -> Iterator[Program]:
    """One threadgroup for each group of each image; gamma and beta are absent where their type is void."""
    for n, c, g, hw, width in GROUPED:
        x = filled(case, kernel.dtype("X"), (n, c, hw), low=-2.0, high=3.0)
        gamma, beta = _weights(kernel, case, "gamma", c), _weights(kernel, case, "beta", c)
        y = result(kernel.dtype("Y"), (n, c, hw))
        mean, rstd = result(kernel.dtype("mean"), (n, g)), result(kernel.dtype("rstd"), (n, g))
        arguments: dict[str | int, Value] = {
            "Y": y.buffer,
            "mean": mean.buffer,
            "rstd": rstd.buffer,
            "X": x.buffer,
            "gamma": gamma.buffer if gamma else None,
            "beta": beta.buffer if beta else None,
            "params": _group_params(kernel, n, c, g, hw),
        }
        inputs: dict[str, object] = {"x": x, "groups": g, "eps": EPS, "gamma": gamma or 1.0, "beta": beta or 0.0}
        small = {"x": x, "groups": g, "eps": EPS}
        checks = [
            Reference(got=y, name="nn_group_norm", inputs=inputs, scale=2.0**-18),
            Reference(got=mean, name="nn_group_mean", inputs=small, scale=2.0**-20),
            Reference(got=rstd, name="nn_group_rstd", inputs=small, scale=2.0**-18 if hw > 1 else 2.0**-12),
        ]
        steps = [groups(kernel, arguments, (n * g,), (width,))]
        yield Program(label=f"{n} x {c} x {hw}, {g} groups, {width} threads", steps=steps, checks=checks)


def _group_params(kernel: Kernel, n: int, c: int, g: int, hw: int) -> bytes:
    values = {
        "HxW": hw,
        "num_groups": g,
        "channels_per_group": c // g,
        "elements_per_group": c // g * hw,
        "C": c,
        "N_times_HxW": n * hw,
        "eps": EPS,
    }
    return kernel.pack("params", values)


def _weights(kernel: Kernel, case: Case, name: str, count: int) -> View | None:
    if kernel.argument(name).type == "void":
        return None
    return filled(case, kernel.dtype(name), (count,))


def group_backward(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`dX`: one threadgroup a group of an image; `dgamma`, `dbeta`: one a channel."""
    is_x = kernel.has("dX")
    for n, c, g, hw, width in GROUPED:
        x, dy = filled(case, kernel.dtype("X"), (n, c, hw)), filled(case, kernel.dtype("dY"), (n, c, hw))
        mean = filled(case, kernel.dtype("mean"), (n, g), low=-0.5, high=0.5)
        rstd = filled(case, kernel.dtype("rstd"), (n, g), low=0.5, high=1.5)
        arguments: dict[str | int, Value] = {
            "dY": dy.buffer,
            "X": x.buffer,
            "mean": mean.buffer,
            "rstd": rstd.buffer,
            "params": _group_params(kernel, n, c, g, hw),
        }
        inputs: dict[str, object] = {"dy": dy, "x": x, "mean": mean, "rstd": rstd, "groups": g}
        if is_x:
            gamma = _weights(kernel, case, "gamma", c)
            dx = result(kernel.dtype("dX"), (n, c, hw))
            arguments |= {"dX": dx.buffer, "gamma": gamma.buffer if gamma else None}
            inputs["gamma"] = gamma or 1.0
            checks = [Reference(got=dx, name="nn_group_norm_dx", inputs=inputs, scale=2.0**-16)]
            count = n * g
        else:
            dgamma, dbeta = result(kernel.dtype("dgamma"), (c,)), result(kernel.dtype("dbeta"), (c,))
            arguments |= {"dgamma": dgamma.buffer, "dbeta": dbeta.buffer}
            scale = n * hw * 2.0**-19
            checks = [
                Reference(got=dgamma, name="nn_group_norm_dgamma", inputs=inputs, scale=scale),
                Reference(got=dbeta, name="nn_group_norm_dbeta", inputs={"dy": dy}, scale=scale),
            ]
            count = c
        steps = [groups(kernel, arguments, (count,), (width,))]
        yield Program(label=f"{n} x {c} x {hw}, {g} groups, {width} threads", steps=steps, checks=checks)


# Rows, length, threads: a thread has four elements. Longer rows are gone around, always by 1,024 threads.
ROWS = ((3, 37, 32), (2, 128, 64), (1, 1, 32), (2, 1030, 288), (1, 4096, 1024))


LOOPED = ((2, 4097, 1024), (1, 9001, 1024), (2, 8192, 1024))


def _rows(kernel: Kernel) -> Sequence[tuple[int, int, int]]:
    """Return what torch's host code launches this form for: the other form's rows are none of its own."""
    return LOOPED if kernel.parts["form"].endswith("looped") else ROWS


def layer(kernel: Kernel, case: Case) -> Iterator[Program]:
    """One threadgroup a row; a thread has four elements (`single_row`) or goes around; no weight, no bias: null."""
    dtype = kernel.dtype("input")
    for number, (rows, length, width) in enumerate(_rows(kernel)):
        x = filled(case, dtype, (rows, length), low=-2.0, high=3.0)
        weight = filled(case, kernel.dtype("weight"), (length,)) if number % 3 != 1 else None
        bias = filled(case, kernel.dtype("bias"), (length,)) if number % 3 != 2 else None
        y = result(kernel.dtype("output"), (rows, length))
        mean, rstd = result(kernel.dtype("meanOut"), (rows,)), result(kernel.dtype("rstdTensor"), (rows,))
        arguments: dict[str | int, Value] = {
            "input": x.buffer,
            "output": y.buffer,
            "meanOut": mean.buffer,
            "rstdTensor": rstd.buffer,
            "axis_size": kernel.pack("axis_size", length),
            "epsilon": kernel.pack("epsilon", EPS),
            "weight": weight.buffer if weight else None,
            "bias": bias.buffer if bias else None,
        }
        if kernel.has("use_weight"):
            arguments["use_weight"] = kernel.pack("use_weight", int(weight is not None))
            arguments["use_bias"] = kernel.pack("use_bias", int(bias is not None))
        small: dict[str, object] = {"x": x, "eps": EPS}
        checks = [
            Reference(
                got=y, name="nn_layer_norm", inputs={**small, "w": weight or 1.0, "b": bias or 0.0}, scale=2.0**-18
            ),
            Reference(got=mean, name="nn_row_mean", inputs={"x": x}, scale=2.0**-20),
            Reference(got=rstd, name="nn_row_rstd", inputs=small, scale=2.0**-12 if length == 1 else 2.0**-18),
        ]
        steps = [groups(kernel, arguments, (rows,), (width,))]
        yield Program(label=f"{rows} rows of {length}, {width} threads", steps=steps, checks=checks)


def rms(kernel: Kernel, case: Case) -> Iterator[Program]:
    """One threadgroup a row; four elements a thread, or around."""
    for number, (rows, length, width) in enumerate(_rows(kernel)):
        stride = 1 + number % 2
        x = filled(case, kernel.dtype("x"), (rows, length))
        w = filled(case, kernel.dtype("w"), (length,), strides=(stride,))
        out = result(kernel.dtype("out"), (rows, length))
        arguments: dict[str | int, Value] = {
            "x": x.buffer,
            "w": w.buffer,
            "out": out.buffer,
            "eps": kernel.pack("eps", EPS),
            "axis_size": kernel.pack("axis_size", length),
            "w_stride": kernel.pack("w_stride", stride),
        }
        checks = [Reference(got=out, name="nn_rms_norm", inputs={"x": x, "w": w, "eps": EPS}, scale=2.0**-19)]
        steps = [groups(kernel, arguments, (rows,), (width,))]
        yield Program(label=f"{rows} rows of {length}", steps=steps, checks=checks)
