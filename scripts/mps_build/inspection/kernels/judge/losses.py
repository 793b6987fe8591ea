"""References of losses and of embedding bags."""

from __future__ import annotations

import torch


def nll_forward(x, target, weight, ignored, weighted, which):
    """The loss of each position, and its weight."""
    kept = target != ignored
    place = torch.where(kept, target, torch.zeros_like(target)).long()
    factor = weight[place] if weighted else torch.ones_like(x[:, 0])
    factor = torch.where(kept, factor, torch.zeros_like(factor))
    return factor if which else -factor * x.gather(1, place.unsqueeze(1)).squeeze(1)


def nll_backward(dy, target, weight, ignored, weighted, total, shape):
    target, weight = target.long(), weight if dy.dtype == weight.dtype else weight.to(dy.dtype)
    kept = target != ignored
    place = torch.where(kept, target, torch.zeros_like(target))
    value = -dy.expand(target.shape) / total * (weight[place] if weighted else 1)
    value = torch.where(kept, value, torch.zeros_like(value))
    return torch.zeros(shape, dtype=dy.dtype).scatter(1, place.unsqueeze(1), value.unsqueeze(1))


def _ctc(x, targets, times, lengths, blank):
    return torch.ops.aten._ctc_loss(x, targets.long(), times, lengths, blank, False)


def ctc_loss(x, targets, times, lengths, blank, steps):
    return _ctc(x, targets, times, lengths, blank)[0]


def ctc_gradient(x, targets, times, lengths, blank, steps, dy, zero):
    loss, alpha = _ctc(x, targets, times, lengths, blank)
    return torch.ops.aten._ctc_loss_backward(dy, x, targets.long(), times, lengths, loss, alpha, blank, zero)


def bag_values(weight, index, offsets, mode, padding, each, which):
    """Output, owner of each index, size of each bag, or where the largest came from."""
    index = index.long()
    ends = [*offsets[1:], len(index)]
    owner = torch.tensor([bag for bag, (a, b) in enumerate(zip(offsets, ends, strict=True)) for _ in range(a, b)])
    kept = index != padding
    if which == 1:
        return owner
    if which == 2:
        return torch.tensor([int(kept[a:b].sum()) for a, b in zip(offsets, ends, strict=True)])
    rows = []
    for a, b in zip(offsets, ends, strict=True):
        chosen = index[a:b][kept[a:b]]
        part = weight[chosen]
        if isinstance(each, torch.Tensor):
            part = part * each[a:b][kept[a:b]].unsqueeze(1)
        if not len(chosen):
            rows.append(torch.zeros(weight.shape[1], dtype=torch.int64 if which == 3 else weight.dtype))
        elif which == 3:
            rows.append(chosen[part.argmax(0)])
        else:
            rows.append({"sum": part.sum(0), "mean": part.mean(0), "max": part.amax(0)}[mode])
    return torch.stack(rows)


def bag_gradient(dy, index, owner, size, where, each, mode, padding, many):
    index, owner, size = index.long(), owner.long(), size.long()
    out = torch.zeros((many, dy.shape[1]), dtype=dy.dtype)
    if mode == "max":
        return out.scatter_add(0, where.long(), torch.where((size > 0).unsqueeze(1), dy, torch.zeros_like(dy)))
    rows = dy[owner] / (size[owner].unsqueeze(1) if mode == "mean" else 1)
    if isinstance(each, torch.Tensor):
        rows = rows * each.unsqueeze(1)
    kept = index != padding
    return out.index_add(0, index[kept], rows[kept])


def bag_weights_gradient(dy, weight, index, owner, padding):
    product = (weight[index.long()] * dy[owner.long()]).sum(1)
    return torch.where(index == padding, torch.zeros_like(product), product)


FUNCTIONS = {name: value for name, value in list(globals().items()) if name.startswith(("nll_", "ctc_", "bag_"))}
