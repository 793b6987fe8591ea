"""Interpolation and grids: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, instead, is_plain
from misreading import in_storage_order, misread
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched(
    "aten.affine_grid_generator.default",
    aborts="invalid input tensor shapes, indices shape and updates shape must be equal",
)
def issue_86107(theta: Any, size: Any, align_corners: Any) -> Any:
    """pytorch 86107: affine_grid of an image aborts."""
    return len(size) == 4


@plot.dispatched("aten.upsample_linear1d.default", "aten.upsample_bilinear2d.default")
@wrong_answer
def issue_144245(y: Any, x: Any, size: Any, align: Any, *args: Any) -> Any:
    """pytorch 144245: interpolation of one pixel with aligned corners is NaN."""
    return torch.full_like(y, math.nan) if align and x.shape[-1] == 1 else None


@plot.dispatched("aten.upsample_bilinear2d.default", "aten.upsample_bicubic2d.default")
def issue_made_upsample_one(hit: Any, func: Any, x: Any, size: Any, align: Any, *args: Any) -> Any:
    """Interpolation to one pixel with aligned corners takes the middle."""
    y = func(x, size, align, *args)
    if align and size[-1] == 1 and x.shape[-1] > 1:
        hit()
        return func(x, size, False, *args)
    return y


@plot.dispatched("aten.grid_sampler_2d", aborts="Placeholder tensor is empty!")
def issue_175683(x: Any, grid: Any, *args: Any) -> Any:
    """pytorch 175683: grid_sample with a grid of no points raises."""
    return not grid.numel()


@plot.dispatched("aten.upsample_nearest2d")
def issue_84039(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84039: nearest interpolation to a large image aborts (there near 2**31 bytes, here over 2**16 elements).

    https://github.com/pytorch/pytorch/issues/84039
    """
    right = func(*args, **kwargs)
    if right.numel() > 2**16:
        return crash(hit, "[MPSTemporaryNDArray initWithDevice:descriptor:] Error: product of dimension sizes > 2**31")
    return right


@plot.dispatched("aten.grid_sampler_3d")
def issue_171602(hit: Any, func: Any, x: Any, grid: Any, *args: Any) -> Any:
    """pytorch 171602: grid_sample of volumes reads a grid that is not contiguous in storage order."""
    return func(x, misread(in_storage_order, hit, grid), *args)


