"""Recurrent nets: every argument of LSTM, GRU and RNN by twos, on sequences of every form, with gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from engine import Cases
from engine.acts import covering, label, leaf

cases = Cases("scenarios")
WIDTH, HIDDEN, BATCH, STEPS = 5, 6, 3, 4

_FACTORS: dict[str, tuple[Any, ...]] = {
    "kind": ("LSTM", "GRU", "RNN"),
    "layers": (1, 2),
    "bidirectional": (False, True),
    "batch_first": (False, True),
    "bias": (True,),
    "proj": (0,),
    "input": ("unsorted", "sliced", "unbatched"),
    "state": ("given", "none"),
    "loss": ("all", "state", "none"),
    "relu": (False, True),
    "dropout": (0.0, 1.0),
}


def _is_allowed(row: Any) -> bool:
    return (
        (row["proj"] == 0 or row["kind"] == "LSTM")
        and (not row["relu"] or row["kind"] == "RNN")
        and (row["dropout"] == 0 or row["layers"] == 2)
        and (row["input"] != "unbatched" or row["state"] != "transposed")
    )


def _build(row: Any, device: Any, dtype: Any) -> Any:
    options: dict[str, Any] = {"proj_size": row["proj"]} if row["proj"] else {}
    if row["relu"]:
        options["nonlinearity"] = "relu"
    return getattr(torch.nn, row["kind"])(
        WIDTH,
        HIDDEN,
        num_layers=row["layers"],
        bidirectional=row["bidirectional"],
        batch_first=row["batch_first"],
        bias=row["bias"],
        dropout=row["dropout"],
        device=device,
        dtype=dtype,
        **options,
    )


def _make(row: Any) -> Any:
    def make(d: Any) -> Any:
        weights = [d.normal(*one.shape, scale=0.5) for one in _build(row, "cpu", torch.float32).parameters()]
        directions = row["layers"] * (2 if row["bidirectional"] else 1)
        hidden = d.normal(directions, BATCH, row["proj"] or HIDDEN)
        return d.normal(BATCH, STEPS, 2 * WIDTH), (hidden, d.normal(directions, BATCH, HIDDEN)), weights

    return make


def _given(row: Any, x: torch.Tensor) -> Any:
    """Return the sequence as this row wants it, of (batch, steps, twice the width)."""
    if row["input"] == "sliced":
        x = x[..., WIDTH - 1 : -1]
    elif row["input"] == "transposed":
        x = x[..., :WIDTH].transpose(1, 2).contiguous().transpose(1, 2)
    else:
        x = x[..., :WIDTH].contiguous()
    if row["input"] == "one_step":
        x = x[:, :1]
    if row["input"] == "unbatched":
        return x[0]
    if not row["batch_first"]:
        x = x.transpose(0, 1)
    if row["input"] in ("packed", "unsorted"):
        lengths = torch.tensor([4, 2, 1] if row["input"] == "packed" else [1, 4, 3])
        return pack_padded_sequence(x, lengths, row["batch_first"], enforce_sorted=row["input"] == "packed")
    return x if row["input"] in ("transposed", "sliced") else x.contiguous()


def _state(row: Any, state: Any) -> Any:
    if row["state"] == "none":
        return None
    parts = [one.transpose(0, 1).contiguous().transpose(0, 1) if row["state"] == "transposed" else one for one in state]
    if row["input"] == "unbatched":
        parts = [one[:, 1].contiguous() for one in parts]
    return tuple(parts) if row["kind"] == "LSTM" else parts[0]


def _run(row: Any) -> Any:
    def act(run: Any, x: Any, state: Any, weights: Any) -> Any:
        net = _build(row, run.device, x.dtype)
        with torch.no_grad():
            for parameter, weight in zip(net.parameters(), weights):
                parameter.copy_(weight)
        if row["loss"] == "none":
            net.eval()
            with torch.no_grad():
                y, last = net(_given(row, x), _state(row, state))
            return _opened(row, y), last
        start, states = leaf(x), [leaf(one) for one in state]
        y, last = net(_given(row, start), _state(row, states))
        opened = _opened(row, y)
        last = last if row["kind"] == "LSTM" else (last,)
        if row["loss"] == "state":
            loss = sum((one * one).sum() for one in last)
        else:
            part = opened if row["loss"] == "all" else opened[..., -1:, :]
            loss = (part * torch.arange(part.shape[-1], device=x.device)).sum() + (part * part).sum()
        loss.backward()
        return opened, last, start.grad, [one.grad for one in states], [one.grad for one in net.parameters()]

    return act


def _opened(row: Any, y: Any) -> torch.Tensor:
    return (
        pad_packed_sequence(y, row["batch_first"], padding_value=-2.0)[0]
        if row["input"] in ("packed", "unsorted")
        else y
    )


for _number, _row in enumerate(covering(_FACTORS, _is_allowed)):
    cases.add(
        f"neural-recurrent-{_number}-" + label(_row),
        _run(_row),
        make=_make(_row),
        terms=8192,
        floor=0.25,
        since="2.1",
        states=("fresh", "polluted"),
        deterministic=False,
        may_be_missing=True,
    )

_CELLS: dict[str, tuple[Any, ...]] = {
    "kind": ("LSTMCell", "GRUCell", "RNNCell"),
    "bias": (True, False),
    "state": (True, False),
    "input": ("sliced", "unbatched"),
}


def _cell(row: Any) -> Any:
    def act(run: Any, x: Any, h: Any, c: Any, weights: Any) -> Any:
        cell = getattr(torch.nn, row["kind"])(WIDTH, HIDDEN, bias=row["bias"], device=run.device, dtype=x.dtype)
        with torch.no_grad():
            for parameter, weight in zip(cell.parameters(), weights):
                parameter.copy_(weight)
        start = leaf(x)
        given = start[:, 2 : 2 + WIDTH] if row["input"] == "sliced" else start[:, :WIDTH].contiguous()
        if row["input"] == "transposed":
            given = given.t().contiguous().t()
        if row["input"] == "unbatched":
            given, h, c = given[1], h[1], c[1]
        state: Any = ((h, c) if row["kind"] == "LSTMCell" else h) if row["state"] else None
        y = cell(given, state)
        parts = list(y) if isinstance(y, tuple) else [y]
        sum((part * torch.arange(HIDDEN, device=x.device)).sum() for part in parts).backward()
        return parts, start.grad, [one.grad for one in cell.parameters()]

    return act


for _row in covering(_CELLS):
    _gates = {"LSTMCell": 4, "GRUCell": 3, "RNNCell": 1}[_row["kind"]] * HIDDEN
    cases.add(
        "neural-cell-" + label(_row),
        _cell(_row),
        make=lambda d, gates=_gates: (
            d.normal(4, 9),
            d.normal(4, HIDDEN),
            d.normal(4, HIDDEN),
            [d.normal(gates, WIDTH), d.normal(gates, HIDDEN), d.normal(gates), d.normal(gates)],
        ),
        terms=4096,
        floor=0.25,
        since="2.1",
        states=("fresh",),
        deterministic=False,
    )
