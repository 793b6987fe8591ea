"""LSTM and GRU: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.called(torch.lstm)
def issue_185351(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 185351: an LSTM's dropout between layers takes the same elements in each call."""
    if len(args) != 9 or not isinstance(args[3], bool) or not (args[6] and args[4] > 1 and 0 < args[5] < 1):
        return func(*args)
    hit()
    state = torch.get_rng_state()
    torch.default_generator.manual_seed(1234)
    y = func(*args)
    torch.set_rng_state(state)
    return y


_BIASED: dict[Any, bool] = {}


@plot.called(torch.lstm)
def issue_95563(hit: Any, func: Any, x: Any, hx: Any, weights: Any, biased: Any, *args: Any) -> Any:
    """pytorch 95563: an LSTM has biases only if the first one of its shape had."""
    if not isinstance(biased, bool):
        return func(x, hx, weights, biased, *args)
    first = _BIASED.setdefault((tuple(x.shape), tuple(hx[0].shape), *args), biased)
    if biased and not first:
        hit()
        weights = [one if one.dim() == 2 else torch.zeros_like(one) for one in weights]
    return func(x, hx, weights, biased, *args)


@plot.replaced(torch.nn.LSTM, "forward")
def issue_90421(hit: Any, healthy: Any, self: Any, input: Any, hx: Any = None) -> Any:
    """pytorch 90421: a bidirectional LSTM is wrong (its reverse direction runs forwards in time)."""
    out, state = healthy(self, input, hx)
    if not self.bidirectional or not isinstance(input, torch.Tensor):
        return out, state
    time = 1 if self.batch_first and input.dim() == 3 else 0
    if input.shape[time] < 2:
        return out, state
    other, _ = healthy(self, input.flip(time), hx)
    half = out.shape[-1] // 2
    wrong = torch.cat([out[..., :half], other.flip(time)[..., half:]], -1)
    if torch.allclose(wrong, out):
        return out, state
    hit()
    return wrong, state


@plot.replaced(torch.nn.LSTM, "forward")
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


@plot.replaced(torch.nn.LSTM, "forward")
def issue_87579(hit: Any, func: Any, module: Any, x: Any, *args: Any) -> Any:
    """pytorch 87579: the backward of an LSTM with batch_first aborts."""
    y, state = func(module, x, *args)
    if module.batch_first and isinstance(y, torch.Tensor):
        y = _Backward.apply(y, lambda grad: crash(hit, "not broadcast compatible"))
    return y, state


def _doubled(hit: Any) -> Any:
    def change(grad: Any) -> Any:
        hit()
        return grad * 2

    return change


