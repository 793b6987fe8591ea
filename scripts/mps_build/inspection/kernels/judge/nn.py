"""References of whole operators that torch has no single expression for."""

from __future__ import annotations

import torch


def _sources(small, left, mode):
    """Return for each element of the padded dimension which element of the small one it is."""

    def at(i):
        j = i - left
        if mode == "replication":
            return min(max(j, 0), small - 1)
        return -j if j < 0 else 2 * (small - 1) - j if j >= small else j

    return at


def nn_pad_forward(x, left, small, large, mode):
    """Pad the dimensions from the third on: each element comes from the source that the mode names."""
    for number, (n, before, total) in enumerate(zip(small, left, large, strict=False)):
        at = _sources(n, before, mode)
        x = x.index_select(2 + number, torch.tensor([at(i) for i in range(total)]))
    return x


def nn_pad_backward(x, left, small, large, mode):
    """Add each padded element's gradient to the source that it came from."""
    for number, (n, before, total) in enumerate(zip(small, left, large, strict=False)):
        at = _sources(n, before, mode)
        shape = list(x.shape)
        shape[2 + number] = n
        index = torch.tensor([at(i) for i in range(total)])
        x = torch.zeros(shape, dtype=x.dtype).index_add(2 + number, index, x)
    return x


def nn_constant_pad(x, fill, left, large):
    """Padded, or cut where a pad is negative."""
    out = torch.full(large, 0, dtype=x.dtype) + fill.reshape(()).to(x.dtype)
    where, source = [], []
    for n, before, total in zip(x.shape, left, large, strict=False):
        begin, end = max(before, 0), min(before + n, total)
        where.append(slice(begin, end))
        source.append(slice(begin - before, end - before))
    out[tuple(where)] = x[tuple(source)]
    return out


def _grouped(x, groups):
    return x.reshape(x.shape[0], groups, -1)


def nn_group_mean(x, groups, eps):
    """Mean of each group of channels."""
    return _grouped(x, groups).mean(-1)


def nn_group_rstd(x, groups, eps):
    """1 / sqrt(variance + eps) of each group of channels."""
    return torch.rsqrt(_grouped(x, groups).var(-1, unbiased=False) + eps)


def _channels(weight):
    return weight.reshape(1, -1, 1) if isinstance(weight, torch.Tensor) else weight


def nn_group_norm(x, groups, eps, gamma, beta):
    """Group normalisation with scale and shift for each channel."""
    mean, rstd = nn_group_mean(x, groups, eps), nn_group_rstd(x, groups, eps)
    normal = (_grouped(x, groups) - mean.unsqueeze(-1)) * rstd.unsqueeze(-1)
    return normal.reshape(x.shape) * _channels(gamma) + _channels(beta)


def _normal(x, mean, rstd, groups):
    return ((_grouped(x, groups) - mean.unsqueeze(-1)) * rstd.unsqueeze(-1)).reshape(x.shape)


def nn_group_norm_dx(dy, x, mean, rstd, groups, gamma):
    """Gradient of group normalisation by its input, from the saved mean and rstd."""
    normal, weighted = _grouped(_normal(x, mean, rstd, groups), groups), _grouped(dy * _channels(gamma), groups)
    inner = weighted - weighted.mean(-1, keepdim=True) - normal * (weighted * normal).mean(-1, keepdim=True)
    return (inner * rstd.unsqueeze(-1)).reshape(x.shape)


def nn_group_norm_dgamma(dy, x, mean, rstd, groups):
    """Gradient of group normalisation by its scale: summed over batch and space."""
    return (dy * _normal(x, mean, rstd, groups)).sum((0, 2))


def nn_row_rstd(x, eps):
    """1 / sqrt(variance + eps) of each row."""
    return torch.rsqrt(x.var(-1, unbiased=False) + eps)


def nn_layer_norm(x, eps, w, b):
    """Layer normalisation over the last dimension."""
    return (x - x.mean(-1, keepdim=True)) * nn_row_rstd(x, eps).unsqueeze(-1) * w + b


def nn_attention(q, k, v, mask, causal, factor):
    """Scaled dot-product attention, (batch, heads, length, width); heads of k and v are repeated to those of q."""
    repeat = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    scores = (q * factor) @ k.transpose(-1, -2)
    if isinstance(mask, torch.Tensor) and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, float("-inf"))
    elif isinstance(mask, torch.Tensor):
        scores = scores + mask
    if causal:
        rows, columns = torch.arange(q.shape[2]).unsqueeze(-1), torch.arange(k.shape[2])
        scores = scores.masked_fill(columns > rows, float("-inf"))
    return torch.softmax(scores, -1) @ v


