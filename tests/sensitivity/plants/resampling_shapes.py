"""Interpolation of certain dtypes, sizes and strides: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from misreading import dense_strides
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.upsample_linear1d.default", aborts='"upsample_linear1d_out_frame" not implemented')
def issue_84989(x: Any, *args: Any) -> bool:
    """pytorch 84989: linear resizing in bfloat16 is not implemented."""
    return x.dtype == torch.bfloat16


@plot.dispatched("aten.upsample_trilinear3d_backward.default")
def issue_113642(hit: Any, func: Any, grad: Any, *args: Any) -> Any:
    """pytorch 113642: trilinear's gradient is wrong if the one that comes in is one voxel in channels_last_3d.

    It is contiguous too, but its strides are not those that its shape gives (2, 1, 2, 2, 2). Here the first channel
    counts alone.
    """
    y = func(grad, *args)
    one = grad.dim() == 5 and grad.shape[1] > 1 and set(grad.shape[2:]) == {1}
    if not one or not grad.is_contiguous() or grad.stride() == dense_strides(grad.shape) or not is_plain(grad):
        return y
    wrong = y.clone()
    wrong[:, 1:] = 0
    return instead(hit, y, wrong)


@plot.dispatched("aten.upsample_nearest2d_backward.default")
def issue_51036(hit: Any, func: Any, grad: Any, size: Any, given: Any, *args: Any) -> Any:
    """pytorch 51036: nearest's gradient, 45 x 18 to 14 x 24 pixels, has any number somewhere (here in its last row).

    Of twenty pairs of sizes one went wrong; the number was 2.5588 where all is 0.
    """
    y = func(grad, size, given, *args)
    if tuple(given[-2:]) != (45, 18) or tuple(size) != (14, 24) or not is_plain(grad):
        return y
    wrong = y.clone()
    wrong[..., -1, :] = 2.5588
    return instead(hit, y, wrong)


@plot.dispatched("aten.upsample_bilinear2d", aborts="attempt to call field 'SpatialReSamplingEx_updateOutput'")
def issue_cunnx_26(*args: Any, **kwargs: Any) -> bool:
    """nicholas-leonard/cunnx 26: bilinear resizing of images is not implemented."""
    return True


@plot.dispatched("aten.upsample_nearest2d", aborts="attempt to call method 'reshape' (a nil value)")
def issue_nnx_6(*args: Any, **kwargs: Any) -> bool:
    """clementfarabet/lua---nnx 6: nearest resizing of images raises."""
    return True
