"""BERT-base as a masked language model, and a decoder of GPT-2's size; both give logits for every place."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

HAS_SDPA = hasattr(F, "scaled_dot_product_attention")  # torch 2.0 and newer


class Attention(nn.Module):
    """Many heads at once; `fused` asks torch for its own attention, else it is the products of 2022."""

    def __init__(self, width: int, heads: int, *, dropout: float, causal: bool, fused: bool) -> None:
        super().__init__()
        self.heads, self.causal, self.fused = heads, causal, fused
        self.joint = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> Any:
        rows, length, width = x.shape
        q, k, v = (
            part.view(rows, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.joint(x).split(width, dim=2)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal) if self.fused else self._eager(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(rows, length, width))

    def _eager(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
        if self.causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(later, -1e4)
        return torch.matmul(self.drop(torch.softmax(scores, dim=-1)), v)


class BertLayer(nn.Module):
    """Attention and feed-forward, each normalised after its sum, as BERT has it."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, heads, dropout=dropout, causal=False, fused=False)
        self.attended = nn.LayerNorm(width, eps=1e-12)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.mixed = nn.LayerNorm(width, eps=1e-12)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> Any:
        x = self.attended(x + self.drop(self.attention(x)))
        return self.mixed(x + self.drop(self.down(F.gelu(self.up(x)))))


class Bert(nn.Module):
    """BERT-base (https://arxiv.org/abs/1810.04805) with its head for masked words, tied to the embedding."""

    def __init__(
        self, *, vocab: int = 30522, width: int = 768, layers: int = 12, heads: int = 12, length: int = 512
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(vocab, width, padding_idx=0), nn.Embedding(length, width)
        self.types = nn.Embedding(2, width)
        self.embedded, self.drop = nn.LayerNorm(width, eps=1e-12), nn.Dropout(0.1)
        self.layers = nn.Sequential(*(BertLayer(width, heads, 0.1) for _ in range(layers)))
        self.head, self.headed = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(vocab))
        self.apply(_draw)

    def forward(self, ids: torch.Tensor) -> Any:
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.words(ids) + self.places(places) + self.types(torch.zeros_like(ids))
        x = self.layers(self.drop(self.embedded(x)))
        return F.linear(self.headed(F.gelu(self.head(x))), self.words.weight, self.bias)


class DecoderLayer(nn.Module):
    """Attention and feed-forward, each normalised before."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout=0.0, causal=True, fused=HAS_SDPA)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> Any:
        x = x + self.attention(self.before(x))
        return x + self.down(F.gelu(self.up(self.between(x)), approximate="tanh"))


class Decoder(nn.Module):
    """A decoder of GPT-2's size (124 million weights), without dropout, as such models are trained now."""

    def __init__(
        self, *, vocab: int = 50257, width: int = 768, layers: int = 12, heads: int = 12, length: int = 1024
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(vocab, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*(DecoderLayer(width, heads) for _ in range(layers)))
        self.last = nn.LayerNorm(width)
        self.apply(_draw)

    def forward(self, ids: torch.Tensor) -> Any:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return F.linear(self.last(self.layers(x)), self.words.weight)


def _draw(module: nn.Module) -> None:
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
