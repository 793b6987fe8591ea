"""More than 2**16 elements with every side small, and windows that are as long: limits of a count, not of a side."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import ENDS, add_table, assigned

cases = Cases("conditions")


# x of (260, 300), y like it, i an order of its rows.
_MATRIX: dict[str, Any] = {
    "joined": lambda x, y, i: [torch.cat([x, y]), torch.cat([x, y], 1), torch.stack([x, y], 1), torch.hstack([x, y])],
    "moved": lambda x, y, i: [x.flip(0), x.flip(1), x.roll((3, 5), (0, 1)), x.rot90(), x.mT.contiguous(), x.tril(2)],
    "repeated": lambda x, y, i: [
        x.repeat(2, 1),
        x.repeat_interleave(2, 1),
        x[:, :1].expand(260, 300) + x,
        x.tile(1, 2),
    ],
    "viewed": lambda x, y, i: [x.reshape(300, 260) + 0, x.unfold(1, 4, 3) * 2, x.diagonal(3) + 1, x[::2, 1::3] * 2],
    "picked": lambda x, y, i: [
        x[i],
        x.index_select(1, i[:200]),
        x.gather(0, i[:, None].expand(-1, 300)),
        x.take(i * 299),
    ],
    "masked": lambda x, y, i: [x[x > y], x.masked_fill(x > y, 3), torch.where(x > y, x, y), x.masked_select(y > 1)],
    "written": lambda x, y, i: [
        x.index_copy(0, i, y),
        x.index_add(0, i, y),
        x.scatter(0, i[:, None].expand(-1, 300), y),
        x.index_put((i,), y),
        assigned(x, (slice(None), slice(1, None, 2)), 7.0),
        assigned(x, x > y, 0.5),
        x.clone().copy_(y.mT.contiguous().mT),
    ],
    "reduced": lambda x, y, i: [
        [x.sum(dim), x.mean(dim), x.amax(dim), x.amin(dim), x.std(dim), x.norm(dim=dim), x.logsumexp(dim)]
        for dim in (0, 1)
    ],
    "whole": lambda x, y, i: [x.sum(), x.mean(), x.max(), x.min(), x.var(), x.norm(), x.median(), (x > y).sum()],
    "scanned": lambda x, y, i: [[x.cumsum(dim), x.cummax(dim)[0], x.softmax(dim), x.diff(dim=dim)] for dim in (0, 1)],
    "ordered": lambda x, y, i: [[x.sort(dim)[0], x.topk(9, dim)[0], x.kthvalue(40, dim)[0]] for dim in (0, 1)],
    "counted": lambda x, y, i: [
        torch.bincount(x.abs().long().flatten()),
        torch.histc(x.float(), 20, -16, 16),
        (x > 0).nonzero(),
        torch.bucketize(x, y[0].sort()[0]),
    ],
    "pointwise": lambda x, y, i: [x + y, x * y, x.exp(), x.clamp(-1, 2), torch.lerp(x, y, 0.25), x.clone().mul_(y), -x],
    "broadcast": lambda x, y, i: [x + y[0], x * y[:, :1], x[:, :1] - y[0], torch.maximum(x, y[:, 3:4]), x[0] > y],
    "converted": lambda x, y, i: [x.long(), x.half().view(torch.int16), (x > 0).to(torch.uint8), (x > y).float()],
    "products": lambda x, y, i: [x @ y.mT, torch.outer(x[0], y[1]), x @ y[0], F.linear(x, y, y[:, 0]), x.mT @ y],
    "distances": lambda x, y, i: [torch.cdist(x, y), torch.cosine_similarity(x[:, None], y[:9], dim=-1)],
    "derived": lambda x, y, i: [
        derived(lambda a, b: torch.cat([a, b * 2], 1), x, y),
        derived(lambda a, b: (a * b).softmax(1), x, y),
        derived(lambda a, b: F.linear(a, b), x, y),
        derived(lambda a: a[i], x),
        derived(lambda a: F.layer_norm(a, (300,)), x),
    ],
    "looked_up": lambda x, y, i: [
        F.embedding(i.reshape(20, 13), x),
        derived(lambda w: F.embedding(i.repeat(2), w), x),
        F.embedding_bag(i.reshape(130, 2), x, mode="sum"),
        F.cross_entropy(x, i % 300),
        F.one_hot(i, 260),
    ],
}
# Where nothing is equal, and what CUDA has not in half precision.
_ORDERS: dict[str, Any] = {
    "unique": lambda x, y, i: x.round().unique(),
    "orders": lambda x, y, i: [[x.argsort(dim), x.topk(9, dim)[1], x.kthvalue(40, dim)[1]] for dim in (0, 1)],
    "places": lambda x, y, i: [[x.argmin(dim), x.argmax(dim), x.cummax(dim)[1], x.argmax()] for dim in (0, 1)],
}
for _dtype in (torch.float32, torch.float16):
    add_table(
        cases,
        f"broad-matrix-{str(_dtype)[6:]}",
        _MATRIX if _dtype == torch.float16 else {**_MATRIX, **_ORDERS},
        lambda d, dtype=_dtype: (
            (d.distinct(260 + d.k, 300) / 4096).to(dtype),
            (d.distinct(260 + d.k, 300) / 4096).to(dtype),
            d.permutation(260 + d.k),
        ),
        terms=300,
        factor=16.0,
        deterministic=False,
    )
# What moves and counts, in whole numbers.
for _dtype in (torch.int64, torch.uint8):
    add_table(
        cases,
        f"broad-matrix-{str(_dtype)[6:]}",
        {
            name: _MATRIX[name]
            for name in ("joined", "moved", "repeated", "viewed", "picked", "masked", "written", "broadcast")
        },
        lambda d, dtype=_dtype: (
            d.integers(0, ENDS[torch.int8].max, 260 + d.k, 300, dtype=dtype),
            d.integers(0, ENDS[torch.int8].max, 260 + d.k, 300, dtype=dtype),
            d.permutation(260 + d.k),
        ),
    )

# x of (2, 4, 96, 100), w of (4, 4, 3, 3): 76,800 elements.
_IMAGES: dict[str, Any] = {
    "nearest": lambda x, w: [F.interpolate(x, scale_factor=2.0), F.interpolate(x, (50, 130), mode="nearest-exact")],
    "linear": lambda x, w: [
        F.interpolate(x, (190, 70), mode=mode, align_corners=align)
        for mode in ("bilinear", "bicubic")
        for align in (False, True)
    ],
    "area": lambda x, w: [F.interpolate(x, (48, 50), mode="area"), F.adaptive_avg_pool2d(x, (95, 7))],
    "lines": lambda x, w: [F.interpolate(x[0], 210), F.interpolate(x[0], 210, mode="linear"), F.max_pool1d(x[0], 3, 1)],
    "volumes": lambda x, w: [F.interpolate(x[:, None], scale_factor=2.0), F.avg_pool3d(x[None], 2, 1)],
    "convolved": lambda x, w: [F.conv2d(x, w, padding=1), F.conv2d(x, w[:, :1], groups=4), F.conv_transpose2d(x, w)],
    "pooled": lambda x, w: [
        F.max_pool2d(x, 3, 1, 1),
        F.avg_pool2d(x, 3, 1, 1),
        *F.max_pool2d(x, 2, return_indices=True),
    ],
    "padded": lambda x, w: [
        F.pad(x, (2, 1, 3, 0), mode=mode) for mode in ("constant", "reflect", "replicate", "circular")
    ],
    "folded": lambda x, w: [F.unfold(x, 2), F.fold(F.unfold(x, 2), (96, 100), 2), F.pixel_shuffle(x, 2)],
    "normed": lambda x, w: [F.batch_norm(x, None, None, training=True), F.group_norm(x, 2), F.instance_norm(x)],
    "last": lambda x, w: [
        x.contiguous(memory_format=torch.channels_last) + 1,
        F.conv2d(x.contiguous(memory_format=torch.channels_last), w),
        F.interpolate(x.contiguous(memory_format=torch.channels_last), scale_factor=2.0),
    ],
    "sampled": lambda x, w: F.grid_sample(
        x, F.affine_grid(w[:2, 0, :2], (2, 4, 96, 100), align_corners=False) / 2, align_corners=False
    ),
    "derived": lambda x, w: [
        derived(lambda a: F.interpolate(a, scale_factor=2.0), x),
        derived(lambda a: F.interpolate(a, (70, 150), mode="bilinear"), x),
        derived(lambda a: F.max_pool2d(a, 2), x),
        derived(lambda a: F.avg_pool2d(a, 3, 2), x),
        derived(lambda a, b: F.conv2d(a, b), x, w),
        derived(lambda a: F.pad(a, (1, 2, 3, 0), mode="reflect"), x),
        derived(lambda a: F.group_norm(a, 2), x),
    ],
    "attended": lambda x, w: F.scaled_dot_product_attention(x[..., :32], x[..., 20:52], x[..., 40:72]),
}
add_table(
    cases,
    "broad-images",
    _IMAGES,
    lambda d: (d.distinct(2, 4, 96 + d.k, 100) / 8192, d.normal(4, 4, 3, 3, scale=0.4)),
    terms=9600,
    factor=16.0,
    deterministic=False,
)

# Batches of more than 2**15 rows in all, of another batch each time; and as many draws of what is certain.
add_table(
    cases,
    "broad-rows",
    {
        "linear": lambda x, w: [
            derived(lambda a, b, rows=rows: F.linear(a.view(rows, -1, 4), b)[:, ::50], x, w) for rows in (128, 64, 300)
        ],
        "products": lambda x, w: [(x.view(rows, -1, 4) @ w.mT)[:, ::50] for rows in (128, 64, 300)],
        "normed": lambda x, w: derived(lambda a, b: F.layer_norm(a.view(128, 300, 4), (4,), b[0], b[1]), x, w),
        "embedded": lambda x, w: derived(lambda a: F.embedding((x[:, 0] > 0).long() * 2, a), w),
        "activated": lambda x, w: [
            F.gelu(x),
            F.softmax(x.view(128, 300, 4), 1),
            F.cross_entropy(x, (x[:, 1] > 0).long()),
        ],
        "drawn": lambda x, w: [
            torch.multinomial(torch.tensor([0.0, 0, 1, 0], device=x.device), 70_000, replacement=True),
            torch.multinomial(torch.eye(4, device=x.device), 33_000, replacement=True).sum(1),
            torch.bernoulli(torch.ones(70_001, device=x.device)).sum(),
        ],
    },
    lambda d: (d.normal(38_400, 4), d.normal(5, 4)),
    terms=38_400,
    deterministic=False,
)

# Planes of 2**16 in a volume: x of (1, 2, 3, 256, 257).
_VOLUMES: dict[str, Any] = {
    "padded": lambda x: [
        F.pad(x, pads, mode=mode)[..., ::5]
        for mode in ("constant", "replicate")
        for pads in ((0, 0, 0, 0, 2, 0), (1, 2, 0, 0, 0, 0), (1, 0, 2, 1, 0, 1))
    ],
    "resized": lambda x: [F.interpolate(x, (2, 100, 90), mode="trilinear"), F.interpolate(x, (4, 128, 64))],
    "pooled": lambda x: [F.max_pool3d(x, (2, 3, 3), 2), F.avg_pool3d(x, (2, 3, 3), 2), F.adaptive_avg_pool3d(x, 2)],
    "convolved": lambda x: F.conv3d(x, x[0, :, :2, :3, :3].expand(2, 2, 2, 3, 3) / 64)[..., ::7],
    "moved": lambda x: [x.flip(2)[..., ::9], x.roll(1, 2)[..., ::9], torch.cat([x, x], 2)[..., ::9], x.mean((3, 4))],
    "normed": lambda x: [F.group_norm(x, 2)[..., ::9], F.batch_norm(x, None, None, training=True)[..., ::9]],
}
add_table(
    cases,
    "broad-volumes",
    _VOLUMES,
    lambda d: (d.distinct(1, 2, 3, 256 + d.k, 257) / 32768,),
    terms=65_536,
    deterministic=False,
)

# Windows, kernels and strides beyond 2**16.
_LONG = 65_536
_WINDOWS: dict[str, Any] = {
    "kernel": lambda x, w: [F.conv1d(x, w), F.conv1d(x, w[..., :_LONG]), F.conv1d(x, w[..., :5], dilation=_LONG // 4)],
    "derived": lambda x, w: derived(lambda a, b: F.conv1d(a, b), x, w),
    "turned": lambda x, w: F.conv_transpose1d(x[..., :3], w),
    "pooled": lambda x, w: [F.avg_pool1d(x, _LONG + 1, 1), F.max_pool1d(x, _LONG + 1, 1), F.adaptive_avg_pool1d(x, 1)],
    "unfolded": lambda x, w: [x.unfold(2, _LONG + 1, 3).sum(-1), x.unfold(2, 3, _LONG)],
    "padded": lambda x, w: [F.pad(x[..., :7], (_LONG, 1)), F.pad(x, (3, 2), mode="reflect")],
    "resized": lambda x, w: [F.interpolate(x[..., :9], _LONG + 5), F.interpolate(x, 7, mode="linear")],
    "square": lambda x, w: F.conv2d(
        x[..., : 260 * 251].reshape(1, 1, 260, 251), w[..., : 256 * 250].reshape(1, 1, 256, 250)
    ),
}
add_table(
    cases,
    "broad-windows",
    _WINDOWS,
    lambda d: (d.normal(1, 1, _LONG + 40 + d.k), d.normal(1, 1, _LONG + 9, scale=0.01)),
    terms=_LONG,
    deterministic=False,
)

# Matrices of more rows than a thread group or a tile has; their factors.
_N = 1025
add_table(
    cases,
    "broad-inverse",
    {
        "inverse": lambda x, b: torch.linalg.inv(x)[:9],
        "solve": lambda x, b: torch.linalg.solve(x, b),
        "triangular": lambda x, b: torch.linalg.solve_triangular(x.tril(), b, upper=False),
        "cholesky": lambda x, b: torch.linalg.cholesky(x + x.mT)[-9:],
        "product": lambda x, b: [x @ b, (x @ x.mT)[-9:], x.diagonal().prod(), x.trace()],
    },
    lambda d: (torch.eye(_N) * 1.5 + d.normal(_N, _N, scale=0.01), d.normal(_N, 3)),
    terms=_N,
    factor=64.0,
)
# More places than float32 tells apart.
_COUNT = (1 << 24) + 9
_PLACES: dict[str, Any] = {
    "found": lambda x, i: [torch.where(x > 3)[0], x.argmax()],
    "counted": lambda x, i: [x.sum(), (x == 0).sum(dtype=torch.int32)],
    "picked": lambda x, i: [x[i], x.take(i), x.index_select(0, i), x.gather(0, i), x[-5:].clone(), x[_COUNT - 2]],
    "written": lambda x, i: [x.index_fill(0, i, 5)[-9:], x.scatter(0, i, 6)[-9:], assigned(x, _COUNT - 3, 8)[-9:]],
    "viewed": lambda x, i: [x[1:].view(2, -1).sum(1), x[:: 1 << 20]],
    "made": lambda x, i: [torch.arange(_COUNT - 4, _COUNT, device=x.device), torch.full((2,), _COUNT, device=x.device)],
}
add_table(
    cases,
    "broad-places",
    _PLACES,
    lambda d: (
        torch.zeros(_COUNT, dtype=torch.uint8).index_fill_(0, torch.tensor([5, _COUNT - 6, _COUNT - 3, _COUNT - 1]), 7),
        torch.tensor([_COUNT - 1, 3, _COUNT - 4, _COUNT - 3]),
    ),
)
# 2**18 whole numbers and more, nearly all of them one: a product past a block of them was 0,
# https://github.com/pytorch/pytorch/issues/15647. x of (3, 100001) and y like it.
_WHOLE: dict[str, Any] = {
    "products": lambda x, y: [x.prod(), x.prod(0), x.prod(1), x.cumprod(0)[-1, ::997]],
    "sums": lambda x, y: [x.sum(), x.sum(0)[::997], x.sum(1), x.sum(dtype=torch.int32), x.cumsum(1)[:, ::997]],
    "ends": lambda x, y: [x.amax(), x.amin(), x.amax(1), x.max(), x.min(), x.aminmax(), x.amin(0)[::997]],
    "truths": lambda x, y: [x.any(), x.all(), x.all(1), x.any(0)[::997], x.count_nonzero(), (x == 3).sum(1)],
    "orders": lambda x, y: [x.sort(1)[0][:, ::997], x.flatten().topk(9)[0], x.flatten().kthvalue(300)[0], x.unique()],
    "places": lambda x, y: [(x == 3).nonzero(), x[x == 3], x.masked_select(y > x), torch.where(x > 1, x, y)[:, ::997]],
    "pointwise": lambda x, y: [(x + y)[:, ::997], (x * y).sum(), (x // y).amax(), (x % y).amax(), x.eq(y).sum()],
    "bits": lambda x, y: [(x & y).sum(), (x | y).sum(), (x ^ y).sum(), (~x).amin()],
    "moved": lambda x, y: [x.flip(1)[:, ::997], x.roll(7, 1)[:, ::997], torch.cat([x, y], 1)[:, ::997], x.mT[::997]],
    "products-matrix": lambda x, y: [x @ y.mT, x[0] @ y[0]],
}
for _dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
    add_table(
        cases,
        f"broad-whole-{str(_dtype)[6:]}",
        _WHOLE,
        lambda d, dtype=_dtype: (
            (d.integers(0, 30_000, 3, 100_001) == 7).long().mul(2).add(1).to(dtype),
            (d.integers(0, 30_000, 3, 100_001) == 9).long().mul(2).add(1).to(dtype),
        ),
        deterministic=False,
    )
