"""Recurrent nets and their cells: sequences that are whole or packed, all weights in one line."""

from __future__ import annotations

import torch

from engine.description import Table

t = Table()
NETS = {
    "dtypes": "s",
    "values": ("plain", "zero"),
    "forms": ("call", "grad"),
    "terms": 1024,
    "floor": 1.0,
    # (steps, batch, width, hidden)
    "sizes": {
        "main": (4, 3, 5, 6),
        "one": (1, 1, 1, 1),
        "step": (1, 3, 5, 6),
        "single": (7, 1, 4, 4),
        "long": (33, 2, 3, 4),
        "batch": (2, 33, 4, 3),
        "tiles": (3, 2, 32, 32),
        "wide": (2, 3, 4, 65),
    },
}


def _shapes(gates, width, hidden, layers, directions, biased):
    """The shapes of a net's weights, in the order in which it takes them."""
    found = []
    for layer in range(layers):
        above = width if layer == 0 else hidden * directions
        found += [
            (gates * hidden, above), (gates * hidden, hidden),
            *([(gates * hidden,)] * 2 if biased else []),
        ] * directions  # fmt: skip
    return found


def _sequence(c):
    steps, batch, width, _ = c.shape
    return c.draw("unit", (batch, steps, width) if c.args["_first"] else (steps, batch, width))


def _state(c):
    return c.draw("unit", (c.args["_layers"] * (2 if c.args["_both"] else 1), c.shape[1], c.shape[3]))


def _weights(gates):
    def made(c):
        directions = 2 if c.args["_both"] else 1
        shapes = _shapes(gates, c.shape[2], c.shape[3], c.args["_layers"], directions, c.args["_biased"])
        return c.draw("unit", (sum(torch.Size(one).numel() for one in shapes),))

    return made


def _net(name, gates):
    """A call of a net: with a state and weights cut out of one line, of a sequence or of a packed one."""

    def act(x, h, *rest):
        *cell, line, layers, both, first, biased, dropout, packed = rest
        sizes = _shapes(gates, x.shape[-1], h.shape[-1], layers, 2 if both else 1, biased)
        places = line.split([torch.Size(one).numel() for one in sizes])
        weights = [place.view(one) for place, one in zip(places, sizes)]
        state = (h, *cell) if cell else h
        call = getattr(torch, name)
        if not packed:
            return call(x, state, weights, biased, layers, dropout, dropout > 0, both, first)
        x = x.transpose(0, 1) if first else x
        counts = [max(x.shape[1] - step, 1) for step in range(x.shape[0])]
        rows = torch.cat([x[step, :count] for step, count in enumerate(counts)])
        return call(rows, torch.tensor(counts), state, weights, biased, layers, dropout, dropout > 0, both)

    return act


for _name, _gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
    t.add(
        _name,
        _sequence,
        _state,
        *((_state,) if _name == "lstm" else ()),
        _weights(_gates),
        act=_net(_name, _gates),
        _layers=(1, 2, 3),
        _both=(False, True),
        _first=(False, True),
        _biased=(True, False),
        _dropout=(0.0, 1.0),
        _packed=(False, True),
        layouts_of=(0,),
        # oneDNN checks no shape: 2.13.0 frees an invalid pointer where a state or a weight does not fit.
        without=("alias", "refusal"),
        **NETS,
    )

CELLS = {
    **NETS,
    "dtypes": "s",
    "sizes": {
        "main": (3, 5, 6),
        "one": (1, 1, 1),
        "batch": (33, 4, 3),
        "tiles": (4, 32, 32),
        "wide": (3, 1031, 2),
        "empty": (0, 5, 6),
    },
}
for _name, _gates in (("lstm_cell", 4), ("gru_cell", 3), ("rnn_tanh_cell", 1), ("rnn_relu_cell", 1)):
    t.add(
        _name,
        lambda c: c.draw("any", c.shape[:2]),
        lambda c: c.draw("unit", (c.shape[0], c.shape[2])),
        *((lambda c: c.draw("unit", (c.shape[0], c.shape[2])),) if _name == "lstm_cell" else ()),
        lambda c, gates=_gates: c.draw("unit", (gates * c.shape[2], c.shape[1])),
        lambda c, gates=_gates: c.draw("unit", (gates * c.shape[2], c.shape[2])),
        lambda c, gates=_gates: c.draw("unit", (gates * c.shape[2],)) if c.args["_biased"] else None,
        lambda c, gates=_gates: c.draw("unit", (gates * c.shape[2],)) if c.args["_biased"] else None,
        act=(
            (lambda x, h, c, *rest: torch.lstm_cell(x, (h, c), *rest[:-1]))
            if _name == "lstm_cell"
            else (lambda *given, name=_name: getattr(torch, name)(*given[:-1]))
        ),
        _biased=(True, False),
        without=("alias",),
        **CELLS,
    )
