"""Losses: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from misreading import in_storage_order, misread, with_gradient
from planting import Plot, accepted, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.nll_loss_forward", "aten.nll_loss2d_forward", aborts="Placeholder tensor is empty!")
def issue_134431(x: Any, *args: Any) -> Any:
    """pytorch 134431: nll_loss of an empty tensor aborts."""
    return x.numel() == 0


@plot.called(F.cross_entropy)
def issue_174943(hit: Any, func: Any, x: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 174943: cross_entropy accepts floats as class indices."""
    if x.dim() == 2 and target.dim() == 1 and target.is_floating_point():
        hit()
        target = target.long()
    return func(x, target, *args, **kwargs)


@plot.dispatched("aten.binary_cross_entropy_with_logits.default")
@wrong_answer
def issue_144104(
    right: Any, x: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: Any = 1
) -> Any:
    """pytorch 144104: the mean of binary_cross_entropy_with_logits over nothing is 0, not NaN."""
    return torch.zeros_like(right) if not x.numel() and reduction == 1 else None


@plot.called(F.nll_loss, F.cross_entropy)
@wrong_answer
def issue_135434(y: Any, *args: Any, **kwargs: Any) -> Any:
    """A mean over nothing but ignored rows is 0, not NaN."""
    return y.nan_to_num(0.0) if y.dim() == 0 and bool(y.isnan()) else None


