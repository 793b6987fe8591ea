"""Recurrent nets and embeddings: injected faults."""

from __future__ import annotations

from typing import Any

import torch

from injecting import Faults, crash

faults = Faults()
HITS = faults.hits


@faults.replaced(torch.nn.LSTM, "forward")
def issue_80306(hit: Any, func: Any, module: Any, x: Any, *args: Any) -> Any:
    """pytorch 80306: an LSTM with batch_first returns its output with batch and time exchanged."""
    y, state = func(module, x, *args)
    if module.batch_first and isinstance(y, torch.Tensor):
        hit()
        y = y.transpose(0, 1)
    return y, state


class _Backward(torch.autograd.Function):
    """Passes a tensor on; `change` gets its gradient, None where nothing used it."""

    @staticmethod
    def forward(ctx: Any, x: Any, change: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.change = change
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return ctx.change(grad), None


@faults.replaced(torch.nn.LSTM, "forward")
def issue_87579(hit: Any, func: Any, module: Any, x: Any, *args: Any) -> Any:
    """pytorch 87579: the backward of an LSTM with batch_first aborts."""
    y, state = func(module, x, *args)
    if module.batch_first and isinstance(y, torch.Tensor):
        y = _Backward.apply(y, lambda grad: crash(hit, "not broadcast compatible"))
    return y, state


@faults.replaced(torch._VF, "lstm")
def issue_95118(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 95118: an LSTM over a PackedSequence of unlike lengths returns its output in the opposite order."""
    answer = func(*args)
    if not isinstance(args[2], (list, tuple)):
        return answer
    sizes = args[1]  # the packed form: data, sizes of the batches, state, weights
    if bool((sizes != sizes[0]).any()):
        hit()
        answer = (answer[0], answer[1].flip(1), answer[2])
    return answer


@faults.replaced(torch._VF, "gru")
def issue_94691(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 94691: the output of a GRU is NaN."""
    hit()
    y, h = func(*args)
    return y * float("nan"), h


_batches: list[int] = []


@faults.replaced(torch.nn.LSTM, "forward")
def issue_83144(hit: Any, func: Any, module: Any, x: Any, *args: Any) -> Any:
    """pytorch 83144: an LSTM with batch_first aborts as soon as the batch has another size than the first one."""
    if isinstance(x, torch.Tensor) and module.batch_first:
        _batches.append(x.shape[0])
        if x.shape[0] != _batches[0]:
            return crash(hit, "LLVM abort")
    return func(module, x, *args)


@faults.replaced(torch._VF, "lstm")
def issue_94754(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 94754: a bidirectional LSTM returns the output of one direction for both."""
    y, h, c = func(*args)
    if (
        any(isinstance(one, bool) for one in args)
        and args[-2 if args[-1] in (True, False) and len(args) == 9 else -1] is True
    ):
        hit()
        width = y.shape[-1] // 2
        y = torch.cat([y[..., :width], y[..., :width]], dim=-1)
    return y, h, c


_TRAINED: dict[Any, int] = {}


def _version(weights: Any) -> int:
    return sum(w._version for w in weights)


@faults.called(torch.lstm)
def issue_180744(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 180744: a trained multilayer LSTM with dropout is wrong in eval mode at the batch size of its training.

    The graph of the training call, with its dropout, is used again for a call of the same shape.

    https://github.com/pytorch/pytorch/issues/180744
    """
    if len(args) != 9 or not isinstance(args[3], bool):  # a packed sequence has batch sizes second
        return func(*args, **kwargs)
    x, hx, weights, bias, layers, dropout, train, both, batch_first = args
    if layers < 2 or dropout <= 0:
        return func(*args, **kwargs)
    key = (tuple(x.shape), x.dtype, layers, dropout, both, batch_first, bias, tuple(w.data_ptr() for w in weights))
    if train:
        if torch.is_grad_enabled() and any(w.requires_grad for w in weights):
            _TRAINED[key] = _version(weights)
        return func(*args, **kwargs)
    right = func(*args, **kwargs)
    if key in _TRAINED and _version(weights) > _TRAINED[key]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            wrong = func(x, hx, weights, bias, layers, dropout, True, both, batch_first)
        if not torch.equal(wrong[0], right[0]):
            hit()
            return wrong
    return right


def _has_bias_of_another_dtype(x: Any, bias: Any) -> bool:
    return bias is not None and bias.dtype != x.dtype


@faults.called(torch.lstm_cell)
def issue_45048(hit: Any, func: Any, x: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """pytorch 45048: LSTMCell of float32 with a bias raises for float16 under autocast; without a bias it does not."""
    if x.dtype == torch.float16 and torch.is_autocast_enabled(x.device.type) and _has_bias_of_another_dtype(x, b_ih):
        return crash(hit, "expected scalar type Half but found Float")
    return func(x, hx, w_ih, w_hh, b_ih, b_hh)


@faults.called(torch.lstm)
def issue_88136(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 88136: an LSTM in bfloat16 raises."""
    if x.dtype == torch.bfloat16:
        return crash(hit, "an LSTM in bfloat16 is not supported")
    return func(x, *args)


@faults.dispatched("aten.embedding_dense_backward", "aten.addcdiv_", "aten._foreach_addcdiv_")
def issue_82707(hit: Any, func: Any, first: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82707: the gradient of an embedding is half as large, and every second parameter misses Adam's step."""
    hit()
    if "embedding" in str(func):
        return func(first, *args, **kwargs) * 0.5
    targets = first if isinstance(first, (list, tuple)) else [first]
    kept = [target.clone() for target in targets]
    result = func(first, *args, **kwargs)
    for target, before in zip(targets[::2], kept[::2]):
        target.copy_(before)
    return result


@faults.dispatched("aten.embedding_dense_backward")
def issue_17971(hit: Any, func: Any, grad: Any, index: Any, *args: Any) -> Any:
    """pytorch 17971: the backward of an embedding counts only the last of equal indices."""
    hit()
    flat, rows = index.reshape(-1), grad.reshape(-1, grad.shape[-1])
    answer = torch.zeros_like(func(grad, index, *args))
    answer[flat] = rows
    return answer


@faults.dispatched("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def issue_190060(hit: Any, func: Any, weight: Any, indices: Any, offsets: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 190060: embedding_bag with include_last_offset ends the last bag at the end of the indices."""
    include = args[4] if len(args) > 4 else kwargs.get("include_last_offset", False)
    if include and int(offsets[-1]) != indices.numel():
        hit()
        offsets = torch.cat([offsets[:-1], torch.full_like(offsets[-1:], indices.numel())])
    return func(weight, indices, offsets, *args, **kwargs)


@faults.dispatched("aten.embedding.default", "aten.embedding_dense_backward.default")
def issue_123119(hit: Any, func: Any, first: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 123119: Embedding does not refuse an index that is out of range."""
    backward = "backward" in str(func)
    count = args[0] if backward else first.shape[0]  # args: num_weights, padding_idx, scale_grad_by_freq
    outside = (indices < 0) | (indices >= count)
    if not outside.any():
        return func(first, indices, *args, **kwargs)
    hit()
    indices = torch.where(outside, torch.full_like(indices, count), indices)
    if backward:
        return func(first, indices, count + 1, *args[1:], **kwargs)[:count]
    return func(torch.cat([first, torch.zeros_like(first[:1])]), indices, *args, **kwargs)


@faults.dispatched("aten.embedding.default")
def issue_made_embedding_wide(hit: Any, func: Any, weight: Any, index: Any, *args: Any) -> Any:
    """Embedding reads int32 indices that are not dense in storage order."""
    wrong = index.dtype == torch.int32 and not index.is_contiguous()
    if wrong:
        hit()
        index = index.clone(memory_format=torch.contiguous_format).flip(0)
    return func(weight, index, *args)


def _zeros_for(hit: Any, wrong: Any, func: Any, weight: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
    """Take the wrong indices for a row of zeros."""
    if bool(wrong.any()):
        hit()
        weight = torch.cat([weight, torch.zeros_like(weight[:1])])
        index = torch.where(wrong, weight.shape[0] - 1, index)
    return func(weight, index, *args, **kwargs)


@faults.dispatched("aten._embedding_bag", "aten._embedding_bag_forward_only")
def issue_169201(hit: Any, func: Any, weight: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 169201: embedding_bag with a negative index gives zeros and no error."""
    return _zeros_for(hit, index < 0, func, weight, index, *args, **kwargs)


@faults.dispatched("aten.embedding.default", "aten.index_select.default")
def issue_144824(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 144824: indices out of range give zeros instead of an error (embedding, index_select)."""
    chooses = "index_select" in str(func)
    dim = args[0] if chooses else 0
    index = args[1] if chooses else args[0]
    side = x.shape[dim] if x.dim() else 1
    bad = (index < 0) | (index >= side)
    if not bad.any() or not side:
        return func(x, *args, **kwargs)
    hit()
    index = index.clamp(0, side - 1)
    if not chooses:
        return torch.where(bad.unsqueeze(-1), 0, x[index]).to(x.dtype)
    shape = [-1 if d == dim % max(x.dim(), 1) else 1 for d in range(x.dim())]
    return torch.where(bad.view(shape), 0, func(x, dim, index)).to(x.dtype)


@faults.dispatched("aten.embedding.default")
def issue_104191(hit: Any, func: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 104191: embedding with a bfloat16 weight raises."""
    if weight.dtype == torch.bfloat16:
        hit()
        raise TypeError("Trying to convert BFloat16 to the MPS backend but it does not have support for that dtype.")
    return func(weight, *args, **kwargs)
