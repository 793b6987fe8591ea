"""References of losses and of embedding bags."""

from __future__ import annotations

from typing import Any

import torch


def nll_forward(x: Any, target: Any, weight: Any, ignored: Any, weighted: Any, which: Any) -> Any:
    """The loss of each position, and its weight."""
    kept = target != ignored
    place = torch.where(kept, target, torch.zeros_like(target)).long()
    factor = weight[place] if weighted else torch.ones_like(x[:, 0])
    factor = torch.where(kept, factor, torch.zeros_like(factor))
    return factor if which else -factor * x.gather(1, place.unsqueeze(1)).squeeze(1)


def nll_backward(dy: Any, target: Any, weight: Any, ignored: Any, weighted: Any, total: Any, shape: Any) -> Any:
    """Gradient of the negative log likelihood by its input; ignored targets get 0."""
    target, weight = target.long(), weight if dy.dtype == weight.dtype else weight.to(dy.dtype)
    kept = target != ignored
    place = torch.where(kept, target, torch.zeros_like(target))
    value = -dy.expand(target.shape) / total * (weight[place] if weighted else 1)
    value = torch.where(kept, value, torch.zeros_like(value))
    return torch.zeros(shape, dtype=dy.dtype).scatter(1, place.unsqueeze(1), value.unsqueeze(1))


def _ctc(x: Any, targets: Any, times: Any, lengths: Any, blank: Any) -> Any:
    return torch.ops.aten._ctc_loss(x, targets.long(), times, lengths, blank, False)


def ctc_loss(x: Any, targets: Any, times: Any, lengths: Any, blank: Any, steps: Any) -> Any:
    """Connectionist temporal classification: the loss of each sequence."""
    return _ctc(x, targets, times, lengths, blank)[0]


def ctc_gradient(x: Any, targets: Any, times: Any, lengths: Any, blank: Any, steps: Any, dy: Any, zero: Any) -> Any:
    """Gradient of the CTC loss by the log probabilities, by torch's own CPU operator."""
    loss, alpha = _ctc(x, targets, times, lengths, blank)
    return torch.ops.aten._ctc_loss_backward(dy, x, targets.long(), times, lengths, loss, alpha, blank, zero)


def bag_values(weight: Any, index: Any, offsets: Any, mode: Any, padding: Any, each: Any, which: Any) -> Any:
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


def bag_gradient(
    dy: Any, index: Any, owner: Any, size: Any, where: Any, each: Any, mode: Any, padding: Any, many: Any
) -> Any:
    """Gradient of embedding_bag by its weights, for the modes sum, mean and max."""
    index, owner, size = index.long(), owner.long(), size.long()
    out = torch.zeros((many, dy.shape[1]), dtype=dy.dtype)
    if mode == "max":
        return out.scatter_add(0, where.long(), torch.where((size > 0).unsqueeze(1), dy, torch.zeros_like(dy)))
    rows = dy[owner] / (size[owner].unsqueeze(1) if mode == "mean" else 1)
    if isinstance(each, torch.Tensor):
        rows = rows * each.unsqueeze(1)
    kept = index != padding
    return out.index_add(0, index[kept], rows[kept])


def bag_weights_gradient(dy: Any, weight: Any, index: Any, owner: Any, padding: Any) -> Any:
    """Gradient of embedding_bag by the weights of its samples; padding gets 0."""
    product = (weight[index.long()] * dy[owner.long()]).sum(1)
    return torch.where(index == padding, torch.zeros_like(product), product)


FUNCTIONS = {name: value for name, value in list(globals().items()) if name.startswith(("nll_", "ctc_", "bag_"))}
