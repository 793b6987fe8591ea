"""Rule 4: the lists of numbers that layers of windows take: of none, one too many, zero, below zero, beyond int64.

An empty list ended the process, https://github.com/pytorch/pytorch/issues/121095 and
https://github.com/pytorch/pytorch/issues/50967; so did a fold with a stride beside 2**63,
https://github.com/pytorch/pytorch/issues/188959, and a shuffle by 2**62, https://github.com/pytorch/pytorch/issues/153327
"""

from __future__ import annotations

import functools
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.limits import add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]
_C = torch._C._nn
_MOST = 2**63 - 1


def _lists(rank: int, least: int) -> dict[str, Any]:
    """Return what is given in place of one number for each dimension, none of which may be below `least`."""
    found: dict[str, Any] = {
        "none": [],
        "more": [least or 1] * (rank + 1),
        "below": least - 1,
        "below-one": [*[max(least, 1)] * (rank - 1), least - 1],
        "below-far": [-5] * rank,
        "half": 2**62,
        "most": [_MOST] * rank,
        "least": -(2**63),
    }
    if rank > 2:
        found["fewer"] = [max(least, 1)] * (rank - 1)
    return found


def _image(x: torch.Tensor, rank: int, channels: int = 4) -> torch.Tensor:
    return x[: channels * 4**rank].reshape(1, channels, *(4,) * rank)


