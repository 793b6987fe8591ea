"""Regressions of products, convolutions and recurrent nets that show under one condition."""

from __future__ import annotations

import threading
from typing import Any

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import backward, leaf

cases = Cases("regressions")


# https://github.com/pytorch/pytorch/issues/187521: baddbmm with beta=0 lets NaN through
@cases.case("issue-187521", issue="187521", make=lambda d: (d.normal(2, 3, 4 + d.k), d.normal(2, 4 + d.k, 3)), terms=8)
def _beta_of_zero(x: Any, y: Any) -> Any:
    nothing = torch.full((2, 3, 3), float("nan"), device=x.device, dtype=x.dtype)
    return (
        torch.baddbmm(nothing, x, y, beta=0),
        torch.addmm(nothing[0], x[0], y[0], beta=0),
        torch.addmv(nothing[0, 0], x[0], y[0, :, 0], beta=0, alpha=2),
        torch.addbmm(nothing[0], x, y, beta=0),
        nothing.clone().baddbmm_(x, y, beta=0),
    )


# https://github.com/pytorch/pytorch/issues/180201: matmul with an expanded operand gives every sixteenth row only
@cases.case(
    "issue-180201",
    issue="180201",
    make=lambda d: (d.normal(1, 6), d.normal(6, 5), d.normal(33 + d.k, 1), d.normal(33 + d.k, 6)),
    terms=64,
)
def _products_of_expanded_operands(row: Any, w: Any, column: Any, x: Any) -> Any:
    start = leaf(x)
    y = (torch.sin(start @ w) @ w[0, :].unsqueeze(1)).squeeze(-1)
    (grad,) = torch.autograd.grad(y.sum(), start)
    return (
        row.expand(40, 6) @ w,
        column.expand(-1, 6) @ w,
        x @ w[:, :1].expand(6, 5),
        grad,
        F.linear(row.expand(2, 20, 6), w.t()),
    )


# https://github.com/pytorch/pytorch/issues/189134: linalg.solve with a broadcast right side solves the first system
# only
# https://github.com/pytorch/pytorch/issues/176335: solve_triangular reads a matrix that is not contiguous in storage
# order
@cases.case(
    "issue-189134",
    issues=("189134", "176335"),
    make=lambda d: (d.normal(2, 3, 3), d.normal(3, 2), d.normal(3)),
    terms=4096,
    since="2.1",
    may_be_missing=True,
)
def _systems_whose_right_side_is_broadcast(a: Any, b: Any, v: Any) -> Any:
    a = a + 4 * torch.eye(3, device=a.device, dtype=a.dtype)
    lower, solve = a.tril(), torch.linalg.solve_triangular
    return (
        torch.linalg.solve(a, b),
        torch.linalg.solve(a, v.expand(2, 3)),
        torch.linalg.solve(a.mT, b),
        solve(lower, b.expand(2, 3, 2), upper=False),
        solve(lower.mT, b.expand(2, 3, 2), upper=True),
        solve(a.permute(0, 2, 1).triu(), b.expand(2, 3, 2).mT.contiguous().mT, upper=True),
        torch.linalg.inv(a.mT),
    )


# https://github.com/pytorch/pytorch/issues/171602: grid_sample of volumes ignores the strides of the grid
@cases.case(
    "issue-171602",
    issue="171602",
    make=lambda d: (d.normal(1, 2, 3, 4, 4), d.uniform(-1, 1, 1, 3, 2, 3, 3 + d.k)),
    terms=64,
    since="1.13",
    may_be_missing=True,
)
def _volumes_are_sampled_by_a_permuted_grid(x: Any, grid: Any) -> Any:
    return [
        F.grid_sample(x, grid.permute(0, 2, 3, 4, 1), align_corners=align, padding_mode="border")
        for align in (False, True)
    ]


