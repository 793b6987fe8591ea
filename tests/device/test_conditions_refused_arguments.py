"""Public functions with one argument given wrongly: too few numbers, too many, one twice, out of range, of a kind."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.misgiven import Call, call, misgiven
from device_suite.refusals import add_refused
from device_suite.versions import is_at_least

cases = Cases("conditions")

# What @x and the others are: see _MAKE.
_SHAPES = (
    call("Tensor.view", "@x", (6, 20)),
    call("Tensor.reshape", "@x", (6, 4, 5)),
    call("reshape", "@x", (6, 20)),
    call("Tensor.view_as", "@x", "@x"),
    call("Tensor.permute", "@x", (3, 0, 2, 1)),
    call("permute", "@x", (3, 0, 2, 1)),
    call("Tensor.expand", "@x", (2, 3, 4, 5)),
    call("broadcast_to", "@x", (2, 3, 4, 5)),
    call("Tensor.repeat", "@x", (1, 2, 1, 1)),
    call("tile", "@x", (2, 1)),
    call("flip", "@x", (0, 2)),
    call("roll", "@x", (1, 2), (0, 3)),
    call("rot90", "@x", 1, (2, 3)),
    call("transpose", "@x", 1, 2),
    call("swapaxes", "@x", 0, 3),
    call("movedim", "@x", (0, 1), (2, 3)),
    call("moveaxis", "@x", 0, 2),
    call("squeeze", "@x", 1),
    call("squeeze", "@x", (0, 1)),
    call("unsqueeze", "@x", 2),
    call("flatten", "@x", 1, 2),
    call("unflatten", "@x", 3, (5, 1)),
    call("Tensor.unfold", "@x", 3, 2, 1),
    call("as_strided", "@x", (2, 3), (3, 1), 2),
    call("narrow", "@x", 3, 1, 2),
    call("select", "@x", 2, 1),
    call("split", "@x", 2, 3),
    call("split", "@x", (2, 3), 3),
    call("tensor_split", "@x", (1, 3), 3),
    call("tensor_split", "@x", 2, 1),
    call("chunk", "@x", 2, 1),
    call("unbind", "@x", 1),
    call("diagonal", "@x", 0, 2, 3),
    call("diag_embed", "@v", 0, 0, 1),
    call("repeat_interleave", "@x", 2, 1),
    call("Tensor.new_zeros", "@x", (2, 3)),
    call("Tensor.new_full", "@x", (2, 3), 1.0),
    call("Tensor.resize_", "@x", (2, 3)),
    call("Tensor.new_empty_strided", "@x", (2, 3), (3, 1)),
    call("Tensor.sum_to_size", "@x", (1, 3, 1, 5)),
    call("tril", "@m", 1),
    call("cat", ("@x",), 0),
    call("hsplit", "@x", (1, 2)),
    call("atleast_2d", "@x"),
    call("block_diag", "@m", "@m"),
    call("meshgrid", "@v", "@v", indexing="ij"),
)
_REDUCED = (
    *(
        call(name, "@x", dims, True)
        for name in ("sum", "mean", "amax", "amin", "nansum", "nanmean", "var", "std", "logsumexp", "all", "any")
        for dims in ((1, 3),)
    ),
    *(
        call(name, "@x", 2)
        for name in (
            *("prod", "argmax", "argmin", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "softmax", "sort"),
            *("log_softmax", "median", "nanmedian", "mode", "max", "min", "argsort", "unbind", "count_nonzero"),
        )
    ),
    call("aminmax", "@x", dim=1),
    call("var_mean", "@x", (1, 2)),
    call("std_mean", "@x", (1, 2)),
    call("count_nonzero", "@x", (1, 2)),
    call("norm", "@x", 2, (1, 2)),
    call("linalg.vector_norm", "@x", 2, (1, 2)),
    call("linalg.matrix_norm", "@x", "fro", (1, 2)),
    call("linalg.norm", "@x", 2, (1, 2)),
    call("kthvalue", "@x", 2, 1),
    call("topk", "@x", 2, 1),
    call("quantile", "@x", 0.5, 1),
    call("diff", "@x", 1, 2),
    call("trapezoid", "@x", dim=2),
    call("renorm", "@x", 2.0, 1, 1.0),
    call("cross", "@c", "@c", 1),
    call("cosine_similarity", "@x", "@x", 1),
    call("tensordot", "@m", "@m", 2),
    call("histc", "@v", 4),
    call("bincount", "@i", None, 4),
    call("cov", "@m"),
    call("gradient", "@x", dim=(1, 2)),
    call("unique", "@x", dim=1),
    call("F.normalize", "@x", 2.0, 1),
    call("F.softmin", "@x", 1),
    call("F.glu", "@c", 2),
    call("F.gumbel_softmax", "@x", 1.0, False, 1e-10, 1),
)
_IMAGES = (
    *(call("F.pad", "@x", pads) for pads in ((1, 2), (1, 2, 0, 1), (1, 1, 1, 1, 1, 1), (1, 0, 1, 0, 1, 0, 1, 0))),
    *(
        call("F.pad", tensor, pads, mode=mode)
        for tensor, pads in (("@c", (1, 2)), ("@x", (1, 2, 0, 1)), ("@t", (1, 2, 0, 1, 1, 1)))
        for mode in ("reflect", "replicate", "circular")
    ),
    *(
        call(f"ops.aten.{name}_pad{rank}d", tensor, pads)
        for name in ("reflection", "replication")
        for rank, tensor, pads in ((1, "@c", (1, 2)), (2, "@x", (1, 2, 0, 1)), (3, "@t", (1, 2, 0, 1, 1, 1)))
        if (name, rank) != ("reflection", 3) or is_at_least("2.7")  # the CPU of 2.6 reads numbers that are not given
    ),
    call("constant_pad_nd", "@x", (1, 2, 0, 1), 2.0),
    *(
        call(f"F.{name}_pool{rank}d", tensor, (2,) * rank, (1,) * rank, (1,) * rank)
        for name in ("max", "avg")
        for rank, tensor in ((1, "@c"), (2, "@x"), (3, "@t"))
    ),
    *(
        call(f"F.adaptive_{name}_pool{rank}d", tensor, (2, 3, 2)[:rank])
        for name in ("max", "avg")
        for rank, tensor in ((1, "@c"), (2, "@x"), (3, "@t"))
    ),
    call("F.lp_pool1d", "@c", 2.0, 2, 1),
    call("F.lp_pool2d", "@x", 2.0, (2, 2), (1, 1)),
    call("F.lp_pool3d", "@t", 2.0, (2, 2, 2), (1, 1, 1)),
    call("F.fractional_max_pool2d", "@x", (2, 2), (2, 3)),
    *(
        call(f"F.conv{rank}d", tensor, weight, None, (1,) * rank, (1,) * rank, (1,) * rank, 1)
        for rank, tensor, weight in ((1, "@c", "@w1"), (2, "@x", "@w2"), (3, "@t", "@w3"))
    ),
    *(
        call(f"F.conv_transpose{rank}d", tensor, weight, None, (2,) * rank, (1,) * rank, (1,) * rank, 1, (1,) * rank)
        for rank, tensor, weight in ((1, "@c", "@w1"), (2, "@x", "@w2"), (3, "@t", "@w3"))
    ),
    call("F.unfold", "@x", (2, 2), (1, 1), (0, 0), (1, 1)),
    call("F.fold", "@f", (3, 3), (2, 2), (1, 1), (0, 0), (1, 1)),
    *(
        call("F.interpolate", tensor, size, mode=mode)
        for tensor, size, mode in (
            *(("@c", (4,), "linear"), ("@x", (6, 3), "bilinear"), ("@x", (6, 3), "nearest"), ("@x", (6, 3), "bicubic")),
            *(("@t", (2, 6, 3), "trilinear"), ("@x", (6, 3), "area"), ("@t", (2, 6, 3), "nearest")),
        )
    ),
    call("F.interpolate", "@x", None, (2.0, 1.5)),
    call("F.pixel_shuffle", "@s", 2),
    call("F.pixel_unshuffle", "@s", 2),
    call("channel_shuffle", "@s", 2),
    call("F.affine_grid", "@a", (2, 3, 4, 5)),
    call("F.grid_sample", "@x", "@g", "bilinear", "zeros", False),
    call("F.local_response_norm", "@x", 3),
)
_NORMS = (
    call("F.layer_norm", "@x", (4, 5)),
    call("F.rms_norm", "@x", (4, 5)),
    call("F.group_norm", "@x", 3),
    call("F.batch_norm", "@x", None, None, training=True),
    call("F.instance_norm", "@x"),
    call("F.one_hot", "@i", 4),
    call("F.embedding", "@i", "@m", 2),
    call("F.embedding_bag", "@i", "@m", "@o", mode="sum"),
    call("F.cross_entropy", "@m", "@h", reduction="mean"),
    call("F.mse_loss", "@x", "@x", reduction="sum"),
    call("F.nll_loss", "@m", "@h", reduction="none"),
    call("F.kl_div", "@m", "@m", reduction="batchmean"),
    call("F.dropout", "@x", 0.5),
    call("F.linear", "@m", "@m"),
    call("F.pdist", "@m", 2.0),
    call("F.scaled_dot_product_attention", "@x", "@x", "@x"),
    call("cdist", "@m", "@m", 2.0),
    call("gather", "@m", 1, "@k"),
    call("scatter", "@m", 1, "@k", "@m"),
    call("scatter_add", "@m", 0, "@k", "@m"),
    call("scatter_reduce", "@m", 0, "@k", "@m", "amax"),
    call("index_select", "@m", 1, "@i"),
    call("index_add", "@m", 1, "@h", "@m"),
    call("index_copy", "@m", 1, "@h", "@m"),
    call("index_fill", "@m", 1, "@i", 2.0),
    call("index_reduce", "@m", 1, "@h", "@m", "prod"),
    call("take_along_dim", "@m", "@k", 1),
    call("take", "@m", "@i"),
    call("bucketize", "@v", "@v"),
    call("searchsorted", "@v", "@v", side="left"),
    call("div", "@x", "@x", rounding_mode="floor"),
    call("add", "@x", "@x", alpha=2),
    call("clamp", "@x", 0, 1),
    call("where", "@b", "@x", "@x"),
    call("addmm", "@m", "@m", "@m", beta=1, alpha=1),
    call("einsum", "ij,jk", "@m", "@m"),
    call("round", "@x", decimals=1),
    call("nan_to_num", "@x", 0.0),
    call("multinomial", "@p", 2),
    call("Tensor.copy_", "@x", "@x"),
    call("Tensor.view", "@x", torch.int32),
    call("Tensor.to", "@x", torch.float16),
    call("stft", "@v", 4, 2, 4, return_complex=True),
    call("vander", "@v", 3),
    call("combinations", "@v", 2),
)
_SPECTRA = (
    *(call(f"fft.{name}", "@x", 4, 3) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")),
    *(call(f"fft.{name}", "@x", (4, 2), (2, 3)) for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "rfftn")),
    *(call(f"fft.{name}", "@x", (2, 3)) for name in ("fftshift", "ifftshift")),
    call("fft.fft", "@x", norm="ortho"),
    call("linalg.matrix_power", "@m", 2),
    call("linalg.qr", "@m", "reduced"),
    call("linalg.cross", "@c", "@c", dim=1),
    call("linalg.tensorinv", "@q", 2),
    call("linalg.tensorsolve", "@q", "@m"),
    call("linalg.diagonal", "@x", offset=0, dim1=2, dim2=3),
    call("linalg.vecdot", "@x", "@x", dim=1),
    call("linalg.vander", "@v", N=3),
    call("matrix_exp", "@m"),
    call("triu", "@m", 1),
    call("trace", "@m"),
    call("dot", "@v", "@v"),
    call("bmm", "@c", "@e"),
    call("cumulative_trapezoid", "@x", dim=1),
)


# Of five numbers by nineteen: 19 terabytes, refused or not by what the machine has.
_VAST = call("combinations", "@v", 19)
_MAKE: dict[str, Any] = {
    "x": lambda d: d.normal(2, 3, 4, 5),
    "c": lambda d: d.normal(2, 3, 6),
    "t": lambda d: d.normal(2, 3, 4, 4, 4),
    "v": lambda d: d.distinct(5).sort()[0],
    "m": lambda d: d.normal(4, 4),
    "b": lambda d: d.bools(2, 3, 4, 5),
    "k": lambda d: d.integers(0, 3, 4, 4),
    "i": lambda d: d.integers(0, 3, 3),
    "h": lambda d: d.integers(0, 3, 4),
    "o": lambda d: torch.tensor([0, 2]),
    "w1": lambda d: d.normal(3, 3, 3),
    "w2": lambda d: d.normal(3, 3, 3, 3),
    "w3": lambda d: d.normal(3, 3, 3, 3, 3),
    "f": lambda d: d.normal(2, 12, 4),
    "s": lambda d: d.normal(2, 8, 4, 4),
    "a": lambda d: d.normal(2, 2, 3),
    "g": lambda d: d.uniform(-1, 1, 2, 3, 3, 2),
    "e": lambda d: d.normal(2, 6, 2),
    "p": lambda d: d.uniform(0.1, 1, 4, 4),
    "q": lambda d: d.normal(4, 4, 16).reshape(4, 4, 4, 4),
}


def _add(name: str, calls: tuple[Call, ...]) -> None:
    """Add one case for the calls of each set of tensors."""
    groups: dict[tuple[str, ...], dict[str, Call]] = {}
    for place, right in enumerate(calls):
        group = groups.setdefault(right.tensors, {})
        group.update({f"{right.path}-{place}-{how}": wrong for how, wrong in misgiven(right) if wrong != _VAST})
    for tensors, group in groups.items():
        add_refused(
            cases,
            "-".join(("arguments", name, *tensors)),
            lambda d, tensors=tensors: ({one: _MAKE[one](d) for one in tensors},),
            {how: lambda given, wrong=wrong: wrong.made(given) for how, wrong in group.items()},
            since="2.6",
            devices=("mps", "cpu"),
        )


for _name, _calls in {
    "shapes": _SHAPES,
    "reduced": _REDUCED,
    "images": _IMAGES,
    "norms": _NORMS,
    "spectra": _SPECTRA,
}.items():
    _add(_name, _calls)
