"""Whole small models: forward, every gradient, and what they generate, against the CPU."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from engine import Cases

cases = Cases("scenarios")
DEEP = 8192


class Attention(nn.Module):
    """Self or cross attention with an optional cache of keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ask, self.offer, self.join = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, x: Any, memory: Any = None, cache: Any = None, causal: bool = False) -> Any:
        rows, length, width = x.shape
        split = (rows, -1, self.heads, width // self.heads)
        q = self.ask(x).view(split).transpose(1, 2)
        k, v = (
            part.view(split).transpose(1, 2) for part in self.offer(x if memory is None else memory).chunk(2, dim=-1)
        )
        if cache is not None:
            k, v = (torch.cat([old, new], dim=2) for old, new in zip(cache, (k, v)))
        scores = q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5
        if causal:
            late = torch.ones(length, k.shape[2], dtype=torch.bool, device=x.device).triu(1 + k.shape[2] - length)
            scores = scores.masked_fill(late, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(rows, length, width)
        return self.join(y), (k, v)


class Block(nn.Module):
    def __init__(self, width: int, heads: int, cross: bool = False) -> None:
        super().__init__()
        self.own, self.other = Attention(width, heads), Attention(width, heads) if cross else None
        self.first, self.second, self.third = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Any, memory: Any = None, cache: Any = None, causal: bool = True) -> Any:
        y, kept = self.own(self.first(x), cache=cache, causal=causal)
        x = x + y
        if self.other is not None:
            x = x + self.other(self.third(x), memory=memory)[0]
        return x + self.down(F.silu(self.up(self.second(x)))), kept


class Decoder(nn.Module):
    def __init__(self, vocab: int = 41, width: int = 24, cross: bool = False) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(vocab, width), nn.Embedding(40, width)
        self.blocks = nn.ModuleList([Block(width, 4, cross) for _ in range(2)])
        self.last = nn.LayerNorm(width)

    def forward(self, ids: Any, memory: Any = None, caches: Any = None) -> Any:
        start = 0 if caches is None else caches[0][0].shape[2]
        places = torch.arange(start, start + ids.shape[1], device=ids.device)
        x, kept = self.words(ids) + self.places(places), []
        for block, cache in zip(self.blocks, caches or [None] * len(self.blocks)):
            x, new = block(x, memory=memory, cache=cache)
            kept.append(new)
        return self.last(x) @ self.words.weight.t(), kept


class Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.source, self.encoder = nn.Embedding(41, 24), nn.ModuleList([Block(24, 4) for _ in range(2)])
        self.decoder = Decoder(cross=True)

    def forward(self, source: Any, target: Any) -> Any:
        memory = self.source(source)
        for block in self.encoder:
            memory = block(memory, causal=False)[0]
        return self.decoder(target, memory=memory)[0]


class Recurrent(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.cell = getattr(nn, kind)(7, 12, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(24, 3)

    def forward(self, x: Any) -> Any:
        return self.out(self.cell(x)[0][:, -1])


class Convolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, padding=1, groups=4), nn.GroupNorm(2, 8), nn.SiLU(), nn.AvgPool2d(2),
            nn.Conv2d(8, 12, 3, stride=2, dilation=1), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(12, 5),
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        return self.layers(x)


class Diffusing(nn.Module):
    """Blocks of a U-Net: down, attention in the middle, up with a skip, conditioned on a time step."""

    def __init__(self) -> None:
        super().__init__()
        self.time, self.enter = nn.Linear(8, 16), nn.Conv2d(3, 16, 3, padding=1)
        self.down, self.norm = nn.Conv2d(16, 16, 3, stride=2, padding=1), nn.GroupNorm(4, 16)
        self.middle, self.up = Attention(16, 2), nn.ConvTranspose2d(16, 16, 4, stride=2, padding=1)
        self.leave = nn.Conv2d(32, 3, 3, padding=1)

    def forward(self, x: Any, step: Any) -> Any:
        angles = step[:, None] * torch.arange(1, 5, device=x.device, dtype=x.dtype)
        when = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
        first = F.silu(self.enter(x) + when[:, :, None, None])
        low = self.norm(self.down(first))
        mixed = self.middle(low.flatten(2).transpose(1, 2))[0].transpose(1, 2).view_as(low)
        high = self.up(F.interpolate(low + mixed, scale_factor=0.5, mode="nearest"))
        high = F.interpolate(high, size=first.shape[-2:], mode="bilinear", align_corners=False)
        return self.leave(torch.cat([first, high], dim=1))


def _weights(d: Any, make: Any) -> Any:
    """Return wide weights by name: nothing is left at zero, or as small as the usual initialisation leaves it."""
    shapes = {name: tuple(value.shape) for name, value in make().named_parameters()}
    return {name: d.normal(*shape) * (0.3 if len(shape) > 1 else 0.5) for name, shape in shapes.items()}


def _built(make: Any, weights: Any) -> Any:
    """Return the module with these weights, where and in the dtype in which they lie."""
    any_weight = next(iter(weights.values()))
    module = make().to(device=any_weight.device, dtype=any_weight.dtype)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(weights[name])
    return module


def _step(make: Any) -> Any:
    def act(weights: Any, inputs: Any, target: Any) -> Any:
        module = _built(make, weights).train()
        out = module(*inputs)
        loss = (
            F.cross_entropy(out.reshape(-1, out.shape[-1]), target)
            if not target.is_floating_point()
            else ((out - target).pow(2).mean())
        )
        loss.backward()
        return out, loss, {name: parameter.grad for name, parameter in module.named_parameters()}

    return act


def _tokens(d: Any, rows: int = 3, length: int = 11) -> Any:
    return d.integers(0, 41, rows + d.k, length)


def _next_tokens(d: Any) -> Any:
    return d.integers(0, 41, (3 + d.k) * 11)


def _image(d: Any) -> Any:
    return d.normal(2 + d.k, 3, 16, 16)


_MODELS = (
    ("decoder", lambda: _Logits(), lambda d: (_tokens(d),), lambda d: _next_tokens(d)),
    ("encoder-decoder", lambda: Translator(), lambda d: (_tokens(d), _tokens(d)), lambda d: _next_tokens(d)),
    ("lstm", lambda: Recurrent("LSTM"), lambda d: (d.normal(4 + d.k, 9, 7),), lambda d: d.integers(0, 3, 4 + d.k)),
    ("cnn", lambda: Convolutional(), lambda d: (d.normal(4 + d.k, 3, 20, 20),), lambda d: d.integers(0, 5, 4 + d.k)),
    ("unet", lambda: Diffusing(), lambda d: (_image(d), d.uniform(0, 1, 2 + d.k)), lambda d: _image(d)),
)  # fmt: skip


class _Logits(Decoder):
    def forward(self, ids: Any, memory: Any = None, caches: Any = None) -> Any:
        return super().forward(ids, memory, caches)[0]


for _name, _make, _inputs, _target in _MODELS:
    cases.add(
        f"models-{_name}-step",
        _step(_make),
        terms=DEEP,
        deterministic=False,
        make=lambda d, m=_make, i=_inputs, t=_target: (_weights(d, m), i(d), t(d)),
    )


@cases.case(
    "models-decoder-generates",
    full=True,
    terms=DEEP,
    make=lambda d: (_weights(d, Decoder), d.integers(0, 41, 2 + d.k, 5)),
)
def _greedy_generation_with_a_cache(weights: Any, ids: Any) -> Any:
    module = _built(Decoder, weights).eval()
    with torch.no_grad():
        logits, caches = module(ids)
        chosen, said = ids, [logits[:, -1]]
        for _ in range(2):
            chosen = torch.cat([chosen, said[-1].argmax(-1, keepdim=True)], dim=1)
            logits, caches = module(chosen[:, -1:], caches=caches)
            said.append(logits[:, -1])
        whole = module(chosen)[0][:, 4:]
    return chosen, torch.stack(said, dim=1), whole
