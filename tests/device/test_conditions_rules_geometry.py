"""Rule 3: the geometry of convolutions, pooling and resizing in a covering of options, with gradients.

Kernels of 1, strides beyond the kernel, one side padded, groups: https://github.com/pytorch/pytorch/issues/68868,
https://github.com/pytorch/pytorch/issues/63314; a scale that keeps the size: 65200 there.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived, uneven
from device_suite.answers import attempt
from device_suite.limits import ONCE
from device_suite.refusals import add_refused

cases = Cases("conditions")
_FIELDS: dict[str, Any] = {"floor": 1.0, "states": ONCE, "may_be_missing": True}
_CONVOLVED: dict[int, Callable[..., Any]] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED: dict[int, Callable[..., Any]] = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
_POOLED: dict[int, Callable[..., Any]] = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVERAGED: dict[int, Callable[..., Any]] = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
_SIDES = {1: (11,), 2: (9, 8), 3: (6, 5, 7)}
# (kernel, stride, padding, dilation, groups): a kernel of 1 with steps, steps beyond the kernel, each with groups.
_STEPS = (
    *((1, 1, 0, 1, 1), (1, 2, 0, 1, 1), (1, 3, 0, 1, 2), (1, 2, 1, 1, 4), (2, 3, 0, 1, 1), (2, 3, 0, 1, 2)),
    *((2, 4, 1, 1, 4), (3, 2, 1, 1, 2), (3, 4, 0, 1, 2), (2, 1, 2, 2, 1), (3, 1, 0, 2, 4), (2, 5, 1, 2, 2)),
)
_CHANNELS = 4


def _steps_of(dims: int) -> tuple[tuple[int, int, int, int, int], ...]:
    return _STEPS[1::2] if dims == 3 else _STEPS


def _one_sided(value: int, plain: int, dims: int, turn: int) -> tuple[int, ...]:
    """Return an option for each side: all alike, or at one side alone."""
    return tuple(value if turn % (dims + 1) in (0, dim + 1) else plain for dim in range(dims))


def _laid(x: torch.Tensor, turn: int) -> torch.Tensor:
    """Return an image dense, with its channels last, its sides turned, or with a gap in each row."""
    order = [0, *range(2, x.dim()), 1]
    turned = list(reversed(range(x.dim())))
    if turn % 4 == 1:
        return x.permute(order).contiguous().permute([order.index(dim) for dim in range(x.dim())])
    if turn % 4 == 2:
        return x.permute(turned).contiguous().permute(turned)
    return F.pad(x, (0, 1))[..., :-1] if turn % 4 == 3 else x


def _convolved(dims: int, transposed: bool, number: int, x: torch.Tensor, weight: torch.Tensor, b: torch.Tensor) -> Any:
    kernel, stride, padding, dilation, groups = _steps_of(dims)[number]
    answers = []
    for turn in range(dims + 1):
        cut = tuple(slice(0, one) for one in _one_sided(kernel, min(kernel, 2), dims, turn))
        options: dict[str, Any] = {
            "stride": _one_sided(stride, 1, dims, turn),
            "padding": _one_sided(padding, 0, dims, turn),
            "dilation": _one_sided(dilation, 1, dims, turn),
            "groups": groups,
        }
        if transposed:
            options["output_padding"] = tuple(step - 1 for step in options["stride"])
        form = (_TRANSPOSED if transposed else _CONVOLVED)[dims]
        w = weight[(slice(None), slice(0, _CHANNELS // groups), *cut)]
        asked = partial(derived, partial(form, **options), _laid(x, number + turn), w, b)
        answers.append(attempt(asked))
    return answers


for _dims, _is_transposed in itertools.product((1, 2, 3), (False, True)):
    cases.add(
        f"geometry-{'transposed' if _is_transposed else 'convolved'}-{_dims}d",
        lambda *bases, dims=_dims, transposed=_is_transposed: [
            _convolved(dims, transposed, number, *one) for number, one in enumerate(bases)
        ],
        # As many channels come out as go in; transposed, as many as the groups have times what each gives.
        make=lambda d, dims=_dims, transposed=_is_transposed: tuple(
            (
                d.normal(2, _CHANNELS, *_SIDES[dims]),
                d.normal(_CHANNELS, _CHANNELS, *(3,) * dims) / 4,
                d.normal(_CHANNELS),
            )
            for _ in _steps_of(dims)
        ),
        terms=512,
        **_FIELDS,
    )


def _alone(dims: int, x: torch.Tensor, weight: torch.Tensor, grad: torch.Tensor) -> Any:
    whole = [[1] * dims, [0] * dims, [1] * dims, False, [0] * dims]
    return torch.ops.aten.convolution_backward(grad, x, weight, [0], *whole, 1, [True, True, False])[:2]


# The gradient alone, as a graph that was made elsewhere asks for it: what the forward refuses was not asked before.
for _dims in (1, 2, 3):
    cases.add(
        f"geometry-gradient-alone-{_dims}d",
        lambda x, weight, grad, dims=_dims: _alone(dims, x, weight, grad),
        make=lambda d, dims=_dims: (
            d.normal(2, 3, *_SIDES[dims]),
            d.normal(4, 3, *(2,) * dims) / 4,
            d.normal(2, 4, *(side - 1 for side in _SIDES[dims])),
        ),
        terms=512,
        **_FIELDS,
    )

# One side padded, wide, of inputs in every order of their sides.
_PADS = ((1, 3, 0, 1), (1, 3, 0, 2), (3, 1, 2, 0), (2, 5, 0, 4), (5, 1, 1, 0), (1, 4, 0, 3), (1, 3, 1, 3))


def _padded(x: torch.Tensor, weight: torch.Tensor) -> Any:
    return [
        derived(
            lambda a, w, pads=pads, order=order: F.conv2d(a.permute(order), w, padding=pads),
            x.permute([order.index(dim) for dim in range(4)]).contiguous(),
            weight[:, :, :rows, :columns],
        )
        for rows, columns, *pads in _PADS
        for order in ((0, 3, 1, 2), (0, 1, 3, 2), (1, 0, 2, 3), (3, 2, 1, 0))
    ]


cases.add(
    "geometry-padded-2d",
    _padded,
    make=lambda d: (d.normal(2, 3, 6, 7), d.normal(5, 3, 5, 5) / 4),
    terms=512,
    **_FIELDS,
)


def _pooled(dims: int, x: torch.Tensor) -> Any:
    answers = []
    for number, (kernel, stride, padding, dilation, _) in enumerate(_steps_of(dims)):
        for turn in range(dims + 1):
            size, step = _one_sided(kernel, 2, dims, turn), _one_sided(stride, 1, dims, turn)
            pads = tuple(min(one, side // 2) for one, side in zip(_one_sided(padding, 0, dims, turn), size))
            start, ceil = _laid(x, number + turn), bool((number + turn) % 2)
            largest = partial(_POOLED[dims], dilation=_one_sided(dilation, 1, dims, turn))
            mean = partial(_AVERAGED[dims], count_include_pad=not ceil)
            for form in (largest, mean):
                options = {"kernel_size": size, "stride": step, "padding": pads, "ceil_mode": ceil}
                answers.append(attempt(partial(derived, partial(form, **options), start)))
    return answers


for _dims in (1, 2, 3):
    cases.add(
        f"geometry-pooled-{_dims}d",
        lambda x, dims=_dims: _pooled(dims, x),
        make=lambda d, dims=_dims: d.distinct(2, 3, *_SIDES[dims]) / 64,
        terms=64,
        **_FIELDS,
    )

# Scales that keep the size, of one side or of all. Whether the scale or the sizes say where a place is read is open
# there: the gradient must be that of the forward, and with the scale computed anew all is compared.
_MODES = (
    *((1, "linear", False), (1, "linear", True), (1, "nearest", None), (2, "bilinear", False), (2, "bilinear", True)),
    *((2, "bicubic", False), (2, "nearest", None), (3, "trilinear", False), (3, "nearest", None), (2, "area", None)),
)
_SCALES = (1.0, 1.0625, 1.09, 1.125, 0.9999)


# The CPU's own gradient of the others is not that of its answer, where a scale keeps the size.
_BALANCED = ("linear", "bilinear", "trilinear")


def _scaled(dims: int, mode: str, corners: bool | None, x: torch.Tensor) -> Any:
    def resized(scales: Any, *, again: bool) -> Any:
        options: dict[str, Any] = {"mode": mode, "align_corners": corners, "recompute_scale_factor": again}
        return derived(lambda a: F.interpolate(a, scale_factor=scales, **options), x)

    def balance(scales: Any) -> torch.Tensor:
        """Return the sum of g f(x) less that of x f'(g): none, as f is linear."""
        y, gradient = resized(scales, again=False)
        return (y * uneven(y)).sum() - (x * gradient).sum()

    answers = []
    for scale in _SCALES:
        for scales in (scale, (*(1.0,) * (dims - 1), scale), (scale, *(2.0,) * (dims - 1))):
            answers.append(attempt(lambda scales=scales: resized(scales, again=True)))
            if mode in _BALANCED:
                answers.append(attempt(lambda scales=scales: balance(scales)))
    return answers