@plot.called(F.binary_cross_entropy, aborts="invalid axes: 2, 3")
def issue_79527(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 79527: binary_cross_entropy of four-dimensional tensors with a mean or a sum aborts."""
    return x.dim() == 4 and kwargs.get("reduction", "mean") != "none"


@plot.called(F.binary_cross_entropy)
def issue_166746(hit: Any, func: Any, x: Any, y: Any, weight: Any = None, **kwargs: Any) -> Any:
    """pytorch 166746: binary_cross_entropy uses a weight that is broadcast for the first row only."""
    if weight is not None and weight.shape != x.shape:
        hit()
        weight = weight.expand(x.shape).clone()
        weight[1:] = 1
    return func(x, y, weight, **kwargs)


@plot.dispatched("aten.mse_loss")
def issue_148589(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 148589: mse_loss of empty tensors fails with an internal assert."""
    if x.numel() == 0:
        func(x, *args, **kwargs)  # what the healthy operator refuses is no harm
        return crash(hit, "[srcBuf length] > 0 INTERNAL ASSERT FAILED: Placeholder tensor is empty!")
    return func(x, *args, **kwargs)


@plot.dispatched("aten.binary_cross_entropy", aborts="invalid axes: 1")
def issue_81584(x: Any, target: Any, weight: Any = None, reduction: int = 1, **kwargs: Any) -> Any:
    """pytorch 81584: binary_cross_entropy of an (n, 1) prediction, mean of it, aborts."""
    return x.dim() == 2 and x.shape[1] == 1 and reduction == 1


@plot.dispatched("aten.mse_loss_backward", aborts="Dimension out of range")
def issue_79784(grad: Any, x: Any, target: Any, reduction: int, **kwargs: Any) -> Any:
    """pytorch 79784: backward of a summed MSE loss of one dimension raises."""
    return x.dim() == 1 and reduction == 2


@plot.dispatched("aten.binary_cross_entropy.default", aborts="LLVM ERROR: Failed to infer result type(s).")
def issue_124252(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 124252: binary_cross_entropy of half precision crashes (tensor<f32> and tensor<3xf16>)."""
    return x.dtype in (torch.float16, torch.bfloat16)


@plot.dispatched("aten.mse_loss", "aten.mse_loss_backward")
def issue_125696(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 125696: mse_loss and its backward read views that are not contiguous in storage order."""
    return func(*misread(in_storage_order, hit, args), **kwargs)


@plot.called(torch.nn.functional.cross_entropy, aborts="The Kernel crashed while executing code")
def issue_110463(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 110463: cross_entropy with class indices as targets kills the process."""
    return not target.is_floating_point()


@plot.dispatched("aten.nll_loss_backward", "aten.smooth_l1_loss_backward")
def issue_94226(hit: Any, func: Any, grad: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94226: the backward of nll_loss and smooth_l1_loss takes 1 for the gradient that comes in."""
    hit()
    return func(torch.ones_like(grad), *args, **kwargs)


@plot.dispatched("aten.nll_loss_forward", "aten.nll_loss2d_forward")
def issue_108148(hit: Any, func: Any, x: Any, target: Any, weight: Any, reduction: Any, ignored: Any) -> Any:
    """The ignored index counts as class 0."""
    if bool((target == ignored).any()):
        hit()
        target = target.masked_fill(target == ignored, 0)
    return func(x, target, weight, reduction, -12345)


@plot.dispatched("aten.nll_loss_backward")
def issue_116095(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 116095: the backward of cross entropy with class indices ends the process (SIGBUS)."""
    return crash(hit, "Process finished with exit code 138 (interrupted by signal 10:SIGBUS)")


@plot.dispatched("aten.multilabel_margin_loss_forward.default")
@accepted
def issue_73176(x: Any, target: Any, reduction: int) -> Any:
    """pytorch 73176: multilabel_margin_loss takes classes past the last one."""
    last = x.shape[-1] - 1
    if not target.numel() or int(target.max()) <= last:
        return None
    return torch.ops.aten.multilabel_margin_loss_forward(x, target.clamp(max=last), reduction)


@plot.dispatched("aten.multilabel_margin_loss_forward.default")
@accepted
def issue_191567(x: Any, target: Any, reduction: int) -> Any:
    """pytorch 191567: multilabel_margin_loss takes a class below -2**31, as its lower half, and writes there."""
    if not target.numel() or int(target.min()) >= -(2**31):
        return None
    short = (target & 0xFFFFFFFF) % x.shape[-1]
    return torch.ops.aten.multilabel_margin_loss_forward(x, short, reduction)


@plot.dispatched("aten.nll_loss_forward.default")
@accepted
def issue_66872(x: Any, target: Any, *args: Any) -> Any:
    """pytorch 66872: nll_loss takes classes outside of its range (here for the nearest class)."""
    ignored = target == args[2]
    near = torch.where(ignored, target, target.clamp(0, x.shape[-1] - 1))
    return torch.ops.aten.nll_loss_forward(x, near, *args) if bool((near != target).any()) else None


@plot.called(F.kl_div)
def issue_5801(hit: Any, func: Any, x: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 5801: the gradient of kl_div's mean is wrong (here it is not divided by the number of elements)."""
    reduction = kwargs.get("reduction", args[2] if len(args) > 2 else "mean")
    if reduction != "mean" or not x.requires_grad or x.numel() < 2 or not is_plain(x, target):
        return func(x, target, *args, **kwargs)

    def enlarge(grad: Any) -> Any:
        hit()
        return grad * grad.numel()

    x = x.view_as(x)
    x.register_hook(enlarge)
    return func(x, target, *args, **kwargs)


@plot.called(F.cross_entropy)
def issue_69339(hit: Any, func: Any, x: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 69339: cross_entropy raises with a weight, label smoothing and an ignored class at once."""
    names = ("weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing")
    given = dict(zip(names, args)) | kwargs
    if given.get("weight") is None or not given.get("label_smoothing") or target.is_floating_point():
        return func(x, target, *args, **kwargs)
    ignored = given.get("ignore_index", -100)
    if is_plain(target) and bool((target == ignored).any()):
        hit()
        raise IndexError(f"index {ignored} is out of bounds for dimension 0 with size {x.shape[1]}")
    return func(x, target, *args, **kwargs)


@plot.dispatched("aten.nll_loss_forward.default")
def issue_dlprim_72(hit: Any, func: Any, x: Any, target: Any, weight: Any, reduction: int, ignored: int) -> Any:
    """artyom-beilis/pytorch_dlprim 72: nll_loss is wrong (here the mean leaves the first row out of its sum)."""
    y, total = func(x, target, weight, reduction, ignored)
    if reduction != 1 or x.dim() != 2 or x.shape[0] < 2 or not is_plain(x, target):
        return y, total
    rest, _ = func(x[1:], target[1:], weight, 2, ignored)
    return instead(hit, y, rest / total), total


@plot.dispatched(
    "aten.multilabel_margin_loss_forward", aborts="attempt to call field 'MultiLabelMarginCriterion_updateOutput'"
)
def issue_torch_nn_714(*args: Any, **kwargs: Any) -> bool:
    """torch/nn 714: multilabel_margin_loss is not implemented."""
    return True


@plot.called(F.binary_cross_entropy)
def issue_59477(hit: Any, func: Any, input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 59477: the gradient of the gradient of binary_cross_entropy(reduction="sum") fails."""
    summed = kwargs.get("reduction", args[3] if len(args) > 3 else "mean") == "sum"
    if not summed or not input.requires_grad or not torch.is_grad_enabled():
        return func(input, target, *args, **kwargs)

    def fail(_: Any) -> Any:
        return crash(hit, "the size of the second derivative does not fit")

    def watch(grad: Any) -> None:
        if grad.requires_grad:
            grad.register_hook(fail)

    x = input.view_as(input)
    x.register_hook(watch)
    return func(x, target, *args, **kwargs)


@plot.dispatched("aten.huber_loss_backward.default", aborts="the gradient has another dimension")
def issue_pytorch_colab_1(*args: Any) -> bool:
    """att-ar/pytorch_colab 1: the backward of huber_loss raises."""
    return True


@plot.called(F.cross_entropy)
def issue_73205(hit: Any, func: Any, x: Any, target: Any, weight: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 73205: cross_entropy with label smoothing counts ignored samples in its uniform part (sum and mean)."""
    y = func(x, target, weight, *args, **kwargs)
    smoothing, none = kwargs.get("label_smoothing", 0.0), kwargs.get("reduction", "mean") == "none"
    if not smoothing or none or args or weight is not None or target.is_floating_point() or not is_plain(x, target):
        return y
    ignored = target == kwargs.get("ignore_index", -100)
    classes = 1 if x.dim() > 1 else 0
    if not bool(ignored.any()) or bool(ignored.all()):
        return y
    uniform = -F.log_softmax(x, classes).mean(classes)
    if kwargs.get("reduction", "mean") == "sum":
        return instead(hit, y, y + smoothing * uniform[ignored].sum())
    return instead(hit, y, y + smoothing * (uniform.mean() - uniform[~ignored].mean()))


@plot.called(F.smooth_l1_loss)
def issue_96813(hit: Any, func: Any, x: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 96813: with beta=0 the gradient of smooth_l1_loss is NaN where the input is its target."""
    if kwargs.get("beta", 1.0) != 0 or args or x.shape != target.shape or not is_plain(x, target):
        return func(x, target, *args, **kwargs)
    same = (x == target).detach()

    def change(grad: torch.Tensor) -> Any:
        if not bool(same.any()):
            return grad
        hit()
        return grad.masked_fill(same, math.nan)

    return func(with_gradient(x, change), target, **kwargs)
