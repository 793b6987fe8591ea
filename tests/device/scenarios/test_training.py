"""Training with dropout that drops nothing: the path of a training model, with an answer that can be compared."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn

from engine import Cases
from engine.acts import filled, learned
from engine.answers import ONCE, each

cases = Cases("scenarios")
# Of ten million numbers one would be dropped, and what stays is larger by as little.
NOTHING = 1e-7


def _trained(module: nn.Module, x: torch.Tensor, call: Callable[[nn.Module, torch.Tensor], torch.Tensor]) -> Any:
    module = filled(module, x).train()
    return learned(module, x, lambda start: call(module, start))


def _causal(x: torch.Tensor, boolean: bool = True) -> torch.Tensor:
    above = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
    return above if boolean else torch.zeros_like(above, dtype=x.dtype).masked_fill(above, float("-inf"))


def _attention(**masks: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
    """Return a form that trains an attention with masks, with and without its weights."""

    def form(x: torch.Tensor) -> Any:
        module = nn.MultiheadAttention(8, 2, dropout=NOTHING, batch_first=True)
        return [
            _trained(
                module,
                x,
                lambda m, x, needed=needed: m(
                    x, x, x, need_weights=needed, **{name: mask(x) for name, mask in masks.items()}
                )[0],
            )
            for needed in (True, False)
        ]

    return form


_FORMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "attention_masked": _attention(attn_mask=_causal),
    "encoder": lambda x: _trained(
        nn.TransformerEncoderLayer(8, 2, 16, NOTHING, batch_first=True), x, lambda m, x: m(x, src_mask=_causal(x))
    ),
    **{
        name.lower(): lambda x, name=name: _trained(
            getattr(nn, name)(8, 5, 2, dropout=NOTHING, batch_first=True, bidirectional=True), x, lambda m, x: m(x)[0]
        )
        for name in ("LSTM",)
    },
    **{
        name: lambda x, name=name: _trained(getattr(nn, name)(NOTHING), x, lambda m, x: m(x.tanh()))
        for name in ("Dropout1d",)
    },
}
for _dtype in (torch.float32,):
    cases.add(
        f"neural-training-{str(_dtype)[6:]}",
        lambda x: each(_FORMS, x),
        make=lambda d, dtype=_dtype: d.normal(3, 6 + d.k, 8, dtype=dtype),
        terms=1024,
        factor=16.0,
        floor=1.0,
        states=ONCE,
        since="2.1",
        deterministic=False,
        may_be_missing=True,
    )


# A module that is asked, trained and asked again, at the sizes of its training and at others, then with new weights.
_SWITCHED: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: nn.LSTM(8, 5, 2, dropout=0.5, batch_first=True),
    "encoder": lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.5, batch_first=True),
    "linear": lambda: nn.Sequential(nn.Linear(8, 6), nn.Dropout(0.5), nn.ReLU(), nn.Linear(6, 3)),
}


def _told(module: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    """Return what a module says in eval mode, with and without a tape, of all and of a part of a batch."""
    module.eval()
    with torch.no_grad():
        still = [module(x), module(x[:1])]
    return [one[0] if isinstance(one, tuple) else one for one in (*still, module(x))]


def _switched(make: Callable[[], nn.Module], x: torch.Tensor) -> Any:
    module = filled(make(), x)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.0)  # dropout's draws must not move what is compared
    told = [_told(module, x)]
    for _ in range(2):
        learned(module.train(), x)
        optimiser.step()
        told.append(_told(module, x))
        with torch.no_grad():
            for one in module.parameters():
                one.mul_(-0.75)
        told.append(_told(module, x))
    return told


cases.add(
    "neural-training-switched",
    lambda x: each({name: lambda x, make=make: _switched(make, x) for name, make in _SWITCHED.items()}, x),
    make=lambda d: d.normal(3, 6, 8),
    terms=1024,
    factor=16.0,
    floor=1.0,
    states=ONCE,
    since="2.1",
    may_be_missing=True,
    deterministic=False,
)