for _dims, _mode, _corners in _MODES:
    cases.add(
        f"geometry-scaled-{_dims}d-{_mode}{'-corners' if _corners else ''}",
        lambda x, dims=_dims, mode=_mode, corners=_corners: _scaled(dims, mode, corners, x),
        make=lambda d, dims=_dims: d.normal(2, 3, *_SIDES[dims]),
        terms=64,
        factor=16.0,
        since="2.0",
        **{**_FIELDS, "floor": 16.0},
    )


def _backward(dims: int, x: torch.Tensor, more: int, stride: int, dilation: int) -> Any:
    """Ask the gradient alone, as a graph that was made elsewhere does: with output_padding no forward takes."""
    weight = torch.ones(3, 2, *(2,) * dims, device=x.device)
    side = [(one - 1) * stride + dilation + 1 + more for one in x.shape[2:]]
    grad = torch.ones(x.shape[0], 2, *side, device=x.device)
    whole = [*([stride] * dims,), [0] * dims, [dilation] * dims]
    return torch.ops.aten.convolution_backward(grad, x, weight, [2], *whole, True, [more] * dims, 1, [True] * 3)


# output_padding that is not below the stride or the dilation: refused by the forward and by the gradient.
_BEYOND = {
    f"{dims}d-{more}-{stride}-{dilation}": (dims, more, stride, dilation)
    for dims in (1, 2, 3)
    for more, stride, dilation in ((1, 1, 1), (2, 2, 1), (3, 2, 2), (-1, 2, 1))
}
add_refused(
    cases,
    "output-padding",
    lambda d: tuple(d.normal(2, 3, *_SIDES[dims]) for dims in (1, 2, 3)),
    {
        f"backward-{name}": lambda *bases, one=one: _backward(one[0], bases[one[0] - 1], *one[1:])
        for name, one in _BEYOND.items()
    }
    | {
        f"forward-{name}": lambda *bases, one=one: _TRANSPOSED[one[0]](
            bases[one[0] - 1],
            torch.ones(3, 2, *(2,) * one[0], device=bases[0].device),
            stride=one[2],
            output_padding=one[1],
            dilation=one[3],
        )
        for name, one in _BEYOND.items()
    },
)
