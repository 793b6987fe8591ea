"""Rule 3: convolutions in steps: few channels to each count, windows with large strides, images past 2**20, dilation.

3 channels to 13 with a stride of two were zero, https://github.com/Tencent/ncnn/issues/1452; an image's first layer,
a patch's embedding and sound's first layer have shapes of their own, for which a library has kernels of their own.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")

_MADE = (*range(1, 34), 45, 63, 64, 65)
_PAIRS = (*((few, made) for few in (1, 3, 4) for made in _MADE), *((made, 3) for made in _MADE))


def _strided(read: int, made: int, x: torch.Tensor, w: torch.Tensor) -> Any:
    """Convolve with a stride of two, with a rim of zeros in every other step."""
    image, weight = x[: read * 63].reshape(1, read, 7, 9), w[: made * read * 9].reshape(made, read, 3, 3)
    return F.conv2d(image, weight, w[:made], stride=2, padding=(read + made) % 2)


def _strided_back(read: int, made: int, x: torch.Tensor, w: torch.Tensor) -> Any:
    image, weight = x[: 2 * read * 63].reshape(2, read, 7, 9), w[: made * read * 9].reshape(made, read, 3, 3)
    return derived(lambda a, b: F.conv2d(a, b, stride=2, padding=read % 2), image, weight)


for _dtype in (torch.float32, *HALVES):
    add_table(
        cases,
        f"images-strided-{str(_dtype)[6:]}",
        {
            **{f"{r}-{m}": lambda x, w, r=r, m=m: _strided(r, m, x, w) for r, m in _PAIRS},
            **{f"{r}-{m}-back": lambda x, w, r=r, m=m: _strided_back(r, m, x, w) for r, m in _PAIRS[::5]},
        }
        if _dtype == torch.float32
        else {f"{r}-{m}": lambda x, w, r=r, m=m: _strided(r, m, x, w) for r, m in _PAIRS[::5]},
        lambda d, dtype=_dtype: (d.normal(2 * 65 * 63, dtype=dtype), d.normal(65 * 4 * 9, dtype=dtype) / 4),
        terms=1024,
        deterministic=False,
    )

# (window, stride, padding): of patches, first layers and poolings by convolution.
_LARGE = (
    *((16, 10, 0), (16, 16, 0), (14, 14, 0), (16, 14, 1), (7, 2, 3), (7, 4, 3), (4, 4, 0), (4, 2, 1), (8, 8, 0)),
    *((11, 4, 2), (9, 3, 4), (5, 5, 0), (12, 9, 6), (2, 2, 0), (3, 7, 0), (1, 5, 0)),
)


def _patches(channels: int, window: int, stride: int, padding: int, x: torch.Tensor, w: torch.Tensor) -> Any:
    image = x[: channels * 37 * 39].reshape(1, channels, 37, 39)
    weight = w[: 6 * channels * window**2].reshape(6, channels, window, window)
    y = F.conv2d(image, weight, w[:6], stride=stride, padding=padding)
    back = F.conv_transpose2d(y, weight, stride=stride, padding=padding)
    return [y, back, *derived(lambda a, b: F.conv2d(a, b, stride=stride, padding=padding), image, weight)[1:]]


add_table(
    cases,
    "images-patches",
    {
        f"{channels}-{window}-{stride}-{padding}": lambda x, w, c=channels, k=window, s=stride, p=padding: _patches(
            c, k, s, p, x, w
        )
        for number, (window, stride, padding) in enumerate(_LARGE)
        for channels in (3, (1, 4)[number % 2])
    },
    lambda d: (d.normal(4 * 37 * 39), d.normal(6 * 4 * 256) / 16),
    terms=4096,
    deterministic=False,
)

# (channels read, made, window, stride, padding, dilation) of lines: spectra, waves, their embeddings of places.
_LINES = (
    *((80, 24, 3, 1, 1, 1), (80, 24, 3, 2, 1, 1), (128, 8, 3, 2, 1, 1), (1, 32, 10, 5, 0, 1), (32, 32, 3, 2, 0, 1)),
    *((32, 32, 2, 2, 0, 1), (1, 16, 400, 160, 200, 1), (1, 16, 16, 8, 0, 1), (2, 7, 15, 1, 7, 1), (7, 9, 3, 1, 8, 8)),
    *((16, 16, 7, 1, 27, 9), (3, 5, 128, 1, 64, 1), (65, 33, 4, 2, 1, 1), (1, 1, 1024, 256, 0, 1)),
)


def _along(read: int, made: int, window: int, stride: int, padding: int, dilation: int, x: Any, w: Any) -> Any:
    line = x[: 2 * read * (length := 2053 // read + window * dilation)].reshape(2, read, length)
    weight = w[: made * read * window].reshape(made, read, window)
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    return derived(lambda a, b: F.conv1d(a, b, **options), line, weight)


add_table(
    cases,
    "images-lines",
    {"-".join(map(str, form)): lambda x, w, form=form: _along(*form, x, w) for form in _LINES},
    lambda d: (d.normal(37_000), d.normal(8580) / 8),
    terms=1 << 14,
    deterministic=False,
)


def _vast(read: int, made: int, high: int, wide: int, stride: int, x: torch.Tensor, w: torch.Tensor) -> Any:
    """Convolve one image of more than 2**20 numbers; a sample of places of the result, and its ends."""
    image = x.repeat(-(-read * high * wide // len(x)))[: read * high * wide].reshape(1, read, high, wide)
    weight = w.repeat(-(-made * read * 9 // len(w)))[: made * read * 9].reshape(made, read, 3, 3)
    y = F.conv2d(image, weight, padding=1, stride=stride).flatten()
    return [y[:99], y[-99:], y[:: len(y) // 5000]]


for _sizes in ((128, 128, 91, 91, 3), (224, 32, 69, 69, 1), (64, 256, 129, 128, 4), (3, 8, 600, 601, 2)):
    add_table(
        cases,
        f"images-vast-{'-'.join(map(str, _sizes))}",
        {"": lambda x, w, sizes=_sizes: _vast(*sizes, x, w)},
        lambda d: (d.normal(65_537), d.normal(40_009) / 16),
        terms=4096,
    )


def _spread(window: int, dilation: int, many: int, x: torch.Tensor, w: torch.Tensor) -> Any:
    """Convolve each of five channels by itself, with a rim as wide as the window reaches."""
    image, weight = x[:2310].reshape(2, 5, 11, 21), w[: 5 * many * window**2].reshape(5 * many, 1, window, window)
    reach = dilation * (window - 1)
    options = {"dilation": dilation, "groups": 5}
    same = derived(lambda a, b: F.conv2d(a, b, padding=reach // 2, **options), image, weight)
    far = [F.conv2d(image, weight, padding=(reach, reach // 2), stride=stride, **options) for stride in (1, 2, 3)]
    flat = F.conv1d(image[:, :, 0], weight[:, :, 0], padding=reach, dilation=dilation, groups=5)
    return [same, far, flat, F.conv_transpose2d(same[0][:1], weight, dilation=dilation, groups=5)]


add_table(
    cases,
    "images-spread",
    {
        f"{window}-{dilation}-{many}": lambda x, w, k=window, d=dilation, m=many: _spread(k, d, m, x, w)
        for window in (3, 5, 7)
        for dilation in (1, 2, 3, 4)
        for many in ((1, 2) if dilation % 2 else (1,))
    },
    lambda d: (d.normal(2310), d.normal(490) / 4),
    terms=4096,
    deterministic=False,
)


def _beyond(window: int, padding: int, dilation: int, stride: int, x: torch.Tensor, w: torch.Tensor) -> Any:
    image, weight = x.reshape(2, 3, 5, 7), w[: 4 * 3 * window**2].reshape(4, 3, window, window)
    options = {"padding": padding, "dilation": dilation, "stride": stride}
    return derived(lambda a, b: F.conv2d(a, b, **options), image, weight)


add_table(
    cases,
    "images-beyond",
    {
        f"{window}-{padding}-{dilation}-{stride}": lambda x, w, k=window, p=padding, d=dilation, s=stride: _beyond(
            k, p, d, s, x, w
        )
        for window in (1, 2, 3, 5)
        for padding in (3, 4, 6, 9)
        for dilation in (1, 2, 3)
        for stride in (1 + (window + padding + dilation) % 2,)
        if 5 + 2 * padding > dilation * (window - 1)
    },
    lambda d: (d.normal(210), d.normal(300) / 4),
    terms=4096,
    deterministic=False,
)
