"""Negative log likelihood and CTC."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ...program.launch import Program, Reference, Step, Value, View, scratch_buffer
from ..shared.contracts import Case, Kernel
from ..shared.tensors import (
    bound,
    error_buffer,
    filled,
    groups,
    no_error,
    numbered,
    result,
    started,
    strides_of,
    threads,
    zeroed,
)

# Batch, classes, positions; whether classes are weighted; which class counts for nothing.
IMAGES = ((2, 5, 7, True, 1), (3, 4, 1, False, -100), (1, 9, 40, True, -100))


def likelihood(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`nllnd_loss_forward`: a thread a position; the loss of each, and its weight."""
    dtype, kind = kernel.dtype("input"), kernel.dtype("target")
    for n, c, size, weighted, ignored in IMAGES:
        x = filled(case, dtype, (n, c, size), strides=(c * size + 3, size, 1), low=-4, high=0)
        target = numbered(kind, _classes(case, n * size, c, ignored), (n, size))
        weight = filled(case, dtype, (c,), low=0.25, high=2)
        out, weights, error = result(dtype, (n, size)), result(dtype, (n, size)), error_buffer()
        values: dict[str, object] = {"input": x, "target": target, "weight": weight, "output": out}
        values |= {"sample_weights": weights, "params": _forward(x, size, c, ignored, weighted), "error_buf": error}
        inputs: dict[str, object] = {"x": x, "target": target, "weight": weight, "ignored": ignored}
        checks = [
            Reference(got=got, name="nll_forward", inputs={**inputs, "weighted": weighted, "which": which})
            for which, got in enumerate((out, weights))
        ]
        step = threads(kernel, bound(kernel, values), (n * size,))
        label = f"{n} x {c} x {size}, {ignored} ignored"
        yield Program(label=label, steps=[step], checks=[*checks, no_error(error)])


def _classes(case: Case, count: int, classes: int, ignored: int) -> list[int]:
    return [ignored if k % 5 == 4 else each for k, each in enumerate(case.values.integers(count, 0, classes - 1))]


def _forward(x: View, size: int, classes: int, ignored: int, weighted: bool) -> dict[str, object]:
    strides = strides_of(x)
    params = {"n_classes": classes, "map_size": size, "batch_stride": strides[0], "class_stride": strides[1]}
    return {**params, "ignore_index": ignored, "has_weight": weighted}


