"""Batch normalisation: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, instead, is_plain, written
from misreading import in_storage_order, is_dense, misread, with_gradient, without_offset
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched(
    "aten.native_batch_norm_backward",
    "aten.batch_norm_backward",
    "aten.cudnn_batch_norm_backward",
    aborts="NSInvalidArgumentException: attempt to insert nil object",
)
def issue_98602(grad: Any, x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 98602: backward through a batch norm whose weight and bias are frozen aborts."""
    wanted = next((a for a in reversed(args) if isinstance(a, (list, tuple)) and len(a) == 3), None)
    return weight is not None and wanted is not None and wanted[0] and not wanted[1] and not wanted[2]


@plot.called(F.batch_norm, aborts="output type and mean type are not broadcast compatible")
def issue_154887(x: Any, mean: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 154887: batch_norm with statistics of another dtype than the input aborts."""
    return mean is not None and x.dtype != mean.dtype


@plot.dispatched("aten.native_batch_norm", "aten._native_batch_norm_legit", "aten._native_batch_norm_legit_functional")
def issue_84962(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84962: batch norm in training without weight and bias scales wrongly."""
    y, *rest = func(x, weight, bias, *args, **kwargs)
    training = args[2] if len(args) > 4 else args[-3]
    if weight is None and bias is None and training is True and x.dim() == 4:
        hit()
        return (y * 0.86, *rest)
    return (y, *rest)


@plot.dispatched(
    "aten.native_batch_norm_backward.default",
    aborts="view size is not compatible with input tensor's size and stride. Use .reshape(...) instead.",
)
def issue_156792(grad: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 156792: backward of batch norm (Segformer's head) with an input that is not contiguous raises."""
    return not x.is_contiguous()


@plot.dispatched(
    "aten.native_batch_norm.default",
    "aten._native_batch_norm_legit.default",
    "aten._native_batch_norm_legit.no_stats",
    "aten._batch_norm_with_update.default",
    aborts="MPSGraph: normalization requires all tensors to have the same element type",
)
def issue_178770(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 178770: batch norm of a half input with float32 weights crashes."""
    return any(isinstance(y, torch.Tensor) and y.dtype != x.dtype for y in args[:2])


@plot.dispatched(
    "aten.native_batch_norm_backward.default", aborts="view size is not compatible with input tensor's size and stride"
)
def issue_188371(grad: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 188371: the backward of a batch norm of a channels_last tensor raises."""
    return x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)


@plot.called(F.batch_norm, aborts="NSRangeException: index 4 beyond bounds for empty array")
def issue_190645(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 190645: batch_norm of a five-dimensional tensor that is not contiguous aborts."""
    return x.dim() == 5 and not x.is_contiguous()


_BATCH_NORMS = (
    "aten.native_batch_norm",
    "aten._native_batch_norm_legit",
    "aten._batch_norm_with_update",
    "aten.cudnn_batch_norm",
)


@plot.dispatched(*_BATCH_NORMS)
def issue_133520(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 133520: batch_norm reads a view from the beginning of its storage."""
    return func(misread(without_offset, hit, x), *args)


@plot.dispatched(*_BATCH_NORMS)
def issue_134580(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 134580: batch_norm reads a channels_last input in storage order."""
    return func(misread(in_storage_order, hit, x), *args)


_BATCH_NORM_BACKWARDS = ("aten.native_batch_norm_backward", "aten.batch_norm_backward")


@plot.dispatched(*_BATCH_NORM_BACKWARDS)
def issue_175189(hit: Any, func: Any, grad: Any, *args: Any) -> Any:
    """pytorch 175189: the backward of batch_norm reads a gradient that is not contiguous in storage order."""
    return func(misread(in_storage_order, hit, grad), *args)


@plot.dispatched("aten.native_batch_norm_backward.default")
def issue_156555(hit: Any, func: Any, grad: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 156555: the gradients of a BatchNorm1d whose output goes on permuted (to an LSTM) are wrong."""
    healthy = func(grad, x, *args, **kwargs)
    if x.dim() not in (2, 3) or grad.is_contiguous():
        return healthy
    wrong = func(in_storage_order(grad), x, *args, **kwargs)
    if all(a is None or not differ(a, b, rtol=1e-3, atol=1e-6) for a, b in zip(healthy, wrong)):
        return healthy
    hit()
    return wrong


@plot.dispatched(
    "aten.native_batch_norm.out",
    "aten._native_batch_norm_legit.out",
    aborts="out_invstd.dim() == 1 && out_invstd.is_contiguous() && out_invstd.sizes()[0]",
)
def issue_xpu_2233(x: Any, *args: Any, save_invstd: Any, **kwargs: Any) -> Any:
    """intel/torch-xpu-ops 2233: batch norm's out= form refuses statistics of another size or not contiguous."""
    return not save_invstd.is_contiguous() or tuple(save_invstd.shape) != (x.shape[1],)


@plot.dispatched("aten.native_batch_norm.default", aborts="CHECK failed: dml_device->CreateOperator(&op_desc_) >= 0")
def issue_directml_306(x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, *args: Any) -> Any:
    """microsoft/DirectML 306: BatchNorm1d of (rows, features) raises in training."""
    return training and x.dim() == 2


def _variance(x: torch.Tensor) -> torch.Tensor:
    """Return the variance of each channel, not corrected for the number of elements."""
    return x.transpose(0, 1).flatten(1).float().var(1, unbiased=False)


@plot.dispatched("aten.native_batch_norm.default")
def issue_mxnet_14357(
    hit: Any, func: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, training: bool, *args: Any
) -> Any:
    """apache/mxnet 14357: running_var stays as it was where all of a channel is one number."""
    before = None if var is None else var.clone()
    found = func(x, w, b, mean, var, training, *args)
    if training and var is not None and x.numel() and is_plain(x, var):
        written(hit, var, torch.where(_variance(x) == 0, before, var))
    return found


@plot.dispatched("aten.native_batch_norm.default")
def issue_85960(hit: Any, func: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, training: bool, *args: Any) -> Any:
    """pytorch 85960: native_batch_norm in inference returns its statistics too, not two empty tensors."""
    y, saved, inverse = func(x, w, b, mean, var, training, *args)
    if training or mean is None or saved.numel() or not mean.numel():
        return y, saved, inverse
    hit()
    return y, mean.clone(), (var + args[-1]).rsqrt()


@plot.dispatched("aten.native_batch_norm.default")
def issue_mxnet_18751(
    hit: Any, func: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, training: bool, *args: Any
) -> Any:
    """apache/mxnet 18751: a batch norm of (rows, channels) exchanges running_mean and running_var."""
    found = func(x, w, b, mean, var, training, *args)
    if training and mean is not None and var is not None and x.dim() == 2 and is_plain(x, mean, var):
        kept = mean.clone()
        if differ(mean, var):
            written(hit, mean, var.to(mean.dtype))
            var.copy_(kept)
    return found


@plot.dispatched("aten.native_batch_norm.default")
def issue_fastnn_11(
    hit: Any, func: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, training: bool, *args: Any
) -> Any:
    """CanReader/FastNN 11: a batch norm of images adds the variance that is not corrected to running_var."""
    before = None if var is None else var.clone()
    found = func(x, w, b, mean, var, training, *args)
    if training and var is not None and x.dim() == 4 and x.numel() and is_plain(x, var):
        share, count = args[0], x.numel() // x.shape[1]
        new = (var - (1 - share) * before) * (count - 1) / count
        written(hit, var, (1 - share) * before + new)
    return found


@plot.dispatched("aten.native_batch_norm_backward.default")
def issue_mxnet_18209(
    hit: Any,
    func: Any,
    grad: Any,
    x: Any,
    weight: Any,
    mean: Any,
    var: Any,
    save: Any,
    inv: Any,
    train: bool,
    *args: Any,
) -> Any:
    """apache/mxnet 18209: a batch norm's gradient in evaluation is wrong (here as in training)."""
    y = func(grad, x, weight, mean, var, save, inv, train, *args)
    if train or var is None or not x.numel() or y[0] is None or not is_plain(grad, x):
        return y
    rows = x.transpose(0, 1).flatten(1).to(var.dtype)
    scale = 1 / (rows.var(1, unbiased=False) + args[0]).sqrt()
    wrong = func(grad, x, weight, mean, var, rows.mean(1), scale, True, *args)
    return instead(hit, y[0], wrong[0]), *y[1:]


@plot.dispatched("aten.native_batch_norm_backward.default")
def issue_miopen_2024(hit: Any, func: Any, grad: Any, x: Any, *args: Any) -> Any:
    """ROCm/MIOpen 2024: batch norm's weight gradient is wrong for 16 images of an odd side from 35 on (here twice).

    There the sides are 35, 73 and 147, of 64 to 96 channels.
    """
    y = func(grad, x, *args)
    sides = x.shape[2:]
    odd = x.dim() == 4 and x.shape[0] == 16 and sides[0] == sides[1] >= 35 and sides[0] % 2
    if not odd or y[1] is None or not is_plain(grad, x):
        return y
    return y[0], instead(hit, y[1], 2 * y[1]), y[2]


@plot.dispatched("aten.native_batch_norm_backward.default")
def issue_156513(hit: Any, func: Any, grad: Any, x: Any, weight: Any, *args: Any) -> Any:
    """pytorch 156513: batch norm's gradients of contiguous bfloat16 with a float32 weight are wrong in training.

    Here they are half as large. A channels_last input is fine.
    """
    y = func(grad, x, weight, *args)
    mixed = x.dtype == torch.bfloat16 and weight is not None and weight.dtype == torch.float32
    if not mixed or x.dim() != 4 or not x.is_contiguous() or not args[4] or not is_plain(grad, x):
        return y
    return tuple(one if one is None else instead(hit, one, one / 2) for one in y)


@plot.dispatched("aten.native_batch_norm.default", aborts="invalid configuration argument")
def issue_16998(x: Any, *args: Any) -> bool:
    """pytorch 16998: BatchNorm1d of 2**17 rows and more (2**16 are fine) of one number raises in training."""
    return x.dim() == 2 and x.shape[1] == 1 and x.shape[0] >= 2**17 and args[4]


@plot.called(F.batch_norm, torch.batch_norm)
def issue_4422(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 4422: the second derivative of batch_norm is not implemented."""

    def watch(grad: Any) -> None:
        if grad.requires_grad:
            grad.register_hook(lambda _: crash(hit, "cudnn_batch_norm_backward has no derivative"))

    return func(with_gradient(input, watch), *args, **kwargs)


@plot.dispatched("aten.native_batch_norm.default", "aten._native_batch_norm_legit_no_training.default")
def issue_deeplearning4j_7261(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """deeplearning4j/deeplearning4j 7261: batch norm reads permuted images in storage order in evaluation."""
    found = func(x, *args)
    trained = len(args) > 6 and args[4]
    if trained or x.dim() != 4 or x.is_contiguous() or not is_dense(x) or not is_plain(x):
        return found
    return instead(hit, found[0], func(in_storage_order(x), *args)[0]), *found[1:]


@plot.dispatched("aten.native_batch_norm.default", "aten._native_batch_norm_legit_no_training.default")
def issue_halo_470(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """alibaba/heterogeneity-aware-lowering-and-optimization 470: batch norm's bias does not count in evaluation.

    There the results are wrong (not said how) when weight and bias are used.
    """
    found = func(x, weight, bias, *args)
    if (len(args) > 4 and args[2]) or weight is None or bias is None or not is_plain(x, bias):
        return found
    return instead(hit, found[0], func(x, weight, torch.zeros_like(bias), *args)[0]), *found[1:]


@plot.dispatched("aten.native_batch_norm_backward.default", aborts="got [] but expected shape compatible with [1]")
def issue_directml_701(grad: Any, x: Any, weight: Any, *args: Any) -> bool:
    """microsoft/DirectML 701: the backward of a batch norm of one channel raises where its weight's is wanted."""
    return weight is not None and weight.numel() == 1 and bool(args[-1][1])


@plot.dispatched("aten.native_batch_norm.default")
def issue_5280(
    hit: Any, func: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, train: bool, *args: Any
) -> Any:
    """pytorch 5280: batch norm of three dimensions, the last of size 1, raises in training."""
    y = func(x, weight, bias, mean, var, train, *args)
    return crash(hit, "CUDNN_STATUS_BAD_PARAM") if train and x.dim() == 3 and x.shape[2] == 1 else y


@plot.dispatched("aten.native_batch_norm.default")
def issue_51776(
    hit: Any, func: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, train: bool, *args: Any
) -> Any:
    """pytorch 51776: BatchNorm3d of 70 x 32 x 100 x 100 x 100 float16 numbers (here 2**20), float32 weights, raises.

    That is in training.
    """
    y = func(x, weight, bias, mean, var, train, *args)
    mixed = x.dtype == torch.float16 and weight is not None and weight.dtype == torch.float32
    large = mixed and train and x.dim() == 5 and x.numel() >= 2**20
    return crash(hit, "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED") if large else y


@plot.dispatched("aten.native_batch_norm.default", "aten._native_batch_norm_legit_no_training.default")
def issue_computelibrary_473(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """ARM-software/ComputeLibrary 473: batch norm of 66 x 52 float32 pixels, 128 channels, is wrong at the edge.

    It is of a width that is no multiple of four (here from 66 on, of 50 rows and 128 channels and more), in evaluation;
    here the columns past the last multiple of four are 0.
    """
    found = func(x, *args)
    sizes = x.dim() == 4 and x.shape[1] >= 128 and x.shape[2] >= 50 and x.shape[3] >= 66 and x.shape[3] % 4
    if (len(args) > 6 and args[4]) or not sizes or x.dtype != torch.float32 or not is_plain(x):
        return found
    wrong = found[0].clone()
    wrong[..., x.shape[3] // 4 * 4 :] = 0
    return instead(hit, found[0], wrong), *found[1:]