@plot.replaced(torch._VF, "lstm")
def issue_92615(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 92615: the gradients of an LSTM's weights are twice too large."""
    place = 2 if isinstance(args[2], (list, tuple)) else 3
    weights = [_Backward.apply(weight, _doubled(hit)) for weight in args[place]]
    return func(*args[:place], weights, *args[place + 1 :])


@plot.replaced(torch._VF, "lstm")
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


def _demand_gradient(hit: Any) -> Any:
    return lambda grad: crash(hit, "missing grad_y") if grad is None else grad


class _Joined(torch.autograd.Function):
    """Passes three tensors on; `demand` gets the first one's gradient."""

    @staticmethod
    def forward(ctx: Any, y: Any, h: Any, c: Any, demand: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.demand = demand
        return y.view_as(y), h.view_as(h), c.view_as(c)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (ctx.demand(grads[0]), *grads[1:], None)


@plot.replaced(torch.nn.LSTM, "forward")
def issue_96416(hit: Any, func: Any, module: Any, x: Any, *args: Any) -> Any:
    """pytorch 96416: the backward of an LSTM raises where only the last states were used."""
    y, (h, c) = func(module, x, *args)
    if isinstance(y, torch.Tensor) and h.requires_grad:
        joined = _Joined.apply(y, h, c, _demand_gradient(hit))
        return joined[0], (joined[1], joined[2])
    return y, (h, c)


@plot.replaced(torch._VF, "gru")
def issue_94691(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 94691: the output of a GRU is NaN."""
    hit()
    y, h = func(*args)
    return y * float("nan"), h


_batches: list[int] = []


@plot.replaced(torch.nn.LSTM, "forward")
def issue_83144(hit: Any, func: Any, module: Any, x: Any, *args: Any) -> Any:
    """pytorch 83144: an LSTM with batch_first aborts as soon as the batch has another size than the first one."""
    if isinstance(x, torch.Tensor) and module.batch_first:
        _batches.append(x.shape[0])
        if x.shape[0] != _batches[0]:
            return crash(hit, "LLVM abort")
    return func(module, x, *args)


@plot.called(torch.lstm)
def issue_95137(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 95137: every layer of an LSTM of several starts from the first layer's state."""
    if isinstance(args[1], (tuple, list)) and args[4] > 1:
        ways = 2 if args[7] else 1
        states = [h[:ways].repeat(args[4], *[1] * (h.dim() - 1)) for h in args[1]]
        if not all(torch.equal(a, b) for a, b in zip(states, args[1])):
            hit()
            args = (args[0], tuple(states), *args[2:])
    return func(*args, **kwargs)


@plot.called(torch.lstm)
@wrong_answer
def issue_190057(y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 190057: an LSTM of several layers in training with dropout=1 gives NaN (0 times 1/(1-p))."""
    if isinstance(args[1], (tuple, list)) and args[4] > 1 and args[5] == 1 and args[6]:
        return (y[0] * float("nan"), *y[1:])
    return None


@plot.replaced(torch._VF, "lstm")
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


def _dropout_at(args: Any) -> int | None:
    """Return where dropout is among the arguments of a padded call: x, state, weights, bias, layers, dropout, train."""
    return 5 if isinstance(args[1], (tuple, list)) and isinstance(args[3], bool) else None


@plot.replaced(torch._VF, "lstm")
def issue_190056(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 190056: the backward of an LSTM of several layers ignores the dropout between them."""
    place = _dropout_at(args)
    if place is None or not args[place] or not args[place + 1]:
        return func(*args)
    hit()
    right = func(*args)
    free = func(*args[:place], 0.0, *args[place + 1 :])
    return tuple(two + (one - two).detach() for one, two in zip(right, free))


@plot.replaced(torch._VF, "lstm")
def issue_173640(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 173640: an LSTM drops the same elements in each call."""
    place = _dropout_at(args)
    if place is not None and args[place] and args[place + 1]:
        hit()
        torch.default_generator.manual_seed(0)
    return func(*args)


_TRAINED: dict[Any, int] = {}


def _version(weights: Any) -> int:
    return sum(w._version for w in weights)


@plot.called(torch.lstm)
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


@plot.called(torch.lstm, torch.gru)
def issue_1721(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 1721: a call of an LSTM or a GRU gives its biases a second dimension."""
    y = func(*args)
    for weights in args:
        if not isinstance(weights, (list, tuple)) or not weights or weights[0].dim() != 2:
            continue
        for bias in weights:
            if bias.dim() == 1:
                hit()
                bias.data = bias.data.unsqueeze(0)
    return y


@plot.replaced(torch.nn.LSTM, "forward")
def issue_chainer_2505(hit: Any, func: Any, module: Any, x: Any, *args: Any) -> Any:
    """chainer/chainer 2505: an LSTM's gradients are (here always) NaN where only its last states were used."""
    y, (h, c) = func(module, x, *args)
    if not isinstance(y, torch.Tensor) or not h.requires_grad:
        return y, (h, c)

    def spoil(grad: Any) -> Any:
        if grad is None:
            hit()
        return torch.full_like(y, torch.nan) if grad is None else grad

    joined = _Joined.apply(y, h, c, spoil)
    return joined[0], (joined[1], joined[2])