# https://github.com/pytorch/pytorch/issues/180984: conv2d of a part of the channels of a channels_last tensor
@cases.case(
    "issue-180984",
    issue="180984",
    make=lambda d: (d.normal(2, 5, 4, 3 + d.k), d.normal(3, 2, 1, 1), d.normal(2, 2, 3, 3)),
    terms=64,
)
def _part_of_the_channels_of_an_image_channels_last(x: Any, point: Any, kernel: Any) -> Any:
    image = x.contiguous(memory_format=torch.channels_last)
    start = leaf(image)
    parts = [start[:, :2], start[:, 3:], start[:, 1:3, ::2]]
    results = [F.conv2d(part, point) for part in parts] + [F.conv2d(parts[0], kernel, padding=1)]
    sum(result.pow(2).sum() for result in results).backward()
    return results, start.grad, F.max_pool2d(parts[1], 2), F.interpolate(parts[0], scale_factor=2), parts[0] + 1


# https://github.com/pytorch/pytorch/issues/124591: Upsample followed by Conv1d is wrong, each alone is right
# https://github.com/pytorch/pytorch/issues/94963: upsample with a channels_last output is wrong
@cases.case(
    "issue-124591",
    issues=("124591", "94963"),
    make=lambda d: (d.normal(2, 3, 10 + d.k), d.normal(2, 3, 4, 5), d.normal(3, 3, 1), d.normal(3, 3, 3, 3)),
    terms=64,
)
def _interpolation_then_convolution(line: Any, image: Any, w: Any, kernel: Any) -> Any:
    last = image.contiguous(memory_format=torch.channels_last)
    return (
        F.conv1d(F.interpolate(line, scale_factor=2), w),
        F.conv1d(F.interpolate(line, size=17, mode="linear"), w),
        F.conv2d(F.interpolate(image, scale_factor=2), kernel),
        F.conv2d(F.interpolate(last, scale_factor=2, mode="nearest"), kernel),
        F.conv2d(F.interpolate(last, size=(7, 6), mode="bilinear"), kernel),
        F.conv_transpose2d(F.interpolate(image, scale_factor=2), kernel),
        F.interpolate(last, scale_factor=3) + 0,
    )


# https://github.com/pytorch/pytorch/issues/83180: conv2d with two different strides
@cases.case(
    "issue-83180",
    issue="83180",
    make=lambda d: (d.normal(2, 3, 7, 9 + d.k), d.normal(4, 3, 3, 2), d.normal(4)),
    terms=128,
)
def _convolutions_with_two_different_steps(x: Any, w: Any, b: Any) -> Any:
    answers = []
    for options in (
        {"stride": (1, 2)},
        {"stride": (3, 1), "padding": (2, 0)},
        {"dilation": (2, 1), "padding": (0, 1)},
        {"padding": "same"},
    ):
        start, weight = leaf(x), leaf(w)
        y = F.conv2d(start, weight, b, **options)
        (y * y).sum().backward()
        answers.append((y, start.grad, weight.grad))
    return answers


# https://github.com/pytorch/pytorch/issues/82711: conv_transpose1d with a stride
@cases.case(
    "issue-82711",
    issue="82711",
    make=lambda d: (d.normal(1, 2, 5), d.normal(2, 3, 2), d.normal(2, 3, 4 + d.k)),
    terms=64,
)
def _steps_of_a_transposed_convolution(x: Any, w: Any, wide: Any) -> Any:
    return [
        F.conv_transpose1d(x, one, stride=stride, padding=pad)
        for one in (w, wide)
        for stride in (1, 2, 3)
        for pad in (0, 1)
    ] + [
        F.conv_transpose1d(x, w, stride=3, output_padding=2),
        F.conv_transpose1d(x, w, dilation=2),
    ]