def likelihood_backward(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`nllnd_loss_backward`: into zeros; is_reduction has one gradient for all, is_mean divides by the weights."""
    dtype, kind = kernel.dtype("grad_input"), kernel.dtype("target")
    for (n, c, size, weighted, ignored), (reduced, mean) in itertools.product(IMAGES, ((0, 0), (1, 0), (1, 1))):
        dx = zeroed(dtype, (n, c, size))
        target = numbered(kind, _classes(case, n * size, c, ignored), (n, size))
        weight, total = filled(case, dtype, (c,), low=0.25, high=2), numbered(dtype, [6.5])
        dy, error = filled(case, dtype, (1,) if reduced else (n, size)), error_buffer()
        params = {
            "forward": _forward(dx, size, c, ignored, weighted),
            "is_reduction": bool(reduced),
            "is_mean": bool(mean),
        }
        values: dict[str, object] = {"grad_input": dx, "grad_output": dy, "target": target, "weight": weight}
        values |= {"total_weight": total, "params": params, "error_buf": error}
        inputs: dict[str, object] = {"dy": dy, "target": target, "weight": weight, "ignored": ignored}
        inputs |= {"weighted": weighted, "total": 6.5 if mean else 1.0, "shape": [n, c, size]}
        check = Reference(got=dx, name="nll_backward", inputs=inputs)
        step = threads(kernel, bound(kernel, values), (n * size,))
        label = f"{n} x {c} x {size}, reduced {reduced}, mean {mean}"
        yield Program(label=label, steps=[step], checks=[check, no_error(error)])


# Steps, classes, target lengths, input lengths, threads.
SEQUENCES = (
    (9, 5, (3, 3), (9, 7), 64),
    (20, 6, (7, 2, 5), (20, 20, 13), 32),
    (4, 3, (1,), (4,), 1024),
    (5, 4, (4, 2), (3, 5), 32),
)


def ctc(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`ctc_loss` leaves log_alpha, `ctc_loss_backward_log_beta` log_beta, `ctc_loss_backward_collect` the gradient."""
    rest = kernel.parts["rest"]
    forward = case.companion(f"ctc_loss_{rest}")
    backward = None
    if kernel.name != forward.name:
        backward = (
            case.companion(f"ctc_loss_backward_log_beta_{rest}"),
            case.companion(f"ctc_loss_backward_collect_{rest}"),
        )
    dtype = forward.dtype("log_probs")
    for number, (steps, classes, lengths, times, width) in enumerate(SEQUENCES):
        batch, longest = len(lengths), max(lengths)
        blank, offsets = (0, classes - 1)[number % 2], [sum(lengths[:at]) for at in range(batch)]
        x = filled(case, dtype, (steps, batch, classes), low=-4, high=-0.5)
        symbols = [each + (each >= blank) for each in case.values.integers(sum(lengths), 0, classes - 2)]
        kinds = {name: forward.dtype(name) for name in ("targets", "input_lengths", "target_lengths")}
        offset_kind = forward.dtype("target_batch_offsets")
        targets = numbered(kinds["targets"], symbols)
        one, two = numbered(kinds["input_lengths"], times), numbered(kinds["target_lengths"], lengths)
        loss, states = result(dtype, (batch,)), 2 * longest + 1
        alpha, beta = (scratch_buffer(batch * steps * states * dtype.size) for _ in range(2))
        values: dict[str, object] = {"loss": loss, "log_alpha": alpha, "log_beta": beta, "log_probs": x}
        values |= {"targets": targets, "input_lengths": one, "target_lengths": two}
        values["target_batch_offsets"] = numbered(offset_kind, offsets)
        shape = {"BLANK": blank, "max_input_length": steps, "max_target_length": longest, "tg_target_stride": 1}
        probs = strides_of(x)
        shape |= {"log_probs_time_stride": probs[0], "log_probs_batch_stride": probs[1], "log_probs_token_stride": 1}
        alphas = {"batch_stride": steps * states, "time_stride": states, "target_stride": 1}
        params = {**shape, "batch_size": batch, **{f"log_alpha_{name}": each for name, each in alphas.items()}}
        launches: list[Step] = [_group(forward, values | {"params": params}, batch, width)]
        inputs: dict[str, object] = {"x": x, "targets": targets, "times": list(times), "lengths": list(lengths)}
        inputs |= {"blank": blank, "steps": steps}
        unit = {"half": 2.0**-10, "bfloat": 2.0**-7}.get(dtype.name, 2.0**-22)
        # Sums of logarithms up to 4 * steps, rounded at each step.
        checks = [Reference(got=loss, name="ctc_loss", inputs=inputs, scale=16 * steps * unit)]
        zero_infinity = number == 3
        if backward is not None:
            beta_kernel, collect = backward
            grad = started(numbered(dtype, [-math.inf] * x.count, x.shape))
            dy = filled(case, dtype, (batch,), low=0.5, high=2)
            launches.append(_group(beta_kernel, values | {"params": params}, batch, width))
            own = {**shape, "num_labels": classes, **{f"log_alpha_beta_{name}": each for name, each in alphas.items()}}
            own |= {"grad_time_stride": probs[0], "grad_batch_stride": probs[1], "grad_token_stride": 1}
            own |= {"grad_out_batch_stride": 1, "zero_infinity": zero_infinity}
            arguments = bound(collect, values | {"grad": grad, "grad_out": dy, "params": own})
            launches.append(threads(collect, arguments, (steps, batch)))
            more = {**inputs, "dy": dy, "zero": zero_infinity}
            checks.append(Reference(got=grad, name="ctc_gradient", inputs=more, scale=16 * steps * unit))
        label = f"{steps} steps, {classes} classes, targets {lengths}, inputs {times}"
        yield Program(label=label, steps=launches, checks=checks)


def _group(kernel: Kernel, values: dict[str, object], batch: int, width: int) -> Step:
    arguments: dict[str | int, Value] = bound(kernel, values)
    return groups(kernel, arguments, (batch,), (width,))