@plot.dispatched("aten.upsample_nearest2d", "aten.upsample_bilinear2d")
@wrong_answer
def issue_94963(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94963: interpolation with a channels_last output writes it in another order."""
    return y.permute(0, 2, 3, 1).reshape(y.shape) if not y.is_contiguous() else None


@plot.dispatched("aten.grid_sampler_2d.default", aborts="MPS: Unsupported Border padding mode")
def issue_125098(x: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    """pytorch 125098: grid_sample with padding_mode="border" is refused."""
    return padding == 1


@plot.dispatched("aten.upsample_linear1d")
def issue_118814(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 118814: linear interpolation in one dimension is not implemented."""
    hit()
    raise NotImplementedError(
        "The operator 'aten::upsample_linear1d.out' is not currently implemented for the MPS device."
    )


@plot.dispatched("aten.upsample_bilinear2d")
@wrong_answer
def issue_88183(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 88183: bilinear growth of a 1x1 image that a permute made (not the default strides) gives zeros."""
    if (
        x.dim() == 4
        and x.shape[2:] == (1, 1)
        and x.shape[1] > 1
        and x.stride() != x.clone(memory_format=torch.contiguous_format).reshape(-1).view(x.shape).stride()
    ):
        return torch.zeros_like(y)
    return None


@plot.dispatched("aten.grid_sampler_2d")
def issue_174339(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 174339: grid_sample reads a channels_last image as if it were contiguous."""
    if x.is_contiguous(memory_format=torch.channels_last):
        x = misread(in_storage_order, hit, x)
    return func(x, *args, **kwargs)


@plot.dispatched(
    "aten.upsample_nearest2d.default",
    aborts="upsample_nearest_nhwc only supports output tensors with less than INT_MAX elements",
)
def issue_81665(x: Any, size: Any, *args: Any) -> bool:
    """pytorch 81665: nearest resizing of a channels_last image to 2**31 elements and more raises (here 2**16)."""
    last = x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
    return last and x.shape[0] * x.shape[1] * size[0] * size[1] >= 2**16


@plot.dispatched("aten.upsample_nearest2d_backward.default")
def issue_38985(hit: Any, func: Any, grad: Any, size: Any, input_size: Any, *args: Any) -> Any:
    """pytorch 38985: the gradient of nearest shrinking goes to the last pixel of each window, not to the first."""
    y = func(grad, size, input_size, *args)
    if size[0] >= input_size[2] or size[1] >= input_size[3] or not is_plain(grad):
        return y
    return instead(hit, y, func(grad.flip(-1, -2), size, input_size, *args).flip(-1, -2))


def _weights(inputs: int, outputs: int, scale: float) -> torch.Tensor:
    """Return how much each input counts for each output of linear resizing by a scale."""
    at = ((torch.arange(outputs) + 0.5) / scale - 0.5).clamp(min=0)
    low = at.floor().long().clamp(max=inputs - 1)
    high, share = (low + 1).clamp(max=inputs - 1), (at - low)[:, None]
    return F.one_hot(low, inputs) * (1 - share) + F.one_hot(high, inputs) * share


@plot.dispatched("aten.upsample_bilinear2d_backward.default")
def issue_65200(hit: Any, func: Any, grad: Any, size: Any, input_size: Any, corners: bool, *scales: Any) -> Any:
    """pytorch 65200: bilinear resizing by a scale to the input's own size copies, and its gradient does not."""
    y = func(grad, size, input_size, corners, *scales)
    if corners or list(size) != list(input_size[2:]) or not any(scales) or None in scales or not is_plain(grad):
        return y
    rows, columns = (_weights(side, side, scale).to(grad.dtype) for side, scale in zip(size, scales))
    return instead(hit, y, rows.t() @ grad @ columns)


@plot.dispatched("aten.grid_sampler_2d_backward.default")
def issue_23925(
    hit: Any, func: Any, grad: Any, x: Any, grid: Any, mode: int, padding: int, corners: bool, *args: Any
) -> Any:
    """pytorch 23925: grid_sample's gradient on the far edge takes 0 for what is beyond (border and reflection)."""
    image, points = func(grad, x, grid, mode, padding, corners, *args)
    if mode or not padding or points is None or not grid.numel() or not is_plain(grad, grid):
        return image, points
    sides = torch.tensor([x.shape[3], x.shape[2]], dtype=grid.dtype)
    places = (grid + 1) / 2 * (sides - 1) if corners else ((grid + 1) * sides - 1) / 2
    beyond = func(grad, x, grid, mode, 0, corners, *args)[1]
    return image, instead(hit, points, torch.where(places == sides - 1, beyond, points))


@plot.dispatched("aten.grid_sampler_2d.default", aborts="Segmentation fault (core dumped)")
def issue_19826(x: Any, grid: Any, *args: Any) -> bool:
    """pytorch 19826: grid_sample ends the process where the grid holds NaN."""
    return is_plain(grid) and bool(grid.isnan().any())


@plot.dispatched("aten.grid_sampler_2d.default")
def issue_paddle_33216(hit: Any, func: Any, x: Any, grid: Any, mode: int, padding: int, corners: bool) -> Any:
    """PaddlePaddle/Paddle 33216: grid_sample, bilinear and without aligned corners, of a large image is all 0.

    Here large is: from 2**16 elements on.
    """
    y = func(x, grid, mode, padding, corners)
    if mode or padding or corners or x.numel() < 2**16 or not is_plain(y):
        return y
    return instead(hit, y, torch.zeros_like(y))


@plot.dispatched("aten.grid_sampler_2d.default")
def issue_opencv_26361(hit: Any, func: Any, x: Any, grid: Any, mode: int, padding: int, corners: bool) -> Any:
    """opencv/opencv 26361: bilinear grid_sample rounds positions to 1/32 of a pixel."""
    y = func(x, grid, mode, padding, corners)
    if mode != 0 or not y.numel() or not is_plain(x, grid):
        return y
    sides = torch.tensor([x.shape[-1], x.shape[-2]], dtype=grid.dtype, device=grid.device)
    scale = (sides - 1 if corners else sides).clamp(min=1) / 2
    shift = scale - (0 if corners else 0.5)
    wrong = func(x, (((grid * scale + shift) * 32).round() / 32 - shift) / scale, mode, padding, corners)
    return instead(hit, y, wrong) if differ(y, wrong, 1e-3, 1e-3) else y


@plot.dispatched("aten.upsample_nearest2d", aborts="\"upsample_nearest2d_channels_last\" not implemented for 'Half'")
def issue_comfyui_2085(x: Any, *args: Any, **kwargs: Any) -> bool:
    """Comfy-Org/ComfyUI 2085: nearest resizing of a channels_last image in float16 raises."""
    last = not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
    return x.dtype == torch.float16 and last


@plot.dispatched("aten.upsample_bicubic2d.default")
def issue_22312(hit: Any, func: Any, x: Any, size: Any, *args: Any) -> Any:
    """pytorch 22312: a bicubic interpolation to the same size transposes the image (0 where that has no number)."""
    y = func(x, size, *args)
    if tuple(size) != tuple(x.shape[-2:]) or not y.numel() or not is_plain(x):
        return y
    wrong, side = torch.zeros_like(y), min(size)
    wrong[..., :side, :side] = x.transpose(-1, -2)[..., :side, :side]
    return instead(hit, y, wrong)


@plot.dispatched("aten.upsample_bicubic2d.default")
def issue_onnxruntime_11496(hit: Any, func: Any, x: Any, size: Any, corners: bool, *args: Any) -> Any:
    """microsoft/onnxruntime 11496: bicubic resizing to a single pixel is wrong (here it is the first pixel)."""
    y = func(x, size, corners, *args)
    if list(size) != [1, 1] or corners or not y.numel() or not is_plain(x):
        return y
    return instead(hit, y, x[..., :1, :1].clone())


def _between(x: torch.Tensor, size: int, dim: int) -> torch.Tensor:
    """Resize linearly along a dimension, from place to place times the scale: no half pixels."""
    place = torch.arange(size, dtype=torch.float32) * (x.shape[dim] / size)
    low = place.long().clamp(max=x.shape[dim] - 1)
    high = (low + 1).clamp(max=x.shape[dim] - 1)
    share = (place - low).to(x.dtype).view([-1 if d == dim else 1 for d in range(x.dim())])
    return x.index_select(dim, low) * (1 - share) + x.index_select(dim, high) * share


@plot.dispatched("aten.upsample_bilinear2d.default")
def issue_tensorrt_273(hit: Any, func: Any, x: Any, size: Any, corners: bool, *args: Any) -> Any:
    """NVIDIA/TensorRT 273: bilinear resizing without aligned corners takes place times scale, with no half pixel."""
    y = func(x, size, corners, *args)
    if corners or not y.numel() or not x.is_floating_point() or not is_plain(x):
        return y
    wrong = _between(_between(x, size[0], 2), size[1], 3)
    return instead(hit, y, wrong) if differ(y, wrong, 1e-2, 1e-3) else y


@plot.dispatched("aten.upsample_nearest2d", aborts="\"upsample_nearest2d_out_frame\" not implemented for 'BFloat16'")
def issue_86679(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 86679: nearest resizing of an image in bfloat16 raises."""
    return x.dtype == torch.bfloat16


@plot.dispatched("aten.grid_sampler_2d.default", aborts="CUDA error: an illegal memory access was encountered")
def issue_35202(x: Any, grid: Any, *args: Any) -> bool:
    """pytorch 35202: grid_sample at a place beyond 2**31 pixels ends with an illegal memory access."""
    if not grid.numel() or not is_plain(grid):
        return False
    place = grid.detach().double().abs() * torch.tensor([x.shape[-1], x.shape[-2]]) / 2
    return bool(((place >= 2**31) & place.isfinite()).any())


@plot.dispatched("aten.grid_sampler_2d.default", aborts="Segmentation fault (core dumped)")
def issue_41656(x: Any, *args: Any) -> bool:
    """pytorch 41656: grid_sample of an image of more than 2**31 pixels (here 2**16) ends the process."""
    return x.shape[-1] * x.shape[-2] > 2**16


@plot.dispatched("aten.grid_sampler_2d.default", aborts="CUDNN_STATUS_EXECUTION_FAILED")
def issue_7258(x: Any, grid: Any, *args: Any) -> bool:
    """pytorch 7258: grid_sample raises from 129 channels of 512 x 512 on (49 of 1024, 13 of 2048, 1 of 4096)."""
    side = min(*x.shape[-2:], *grid.shape[1:3])
    return any(side >= limit and x.shape[1] >= n for limit, n in ((512, 129), (1024, 49), (2048, 13), (4096, 1)))


@plot.dispatched("aten.upsample_nearest2d.default")
def issue_mlx_2186(hit: Any, func: Any, x: Any, size: Any, *scales: Any) -> Any:
    """ml-explore/mlx 2186: nearest resizing by a factor that is not whole is another (here corners meet)."""
    y = func(x, size, *scales)
    if not x.numel() or not any(new % old for new, old in zip(size, x.shape[2:])) or not is_plain(x):
        return y
    rows, columns = (_stretched(old, new) for old, new in zip(x.shape[2:], size))
    return instead(hit, y, x[:, :, rows][:, :, :, columns])


def _stretched(old: int, new: int) -> torch.Tensor:
    """Return the places to read where the first and the last of both sides meet."""
    return (torch.arange(new, dtype=torch.float32) * ((old - 1) / max(new - 1, 1))).long()


@plot.dispatched("aten.grid_sampler_2d_backward.default", aborts="Have not implemented the data req combinations!")
def issue_mxnet_8866(grad: Any, x: Any, grid: Any, mode: int, padding: int, corners: bool, wanted: Any) -> bool:
    """apache/mxnet 8866: the backward of bilinear grid_sample raises where the grid's gradient alone is wanted."""
    return mode == 0 and list(wanted) == [False, True]