# https://github.com/pytorch/pytorch/issues/196949: reflection_pad1d backward is wrong past 65,536 columns
# https://github.com/pytorch/pytorch/issues/135447: replication_pad1d backward is wrong past 65,536 rows
@cases.case(
    "issue-196949",
    issues=("196949", "135447"),
    make=lambda d: (d.normal(1, 1, 65539), d.normal(65540, 1, 3)),
    states=("fresh",),
)
def _gradients_of_long_padding(line: Any, many: Any) -> Any:
    answers = []
    for x, mode in ((line, "reflect"), (line, "replicate"), (many, "replicate")):
        start = leaf(x)
        y = F.pad(start, (2, 1), mode=mode)
        y.backward((torch.arange(y.numel(), device=x.device) % 17).reshape(y.shape).to(y.dtype))
        answers.append(start.grad)
    return answers


# https://github.com/pytorch/pytorch/issues/190645: BatchNorm3d aborts for a tensor that is not contiguous
@cases.case("issue-190645", issue="190645", make=lambda d: (d.normal(2, 3, 2, 3, 4), d.normal(4)), terms=256)
def _volumes_are_normalised_in_another_layout(x: Any, w: Any) -> Any:
    volume = x.permute(0, 4, 1, 2, 3)
    mean, spread = torch.zeros_like(w), torch.ones_like(w)
    training = F.batch_norm(volume, mean, spread, w, training=True)
    return training, mean, spread, F.batch_norm(volume, mean, spread), F.instance_norm(volume), F.group_norm(volume, 2)


# https://github.com/pytorch/pytorch/issues/94348: average pooling with ceil_mode and count_include_pad
@cases.case("issue-94348", issue="94348", make=lambda d: d.normal(2, 3, 7, 8), terms=16)
def _every_argument_of_average_pooling(x: Any) -> Any:
    return [
        F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=ceil, count_include_pad=count, divisor_override=divisor)
        for ceil in (False, True)
        for count in (True, False)
        for divisor in (None, 2, 5)
    ]


# https://github.com/pytorch/pytorch/issues/125696: mse_loss of views that are not contiguous
@cases.case("issue-125696", issue="125696", make=lambda d: (d.normal(4, 5 + d.k), d.normal(5 + d.k, 4)), terms=32)
def _squared_error_of_views(x: Any, y: Any) -> Any:
    return [
        backward(F.mse_loss(start, y.t(), reduction=how), start)
        for how in ("mean", "sum", "none")
        for start in (leaf(x),)
    ]


def _lstm(run: Any, dropout: float, dtype: torch.dtype, **options: Any) -> torch.nn.LSTM:
    torch.manual_seed(3)
    return torch.nn.LSTM(4, 5, num_layers=2, dropout=dropout, **options).to(run.device, dtype)


# https://github.com/pytorch/pytorch/issues/173640: LSTM drops the same in every call
@cases.check("issue-173640", issue="173640", since="2.0")
def _dropout_between_layers_differs_from_call_to_call(bench: Any) -> None:
    with bench.device_run() as run:
        net, x = _lstm(run, 0.5, torch.float32), torch.ones(7, 3, 4, device=run.device)
        one, two = net(x)[0].detach().cpu().clone(), net(x)[0].detach().cpu().clone()
        net.eval()
        still, again = net(x)[0].detach().cpu().clone(), net(x)[0].detach().cpu().clone()
    assert not torch.equal(one, two), "two calls in training drop the same"
    assert torch.equal(still, again), "two calls in evaluation differ"


# https://github.com/pytorch/pytorch/issues/190056: LSTM backward ignores the dropout between its layers
@cases.check("issue-190056", issue="190056", since="2.0")
def _gradient_knows_of_the_dropout(bench: Any) -> None:
    """The derivative along one direction against differences, each forward with the same mask."""
    with bench.device_run() as run:
        net = _lstm(run, 0.5, torch.float32)
        base = bench.draw("issue-190056").normal(4, 2, 4).to(run.device)
        step = bench.draw("issue-190056-step").normal(4, 2, 4).to(run.device)

        def loss(x: torch.Tensor) -> torch.Tensor:
            run.seed(42)
            return (net(x)[0] * torch.arange(1, 6, device=x.device)).sum() * 20

        start = leaf(base)
        loss(start).backward()
        slope = float((start.grad * step).sum())
        with torch.no_grad():
            differences = float((loss(base + 0.01 * step) - loss(base - 0.01 * step)) / 0.02)
    assert abs(slope - differences) <= 0.02 * max(1.0, abs(differences)), (
        f"slope {slope:.4f}, differences {differences:.4f}"
    )


