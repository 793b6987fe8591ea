"""Regressions in convolution and pooling: layouts, kernel sizes, channel counts, graph caches."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import backward, leaf

cases = Cases("regressions")


# https://github.com/pytorch/pytorch/issues/80856: conv2d of what F.pad(mode="circular") gave is wrong
@cases.case("issue-80856", issue="80856", make=lambda d: (d.normal(1, 2, 5, 6 + d.k), d.normal(3, 2, 3, 3)), terms=18)
def _a_circular_padding_is_convolved(x: Any, w: Any) -> Any:
    padded = F.pad(x, (1, 1, 1, 1), mode="circular")
    return F.conv2d(padded, w), padded


def _pool_backward(name: str, argument: int) -> Any:
    def act(x: Any) -> Any:
        answers = []
        for view in (x.contiguous(memory_format=torch.channels_last), x.permute(0, 1, 3, 2), x[:, 1:]):
            start = leaf(view)
            pooled = getattr(F, name)(start, argument)
            answers.append(backward(pooled * pooled, start))
        return answers

    return act


# https://github.com/pytorch/pytorch/issues/175190: pool backward aborts on channels_last
for _name, _argument in (("max_pool2d", 2), ("avg_pool2d", 2), ("adaptive_avg_pool2d", 2), ("adaptive_max_pool2d", 2)):
    cases.add(
        f"issue-175190-{_name}",
        _pool_backward(_name, _argument),
        issue="175190",
        terms=32,
        make=lambda d: d.distinct(4, 3, 8, 8 + 2 * d.k) / 100,
    )


def _permuted_convolution(name: str, order: tuple[int, ...]) -> Any:
    def act(x: Any, w: Any, b: Any) -> Any:
        weight, bias, start = leaf(w), leaf(b), leaf(x)
        optimiser = torch.optim.Adam([weight, bias], lr=0.01)
        y = getattr(F, name)(start.permute(order), weight, bias)
        y.sum().backward()
        optimiser.step()
        return y, start.grad, weight.grad, weight, bias

    return act


# https://github.com/pytorch/pytorch/issues/84511: Conv1d/Conv2d backward crash with permuted input
cases.add(
    "issue-84511-conv1d",
    _permuted_convolution("conv1d", (0, 2, 1)),
    issue="84511",
    terms=1024,
    make=lambda d: (d.normal(1, 176 + d.k, 1), d.normal(2, 1, 3), d.normal(2)),
)
cases.add(
    "issue-84511-conv2d",
    _permuted_convolution("conv2d", (0, 3, 1, 2)),
    issue="84511",
    terms=1024,
    make=lambda d: (d.normal(1, 10, 10 + d.k, 1), d.normal(2, 1, 3, 3), d.normal(2)),
)
cases.add(
    "issue-84511-channels",
    _permuted_convolution("conv2d", (0, 3, 1, 2)),
    issue="84511",
    terms=4096,
    make=lambda d: (d.normal(2, 7, 6 + d.k, 3), d.normal(5, 3, 3, 3), d.normal(5)),
)


# https://github.com/pytorch/pytorch/issues/112998: Conv backward graph cache collision aborts
@cases.case(
    "issue-112998",
    issue="112998",
    make=lambda d: (d.normal(2, 4, 16 + d.k), d.normal(6, 4, 3), d.normal(6, 4, 5), d.normal(3, 4, 3)),
    terms=4096,
)
def _one_input_shape_many_weight_shapes(x: Any, *weights: Any) -> Any:
    answers = []
    for w in weights:
        start, weight = leaf(x), leaf(w)
        y = F.conv1d(start, weight, padding=w.shape[-1] // 2)
        answers.append(backward(y * y, start, weight))
    return answers


# https://github.com/pytorch/pytorch/issues/192212: F.conv2d wrong with non-contiguous weight
for _dtype in (torch.float32, torch.float16):

    @cases.case(
        f"issue-192212-{str(_dtype)[6:]}",
        issue="192212",
        terms=1152,
        make=lambda d, dtype=_dtype: (
            d.normal(2, 128, 8, 8 + d.k, dtype=dtype),
            d.normal(3, 128, 3, 3, 3, dtype=dtype, scale=0.1),
        ),
    )
    def _weight_slices(x: Any, w: Any) -> Any:
        start, weight = leaf(x), leaf(w)
        sliced = [F.conv2d(x, w[:, :, k], padding=1) for k in range(3)]
        y = F.conv2d(start, weight[:, :, 1], padding=1)
        y.sum().backward()
        return sliced, start.grad, weight.grad


# https://github.com/pytorch/pytorch/issues/188335: conv2d wrong when a kernel side >= 256 and batch > 1
@cases.case(
    "issue-188335",
    issue="188335",
    terms=256,
    make=lambda d: (d.normal(4, 8, 260, 2 + d.k), d.normal(16, 1, 256, 1), d.normal(16)),
)
def _tall_kernels(x: Any, w: Any, b: Any) -> Any:
    return [F.conv2d(x[:batch], w, b, groups=8) for batch in (1, 2, 4)]


# https://github.com/pytorch/pytorch/issues/129207: conv with > 65536 output channels wrong
@cases.check("issue-129207", issue="129207")
def _many_output_channels(bench: Any) -> None:
    draw = bench.draw("issue-129207")
    x, w = draw.normal(1, 1, 5), draw.normal(65537, 1, 3)
    for function, given, weight in ((F.conv1d, x, w), (F.conv2d, x[:, :, None], w[:, :, None])):
        want = function(given.double(), weight.double())
        try:
            with bench.device_run() as run:
                copies = run.bring((given.clone(), weight.clone()))
                y = (F.conv1d if function is F.conv1d else F.conv2d)(*copies).cpu()
        except NotImplementedError as refused:
            assert "65536" in str(refused), f"an unclear refusal: {refused}"
            continue
        off = float((y.double() - want).abs().max())
        assert off < 1e-5, f"65537 output channels: off by {off:.3g}"


# https://github.com/pytorch/pytorch/issues/134416: fallback env does not help for conv > 65536
@cases.check("issue-134416", issue="134416")
def _long_output(bench: Any) -> None:
    """A long output is computed or refused by name; the fallback variable would not change that."""
    draw = bench.draw("issue-134416")
    x, w = draw.normal(1, 1, 65540), draw.normal(2, 1, 3)
    want = F.conv1d(x.double(), w.double())
    try:
        with bench.device_run() as run:
            y = F.conv1d(run.bring(x.clone()), run.bring(w.clone())).cpu()
    except NotImplementedError as refused:
        assert "65536" in str(refused), f"an unclear refusal: {refused}"
        return
    off = float((y.double() - want).abs().max())
    assert off < 1e-4, f"an output of 65538 positions: off by {off:.3g}"


def _ends_of_a_batch(d: Any) -> Any:
    """Batches around the limit that are zero but for their ends: one lost sample is a large part of the sum."""
    batches = [torch.zeros(count + d.k, 1, 1) for count in (65535, 65536)]
    for x in batches:
        x[:3], x[-4:] = d.uniform(0.5, 1, 3, 1, 1), d.uniform(0.5, 1, 4, 1, 1)
    return tuple(batches)


# https://github.com/pytorch/pytorch/issues/96225: conv weight gradient wrong for minibatch >= 2**16
@cases.case("issue-96225", issue="96225", terms=16, make=_ends_of_a_batch)
def _weight_gradient_of_a_large_batch(*batches: Any) -> Any:
    answers = []
    for x in batches:
        weight = leaf(torch.ones_like(x[:1]))
        answers.append(backward(F.conv1d(x, weight), weight)[1])
    return answers


def _volume(x: Any, w: Any) -> Any:
    start, weight = leaf(x), leaf(w)
    y = F.conv3d(start, weight, padding=1)
    last = F.conv3d(
        x.contiguous(memory_format=torch.channels_last_3d), w.contiguous(memory_format=torch.channels_last_3d)
    )
    return backward(y, start, weight), last


# https://github.com/pytorch/pytorch/issues/197114: Conv3d wrong in contiguous NCDHW on most channel counts
for _channels in (4, 8, 16, 32):
    side = 8 if _channels < 16 else 5
    cases.add(
        f"issue-197114-{_channels}",
        _volume,
        issue="197114",
        terms=64 * _channels * 27,
        make=lambda d, c=_channels, s=side: (d.normal(1, c, s, s, s + d.k), d.normal(c, c, 3, 3, 3, scale=0.2)),
    )

# https://github.com/pytorch/pytorch/issues/82563: conv_transpose1d differs from cpu
cases.add(
    "issue-82563",
    lambda x, w: F.conv_transpose1d(x, w, stride=8, padding=4),
    issue="82563",
    terms=1024,
    make=lambda d: (d.normal(1, 64, 155 + d.k), d.normal(64, 32, 16, scale=0.1)),
)
cases.add(
    "issue-82563-reported",
    lambda x, w: F.conv_transpose1d(x, w, stride=8, padding=4),
    issue="82563",
    terms=1024,
    make=lambda d: (d.normal(1, 512, 1245), d.normal(512, 256, 16, scale=0.1)),
    states=("fresh", "again"),
    full=True,
)


# https://github.com/pytorch/pytorch/issues/185663: col2im uint32 overflow
@cases.case(
    "issue-185663",
    issue="185663",
    make=lambda d: d.normal(1, 1),
    full=True,
    memory_bytes=40 << 30,
    states=("fresh",),
    limit_seconds=600,
)
def _fold_past_two_to_the_thirty_two(run: Any, x: Any) -> Any:
    blocks = ((1 << 32) // 1024 + 64) // 64 * 64
    columns = torch.ones(1, 1024, blocks, dtype=torch.float16, device=run.device)
    folded = F.fold(columns, (32, 32 * blocks), kernel_size=(32, 32), stride=(32, 32))
    return folded[..., :2, :2], folded[..., -2:, -2:]
