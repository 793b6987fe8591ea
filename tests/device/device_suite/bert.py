"""A BERT classifier in functions, its weights a plain dict: the same on any device, in any dtype.

Attention is the eager one of 2022 (view, permute, transpose, softmax, matmul), because pytorch#82707 was
found with it; scaled_dot_product_attention has cases of its own.
"""

from __future__ import annotations

import math
from typing import Any, Dict

import torch
import torch.nn.functional as F

Weights = Dict[str, torch.Tensor]


def draw_weights(
    d: Any,
    *,
    vocab: int = 50,
    width: int = 32,
    inner: int = 64,
    layers: int = 2,
    length: int = 24,
    classes: int = 2,
    std: float = 0.4,
) -> Weights:
    """Return weights wide enough that a fault shows; with BERT's own 0.02 half of the planted ones vanish in noise."""
    shapes: dict[str, Any] = {"words": (vocab, width), "places": (length, width), "types": (2, width)}
    for layer in range(layers):
        for name in ("query", "key", "value", "joined"):
            shapes[f"{layer}.{name}"] = (width, width)
        shapes[f"{layer}.up"], shapes[f"{layer}.down"] = (inner, width), (width, inner)
    shapes["pool"], shapes["classify"] = (width, width), (classes, width)
    weights = {name: d.normal(*shape) * std for name, shape in shapes.items()}
    for name in list(shapes):
        if name not in ("words", "places", "types"):
            weights[name + ".bias"] = d.normal(shapes[name][0]) * std
    for name in ["embedded"] + [f"{layer}.{part}" for layer in range(layers) for part in ("attended", "mixed")]:
        weights[name + ".gain"], weights[name + ".shift"] = d.uniform(0.5, 1.5, width), d.normal(width) * 0.2
    return weights


def draw_batch(d: Any, *, rows: int, length: int, vocab: int = 50) -> Any:
    """Return (ids, types, mask, labels); rows are padded at their end, the first one is whole."""
    ids, types = d.integers(1, vocab, rows, length), d.integers(0, 2, rows, length)
    lengths = d.integers(2, length + 1, rows)
    lengths[0] = length
    mask = torch.arange(length)[None, :] < lengths[:, None]
    return ids * mask, types, mask, d.integers(0, 2, rows)


def embed(w: Weights, ids: torch.Tensor, types: torch.Tensor, *, padding: int | None = None) -> torch.Tensor:
    """Return normalised embeddings, (rows, length, width)."""
    places = torch.arange(ids.shape[1], device=ids.device)
    x = (
        F.embedding(ids, w["words"], padding_idx=padding)
        + F.embedding(places, w["places"])
        + F.embedding(types, w["types"])
    )
    return normalise(w, "embedded", x)


def encode(w: Weights, x: torch.Tensor, mask: torch.Tensor, *, heads: int = 4) -> torch.Tensor:
    """Return the last hidden states of as many layers as the weights have."""
    layers = len([name for name in w if name.endswith(".query")])
    rows, length, width = x.shape
    hidden = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
    for layer in range(layers):
        q, k, v = (
            linear(w, f"{layer}.{name}", x).view(rows, length, heads, width // heads).permute(0, 2, 1, 3)
            for name in ("query", "key", "value")
        )
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(width // heads) + hidden
        context = torch.matmul(F.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous().view(rows, length, width)
        x = normalise(w, f"{layer}.attended", linear(w, f"{layer}.joined", context) + x)
        y = linear(w, f"{layer}.down", F.gelu(linear(w, f"{layer}.up", x)))
        x = normalise(w, f"{layer}.mixed", y + x)
    return x


def classify(w: Weights, hidden: torch.Tensor) -> torch.Tensor:
    """Return logits from the first place of each row."""
    return linear(w, "classify", torch.tanh(linear(w, "pool", hidden[:, 0])))


def logits(w: Weights, ids: torch.Tensor, types: torch.Tensor, mask: torch.Tensor, **options: Any) -> torch.Tensor:
    return classify(w, encode(w, embed(w, ids, types, padding=options.pop("padding", None)), mask, **options))


def linear(w: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
    return F.linear(x, w[name], w[name + ".bias"])


def normalise(w: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:], w[name + ".gain"], w[name + ".shift"], 1e-12)


def trainable(w: Weights) -> Weights:
    """Return the weights as leaves that want gradients."""
    return {name: tensor.detach().requires_grad_() for name, tensor in w.items()}


def gradients(w: Weights) -> dict[str, Any]:
    """Return each named parameter's gradient, the last layers first: the first that differs is nearest the fault."""
    return {name: w[name].grad for name in reversed(list(w))}