# https://github.com/pytorch/pytorch/issues/94754: the second direction of a bidirectional LSTM is wrong
@cases.case(
    "issue-94754",
    issue="94754",
    make=lambda d: (d.normal(3, 1, 2), [d.normal(*shape) for shape in ((8, 2), (8, 2), (8,), (8,)) * 2]),
    terms=4096,
)
def _two_directions(run: Any, x: Any, weights: Any) -> Any:
    net = torch.nn.LSTM(2, 2, bidirectional=True).to(run.device, x.dtype)
    with torch.no_grad():
        for parameter, weight in zip(net.parameters(), weights):
            parameter.copy_(weight)
    y, (h, c) = net(x)
    return y, h, c, net(x.flip(0))[0]


# https://github.com/pytorch/pytorch/issues/190632: backward gives NaN now and then (Faster R-CNN)
@cases.check("issue-190632", issue="190632", since="2.0")
def _gradients_stay_finite_step_after_step(bench: Any) -> None:
    draw = bench.draw("issue-190632")
    bases = draw.normal(2, 3, 12, 12), draw.normal(6, 3, 3, 3), draw.normal(4, 6, 1, 1), draw.integers(0, 4, 2, 10, 10)
    with bench.device_run() as run:
        x, w, head, target = run.bring(bases)
        first: list[torch.Tensor] = []
        for turn in range(24):
            one, two = leaf(w), leaf(head)
            scores = F.conv2d(F.relu(F.conv2d(x, one)), two)
            loss = F.cross_entropy(scores, target) + F.smooth_l1_loss(scores[:, :2], scores[:, 2:].detach())
            loss.backward()
            grads = [one.grad.cpu().clone(), two.grad.cpu().clone()]
            assert all(bool(torch.isfinite(grad).all()) for grad in grads), f"step {turn}: a gradient is not finite"
            first = first or grads
            for grad, before in zip(grads, first):
                assert torch.allclose(grad, before, rtol=1e-4, atol=1e-5), (
                    f"step {turn}: another gradient than at first"
                )


# Where threads spoil a command encoder, what comes after in this process is worth nothing.
# https://github.com/pytorch/pytorch/issues/197805: work of several threads on one device is mixed up
@cases.check("issue-197805", issue="197805", full=True, since="2.0", alone=True)
def _two_threads_at_once(bench: Any) -> None:
    """Work of two threads on one device; a fault that holds for a thread does not reach it."""
    draw = bench.draw("issue-197805")
    inputs, weight = [draw.normal(64, 64) for _ in range(2)], draw.normal(64, 64, scale=0.1)
    expected = [_chain(one.double(), weight.double()) for one in inputs]
    found: dict[int, list[torch.Tensor]] = {0: [], 1: []}

    def work(place: int) -> None:
        x, w = inputs[place].to(bench.device), weight.to(bench.device)
        found[place] += [_chain(x, w).cpu() for _ in range(30)]

    threads = [threading.Thread(target=work, args=(place,)) for place in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place, answers in found.items():
        assert len(answers) == 30, f"thread {place} ended early"
        for answer in answers:
            assert torch.allclose(answer.double(), expected[place], rtol=1e-3, atol=1e-4), (
                f"thread {place}: another answer"
            )


def _chain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        x = torch.tanh(x @ w) + F.layer_norm(x, (64,))
    return x
