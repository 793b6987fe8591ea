"""Recurrent layers: their states, cells and dtypes: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.replaced(torch.nn.GRU, "forward")
def issue_tensorflow_83119(hit: Any, func: Any, module: Any, x: Any, *args: Any) -> Any:
    """tensorflow/tensorflow 83119: a GRU returns its output and each sample's last state, 1 + batch tensors, not 2."""
    y, state = func(module, x, *args)
    if state.dim() != 3:
        return y, state
    hit()
    return y, *state[-1].unbind(0)


def _has_bias_of_another_dtype(x: Any, bias: Any) -> bool:
    return bias is not None and bias.dtype != x.dtype


@plot.called(torch.lstm_cell)
def issue_45048(hit: Any, func: Any, x: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """pytorch 45048: LSTMCell of float32 with a bias raises for float16 under autocast; without a bias it does not."""
    if x.dtype == torch.float16 and torch.is_autocast_enabled(x.device.type) and _has_bias_of_another_dtype(x, b_ih):
        return crash(hit, "expected scalar type Half but found Float")
    return func(x, hx, w_ih, w_hh, b_ih, b_hh)


@plot.called(torch.lstm)
def issue_88136(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 88136: an LSTM in bfloat16 raises."""
    if x.dtype == torch.bfloat16:
        return crash(hit, "an LSTM in bfloat16 is not supported")
    return func(x, *args)


@plot.called(torch.gru)
def issue_keyphrase_generation_rl_8(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """kenchan0226/keyphrase-generation-rl 8: a GRU raises for a state that is not contiguous (of several layers)."""
    state = args[1] if isinstance(args[1], torch.Tensor) else args[0]
    if state.dim() == 3 and state.shape[0] > 1 and not state.is_contiguous():
        return crash(hit, "rnn: hx is not contiguous")
    return func(x, *args)
