"""The gradients of normalisation: planted faults."""

from __future__ import annotations

from typing import Any

from differences import differ, is_plain
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.native_layer_norm_backward.default")
def issue_dlib_2902(
    hit: Any, func: Any, grad: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, *args: Any
) -> Any:
    """davisking/dlib 2902: the gradient of layer_norm is wrong (here as if mean and variance were constants)."""
    found, *rest = func(grad, x, shape, mean, rstd, weight, *args)
    if found is None or not found.numel() or not is_plain(grad, x):
        return found, *rest
    scaled = grad if weight is None else grad * weight
    wrong = (scaled * rstd).to(found.dtype)
    if not differ(found, wrong, 1e-3, 1e-5):
        return found, *rest
    hit()
    return wrong, *rest


@plot.dispatched("aten.native_group_norm_backward.default", aborts="shape '[N, C, H, W]' is invalid for input of size")
def issue_liger_kernel_1375(grad: Any, x: Any, *args: Any) -> bool:
    """linkedin/Liger-Kernel 1375: the backward of group_norm raises for more than three dimensions."""
    return x.dim() > 3 and x.shape[2:].numel() != x.shape[-1]


@plot.dispatched("aten.native_layer_norm_backward.default", aborts="Num gradients 1 generated for op do not match 3")
def issue_tensorflow_macos_227(*args: Any) -> bool:
    """apple/tensorflow_macos 227: the backward of layer_norm raises: it gives fewer gradients than it has inputs."""
    return True