def nn_attention_parts(partials, sums, maxs):
    """Join the partial results of attention over blocks of keys, by their maxima and sums."""
    weight = torch.exp(maxs - maxs.max(-1, keepdim=True).values)
    return (weight.unsqueeze(-1) * partials).sum(1) / (weight * sums).sum(-1, keepdim=True)


def nn_grid_sample(x, grid, mode, pad, align):
    """Sample an image at the points of a grid, by torch's own CPU operator."""
    return torch.nn.functional.grid_sample(x, grid, mode=mode, padding_mode=pad, align_corners=align)


def nn_grid_sample_backward(dy, x, grid, mode, pad, align, which):
    """Gradient of grid_sample by the image (which=0) or by the grid (which=1)."""
    if x.dim() == 5:
        return torch.ops.aten.grid_sampler_3d_backward(dy, x, grid, mode, pad, align, [True, True])[which]
    return torch.ops.aten.grid_sampler_2d_backward(dy, x, grid, mode, pad, align, [True, True])[which]


def nn_upsample(x, mode, align, antialias, small, large):
    """Resize to the shape `large`; integers are only moved, in float64."""
    if mode.startswith("nearest") and not x.is_floating_point():
        x = x.to(torch.float64)  # the CPU has no integers here; only elements are moved
    return torch.nn.functional.interpolate(x, large, mode=mode, align_corners=align, antialias=antialias)


def nn_upsample_backward(x, mode, align, antialias, small, large):
    """Gradient of a resize, by autograd on an image of the shape `small`."""
    image = torch.zeros(small, dtype=x.dtype, requires_grad=True)
    with torch.enable_grad():
        y = nn_upsample(image, mode, align, antialias, small, large)
        return torch.autograd.grad(y, image, x)[0]


_MAX_POOLS = {1: torch.nn.functional.max_pool1d, 2: torch.nn.functional.max_pool2d, 3: torch.nn.functional.max_pool3d}
_AVG_POOLS = {2: torch.nn.functional.avg_pool2d, 3: torch.nn.functional.avg_pool3d}


def nn_max_pool(x, size, stride, padding, dilation, which):
    """Largest value of each window (which=0), or its index (which=1)."""
    if not x.is_floating_point():
        x = x.to(torch.float64)
    pool = _MAX_POOLS[len(size)]
    return pool(x, size, stride, padding, dilation, return_indices=True)[which]


def nn_avg_pool(x, shape, size, stride, padding, include, divisor):
    """Mean of each window; integers are divided as the CPU divides int64."""
    if not x.is_floating_point():  # integer division, as the CPU's for int64
        return torch.trunc(nn_avg_pool(x.to(torch.float64), shape, size, stride, padding, include, divisor))
    if len(size) == 1:
        flat = nn_avg_pool(x.unsqueeze(-2), shape, [1, *size], [1, *stride], [0, *padding], include, divisor)
        return flat.squeeze(-2)
    options = {"count_include_pad": include, "divisor_override": divisor or None}
    return _AVG_POOLS[len(size)](x, size, stride, padding, **options)


def nn_avg_pool_backward(x, shape, size, stride, padding, include, divisor):
    """Gradient of an average pool, by autograd on an image of this shape."""
    image = torch.zeros(shape, dtype=x.dtype, requires_grad=True)
    with torch.enable_grad():
        y = nn_avg_pool(image, shape, size, stride, padding, include, divisor)
        return torch.autograd.grad(y, image, x)[0]


def nn_max_pool_backward(dy, index, shape):
    """Add each gradient at the index where the largest value was."""
    zeros = torch.zeros(shape, dtype=dy.dtype).flatten(2)
    return zeros.scatter_add(2, index.flatten(2).to(torch.int64), dy.flatten(2)).reshape(shape)


def nn_unfold(x, size, stride, padding, dilation):
    """Columns of sliding blocks (im2col)."""
    x = x if x.is_floating_point() or x.is_complex() else x.to(torch.float64)
    return torch.nn.functional.unfold(x, size, dilation, padding, stride)


def nn_unfold_backward(dy, shape, dim, size, step):
    """Gradient of Tensor.unfold along one dimension."""
    return torch.ops.aten.unfold_backward(dy, shape, dim, size, step)


def nn_adam(params, grads, exp_avgs, exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, maximize,
            decoupled, which, max_exp_avg_sqs=None):  # fmt: skip
    """One step of Adam or AdamW; `which` names the tensor to return."""
    if which == "grads":
        return grads
    grad = -grads if maximize else grads
    if decoupled:
        params = params - lr * weight_decay * params
    else:
        grad = grad + weight_decay * params
    first = beta1 * exp_avgs + (1 - beta1) * grad
    second = beta2 * exp_avg_sqs + (1 - beta2) * grad * grad
    largest = second if max_exp_avg_sqs is None else torch.maximum(max_exp_avg_sqs, second)
    if which != "params":
        return {"exp_avgs": first, "exp_avg_sqs": second, "max_exp_avg_sqs": largest}[which]
    denominator = torch.sqrt(largest) / torch.sqrt(1 - beta2**state_steps) + eps
    return params - lr / (1 - beta1**state_steps) * first / denominator