def _weight(x: torch.Tensor, rank: int, groups: int = 1) -> torch.Tensor:
    return x[: 4 * 4 // groups * 2**rank].reshape(4, 4 // groups, *(2,) * rank)


def _convolved(rank: int, kind: str, x: torch.Tensor, **options: Any) -> Any:
    return getattr(F, f"{kind}{rank}d")(_image(x, rank), _weight(x, rank), **options)


def _pooled(rank: int, kind: str, x: torch.Tensor, **options: Any) -> Any:
    return getattr(F, kind.format(rank))(_image(x, rank), **{"kernel_size": 2, **options})


def _unpooled(rank: int, x: torch.Tensor, **options: Any) -> Any:
    y, places = getattr(F, f"max_pool{rank}d")(_image(x, rank), 2, return_indices=True)
    return getattr(F, f"max_unpool{rank}d")(y, places, **{"kernel_size": 2, **options})


def _fractional(rank: int, x: torch.Tensor, **options: Any) -> Any:
    samples = options.pop("samples", x.new_full((1, 4, rank), 0.3))
    given = {"kernel_size": 2, "output_size": 2, **options}
    if "output_ratio" in options:
        del given["output_size"]
    return getattr(F, f"fractional_max_pool{rank}d")(_image(x, rank), **given, _random_samples=samples)


def _folded(x: torch.Tensor, **options: Any) -> Any:
    return F.fold(x[:64].view(1, 16, 4), **{"output_size": 4, "kernel_size": 2, "stride": 2, **options})


# What no number of an option may be below.
_LEAST = {"kernel_size": 1, "stride": 1, "dilation": 1, "size": 1, "scale_factor": 1, "output_ratio": 1}


def _row(rank: int, options: str, form: Any, *given: Any, **more: Any) -> tuple[int, tuple[str, ...], Form]:
    return rank, tuple(options.split()), functools.partial(form, *given, **more)


def _adapted(rank: int, kind: str, x: torch.Tensor, output_size: Any) -> Any:
    return getattr(F, f"adaptive_{kind}_pool{rank}d")(_image(x, rank), output_size)


def _resized(rank: int, mode: str, x: torch.Tensor, **options: Any) -> Any:
    return F.interpolate(_image(x, rank), **options, mode=mode)


def _unfolded(x: torch.Tensor, **options: Any) -> Any:
    return F.unfold(_image(x, 2), **{"kernel_size": 2, **options})


_CALLS: dict[str, tuple[int, tuple[str, ...], Form]] = {
    "unfold": _row(2, "kernel_size stride padding dilation", _unfolded),
    "fold": _row(2, "output_size kernel_size stride padding dilation", _folded),
    "fractional2d": _row(2, "kernel_size output_size output_ratio", _fractional, 2),
    "fractional3d": _row(3, "kernel_size output_size output_ratio", _fractional, 3),
}
for _n in (1, 2, 3):
    _pool = "kernel_size stride padding"
    _CALLS |= {
        f"conv{_n}d": _row(_n, "stride padding dilation", _convolved, _n, "conv"),
        f"conv_transpose{_n}d": _row(_n, "stride padding dilation output_padding", _convolved, _n, "conv_transpose"),
        f"max_pool{_n}d": _row(_n, f"{_pool} dilation", _pooled, _n, "max_pool{}d"),
        f"max_pool{_n}d-places": _row(_n, f"{_pool} dilation", _pooled, _n, "max_pool{}d", return_indices=True),
        f"avg_pool{_n}d": _row(_n, _pool, _pooled, _n, "avg_pool{}d"),
        f"lp_pool{_n}d": _row(_n, "kernel_size stride", _pooled, _n, "lp_pool{}d", norm_type=2.0),
        f"adaptive_avg{_n}d": _row(_n, "output_size", _adapted, _n, "avg"),
        f"adaptive_max{_n}d": _row(_n, "output_size", _adapted, _n, "max"),
        f"unpool{_n}d": _row(_n, f"{_pool} output_size", _unpooled, _n),
        f"interpolate{_n}d": _row(_n, "size scale_factor", _resized, _n, "nearest"),
        f"linear{_n}d": _row(_n, "size scale_factor", _resized, _n, ("linear", "bilinear", "trilinear")[_n - 1]),
    }


def _with(call: Form, name: str, value: Any, x: torch.Tensor) -> Any:
    return call(x, **{name: value})


# What a CPU answers, or what it reckons with past int64 before it looks, is no question.
_VAST = ("half", "most", "least")
_RECKONED = ("conv", "unpool", "fractional", "thnn_conv2d", "slow_conv", "turned")
_BEYOND = [f"{option}-{how}" for option in ("kernel_size", "stride", "padding", "dilation") for how in ("half", "most")]
_ANSWERED = frozenset(
    {
        *(
            f"{kind}_pool{n}d{way}-stride-none"
            for kind in ("max", "avg", "lp")
            for n in (1, 2, 3)
            for way in ("", "-places")
        ),
        *(f"{name}-{how}" for name in ("unfold", "im2col", "max_pool1d") for how in _BEYOND),
        *(f"{name}-{option}-half" for name in ("fold", "col2im") for option in ("padding", "dilation")),
    }
)


def _is_asked(name: str, option: str, how: str) -> bool:
    """Say whether a list is refused by every CPU."""
    if name.startswith(_RECKONED) and how in _VAST:
        return False
    # Nobody looks at padding below zero, or at a window of unpooling and of samples, before it is reckoned with.
    if "below" in how and (
        name.startswith(("unpool", "fractional")) or (name.startswith(("thnn", "slow")) and option != "stride")
    ):
        return False
    return f"{name}-{option}-{how}" not in _ANSWERED


def _add(kind: str, calls: dict[str, tuple[int, tuple[str, ...], Form]]) -> None:
    for name, (rank, options, call) in calls.items():
        add_refused(
            cases,
            f"window-{kind}-{name}",
            lambda d: (d.normal(512),),
            {
                f"{name}-{option}-{how}": functools.partial(_with, call, option, value)
                for option in options
                for how, value in _lists(rank, _LEAST.get(option, 0)).items()
                if _is_asked(name, option, how)
            },
            since="2.13",
            devices=("mps", "cpu"),
        )


_add("numbers", _CALLS)


# The operators beneath, whose lists no function has looked at.
def _raw(name: str, rank: int, x: torch.Tensor, **options: Any) -> Any:
    given = {"kernel_size": [2] * rank, "bias": None, "stride": [1] * rank, "padding": [0] * rank, **options}
    return getattr(_C, name)(_image(x, rank), _weight(x, rank), **given)


def _general(rank: int, x: torch.Tensor, **options: Any) -> Any:
    given = {
        "stride": [1] * rank,
        "padding": [0] * rank,
        "dilation": [1] * rank,
        "transposed": False,
        "output_padding": [0] * rank,
        "groups": 1,
        **options,
    }
    return torch.convolution(_image(x, rank), _weight(x, rank), None, **given)


def _columns(name: str, x: torch.Tensor, **options: Any) -> Any:
    given = {"kernel_size": (2, 2), "dilation": (1, 1), "padding": (0, 0), "stride": (2, 2), **options}
    if name == "im2col":
        return _C.im2col(_image(x, 2), **given)
    return _C.col2im(x[:64].view(1, 16, 4), **{"output_size": (4, 4), **given})


_window, _turned = "kernel_size stride padding", "stride padding dilation output_padding"
_RAW = {
    "thnn_conv2d": _row(2, _window, _raw, "thnn_conv2d", 2),
    "slow_conv3d": _row(3, _window, _raw, "slow_conv3d", 3),
    "slow_conv_dilated2d": _row(2, f"{_window} dilation", _raw, "slow_conv_dilated2d", 2),
    "slow_conv_dilated3d": _row(3, f"{_window} dilation", _raw, "slow_conv_dilated3d", 3),
    "slow_conv_transpose2d": _row(2, f"kernel_size {_turned}", _raw, "slow_conv_transpose2d", 2),
    "slow_conv_transpose3d": _row(3, f"kernel_size {_turned}", _raw, "slow_conv_transpose3d", 3),
    **{f"convolution{n}": _row(n, _turned, _general, n) for n in (1, 2, 3)},
    **{f"turned{n}": _row(n, _turned, _general, n, transposed=True) for n in (1, 2, 3)},
    "im2col": _row(2, f"{_window} dilation", _columns, "im2col"),
    "col2im": _row(2, f"output_size {_window} dilation", _columns, "col2im"),
}
_add("raw", _RAW)

# Counts of groups, factors of shuffles, samples and sizes of another shape, none of it in a list.
_COUNTS = {"none": 0, "below": -1, "three": 3, "half": 2**62, "square": 2**32, "most": _MOST, "least": -(2**63)}
_COUNTED: dict[str, Form] = {
    **{
        f"{kind}{rank}d": lambda x, n, kind=kind, rank=rank: _convolved(rank, kind, x, groups=n)
        for kind in ("conv", "conv_transpose")
        for rank in (1, 2, 3)
    },
    "pixel_shuffle": lambda x, n: F.pixel_shuffle(_image(x, 2), n),
    "pixel_unshuffle": lambda x, n: F.pixel_unshuffle(_image(x, 2), n),
    "pixel_shuffle-none": lambda x, n: F.pixel_shuffle(x[:0].view(0, 0, 9), n),
    "pixel_unshuffle-none": lambda x, n: F.pixel_unshuffle(x[:0].view(1, 2, 0, 9), n),
    "channel_shuffle": lambda x, n: F.channel_shuffle(_image(x, 2), n),
    "group_norm": lambda x, n: F.group_norm(_image(x, 2), n),
    "response_norm": lambda x, n: F.local_response_norm(_image(x, 2), n) if n != 3 else F.group_norm(_image(x, 2), n),
    "glu": lambda x, n: F.glu(x[:15].view(3, 5), n),
    "layer_norm": lambda x, n: F.layer_norm(_image(x, 2), (n,)),
    "rms_norm": lambda x, n: F.rms_norm(_image(x, 2), (4, n)),
    "one_hot": lambda x, n: F.one_hot((x[:4] * 0 + 5).long(), n),
}
add_refused(
    cases,
    "window-counts",
    lambda d: (d.normal(512),),
    {
        f"{name}-{how}": lambda x, form=form, n=n: form(x, n)
        for name, form in _COUNTED.items()
        for how, n in _COUNTS.items()
        # Nothing in threes is nothing; and a count below zero is what one_hot finds by itself.
        if f"{name}-{how}" not in ("pixel_shuffle-none-three", "pixel_unshuffle-none-three", "one_hot-below")
    },
    since="2.13",
    devices=("mps", "cpu"),
)
# Two numbers at once beside 2**63, whose sum or product comes round to a small one.
_PAIRS = ((_MOST - 1, _MOST), (2**62, 2**62), (_MOST, 2), (2**63 - 4, 2**61), (2**32, 2**32), (2**31, 2**31))
_FIXED: dict[str, Form] = {
    "fold": lambda x, n, m: F.fold(x[:1].view(1, 1, 1), (100, 100), 1, (100, 100), (n, n), (m, m)),
    "fold-gaps": lambda x, n, m: F.fold(x[:4].view(1, 4, 1), 4, 2, n, m),
    "fold-size": lambda x, n, m: F.fold(x[:4].view(1, 4, 1), (n, m), 2),
    "unfold": lambda x, n, m: F.unfold(_image(x, 2), (n, m)),
    "max_pool1d": lambda x, n, m: F.max_pool1d(_image(x, 1), 2, padding=n, stride=m, return_indices=True),
    "max_pool2d": lambda x, n, m: F.max_pool2d(_image(x, 2), 2, padding=n, stride=m),
    "max_pool3d": lambda x, n, m: F.max_pool3d(_image(x, 3), 2, padding=n, stride=m),
    "avg_pool2d": lambda x, n, m: F.avg_pool2d(_image(x, 2), (n, m)),
    "avg_pool3d": lambda x, n, m: F.avg_pool3d(_image(x, 3), 2, m, n),
    "adaptive": lambda x, n, m: F.adaptive_avg_pool2d(_image(x, 2), (n, m)),
    "nearest": lambda x, n, m: F.interpolate(_image(x, 2), (n, m)),
    "bilinear": lambda x, n, m: F.interpolate(_image(x, 2), (n, m), mode="bilinear"),
}
# These the CPU answers: no number of a column lies in the image.
_COME_ROUND = (
    f"fold-{_MOST - 1}-{_MOST}",
    f"fold-{2**63 - 4}-{2**61}",
    f"unfold-{2**63 - 4}-{2**61}",
    f"unfold-{2**32}-{2**32}",
)
add_refused(
    cases,
    "window-pairs",
    lambda d: (d.normal(512),),
    {
        f"{name}-{n}-{m}": lambda x, form=form, n=n, m=m: form(x, n, m)
        for name, form in _FIXED.items()
        for n, m in _PAIRS
        if f"{name}-{n}-{m}" not in _COME_ROUND
    },
    since="2.13",
    devices=("mps", "cpu"),
)
add_refused(
    cases,
    "window-samples",
    lambda d: (d.normal(512),),
    {
        f"{rank}-{'-'.join(map(str, shape))}-{ratio}": lambda x, rank=rank, shape=shape, ratio=ratio: _fractional(
            rank,
            x,
            samples=x.new_full(shape, 0.3),
            **({"output_ratio": 0.5} if ratio else {}),
        )
        for rank in (2, 3)
        for ratio in (False, True)
        for shape in ((0,), (), (rank,), (4, rank), (1, 4, rank + 1), (1, 4, 1), (1, 3, rank), (0, 4, rank))
    },
    since="2.13",
    devices=("mps", "cpu"),
)
# Strides that no side reaches: one window is left. Past 32 bits torch refuses some, but only where somebody listens.
_STRIDES = (257, 2**16, 2**31 - 1)
add_table(
    cases,
    "window-strides",
    {
        **{
            f"conv{rank}d-{n}": lambda x, rank=rank, n=n: _convolved(rank, "conv", x, stride=n)
            for rank in (1, 2)
            for n in _STRIDES
        },
        **{f"max_pool1d-{n}": lambda x, n=n: F.max_pool1d(_image(x, 1), 2, n) for n in _STRIDES},
        **{f"unfold-{n}": lambda x, n=n: F.unfold(_image(x, 2), 2, stride=n) for n in _STRIDES},
        **{f"fold-{n}": lambda x, n=n: F.fold(x[:16].view(1, 16, 1), 3, 2, stride=n) for n in _STRIDES},
        "fold-none": lambda x: _FIXED["fold"](x * 0, _MOST - 1, _MOST),
        "fold-round": lambda x: _FIXED["fold"](x * 0, 2**63 - 4, 2**61),
    },
    lambda d: (d.normal(512),),
    terms=64,
    since="2.13",
    devices=("mps", "cpu"),
)