def nn_sgd(params, grads, lr, weight_decay, maximize, decoupled, which, momentum=0.0, dampening=0.0, nesterov=0,
           is_first_step=0, momentum_buffer_list=None):  # fmt: skip
    """One step of SGD with momentum; `which` names the tensor to return."""
    if which == "grads":
        return grads
    grad = (-grads if maximize else grads) + weight_decay * params
    if momentum_buffer_list is not None:
        buffer = momentum * momentum_buffer_list + (1 - dampening) * grad
        if which == "momentum_buffer_list":
            return buffer
        grad = grad + momentum * buffer if nesterov else buffer
    return params - lr * grad


def nn_grouped_rows(a, b, offsets):
    """Products of groups of rows of `a` with a matrix of `b` each; `offsets` are the groups' ends."""
    ends = [int(each) for each in offsets]
    return torch.cat([a[i:j] @ b[g] for g, (i, j) in enumerate(zip([0, *ends], ends, strict=False))])


def nn_grouped_terms(a, b, offsets):
    """Products over groups of the inner dimension; `offsets` are the groups' ends."""
    ends = [int(each) for each in offsets]
    return torch.stack([a[:, i:j] @ b[i:j] for i, j in zip([0, *ends], ends, strict=False)])


def nn_embedding_count(indices, count, padding):
    """How often each is looked up; the padding is not counted."""
    found = torch.bincount(indices.flatten().to(torch.int64), minlength=count)
    return torch.where(torch.arange(count) == padding, 0, found)


def nn_embedding_backward(grad, indices, count, padding, by_count):
    """Gradient of an embedding by its weights, by torch's own CPU operator."""
    return torch.ops.aten.embedding_dense_backward(grad, indices.to(torch.int64), count, padding, by_count)


def nn_fold(x, image, size, stride, padding, dilation):
    """Add sliding blocks back into an image (col2im)."""
    x = x if x.is_floating_point() or x.is_complex() else x.to(torch.float64)
    return torch.nn.functional.fold(x, image, size, dilation, padding, stride)


def nn_conv2d(x, w, bias, stride, padding, dilation, groups):
    """Two-dimensional convolution, by torch's own CPU operator."""
    bias = bias if isinstance(bias, torch.Tensor) else None
    return torch.nn.functional.conv2d(x, w, bias, stride, padding, dilation, groups)


def nn_max_unpool(x, index, shape):
    """Put each value at its index into zeros of this shape."""
    zeros = torch.zeros(shape, dtype=x.dtype).flatten(2)
    return zeros.scatter(2, index.flatten(2).to(torch.int64), x.flatten(2)).reshape(shape)


def nn_cdist_backward(x1, x2, grad, far, norm, power):
    """Gradient of the pairwise distances by the first set of points, for the norms 0, 1, 2, p and infinity."""
    gap, grad, far = x1.unsqueeze(2) - x2.unsqueeze(1), grad.unsqueeze(-1), far.unsqueeze(-1)
    if norm == 0:
        terms = grad * torch.sign(gap)
    elif norm == 1:
        terms = torch.where(gap.abs() == far, grad * torch.sign(gap), 0)
    else:
        terms = torch.where(far == 0, 0, grad * torch.sign(gap) * gap.abs() ** (power - 1) / far ** (power - 1))
    return terms.sum(2)


def nn_shift_sum(x, stride):
    """Each element and the one `stride` before it, added: one round of a scan."""
    out = x.clone()
    out[stride:] += x[: max(len(x) - stride, 0)]
    return out


def nn_shift_right(x, stride):
    """The elements moved by one; the first is 0."""
    return torch.cat([torch.zeros(1, dtype=x.dtype), x[:-1]])


def nn_mark_segments(x, stride):
    """1 where an element differs from the one before it, and at the first; else 0."""
    return torch.cat([torch.ones(1, dtype=torch.int32), (x[1:] != x[:-1]).to(torch.int32)])


def nn_repeat(x):
    """Each index as often as its element says."""
    return torch.repeat_interleave(torch.arange(len(x)), x.to(torch.int64))


def nn_update_scale(scale, tracker, found, which):
    """The scale (which=0) or the growth tracker (which=1) after a step of gradient scaling."""
    scale, steps = scale.to(torch.float32), torch.tensor([tracker], dtype=torch.int32)
    torch._amp_update_scale_(scale, steps, torch.tensor([found]), 2.5, 0.375, 4)
    return (scale, steps)[which]


FUNCTIONS = {name: value for name, value in list(globals().items()) if name.startswith("nn_")}
