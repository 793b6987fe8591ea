"""A BERT of our own for the workloads that use no library of models: attention as it was written in 2022.

Attention is spelt out (view, permute, matmul, softmax), because it was so where
https://github.com/pytorch/pytorch/issues/82707 was found.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F


class Layer(torch.nn.Module):
    """Attention and a feed-forward part, each with what came in added, and normalised."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.joined = (torch.nn.Linear(width, width) for _ in range(4))
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)
        self.attended, self.mixed = torch.nn.LayerNorm(width, 1e-12), torch.nn.LayerNorm(width, 1e-12)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        query, key, value = (
            part(x).view(rows, length, self.heads, width // self.heads).permute(0, 2, 1, 3)
            for part in (self.query, self.key, self.value)
        )
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(width // self.heads) + hidden
        context = torch.matmul(F.softmax(scores, dim=-1), value).permute(0, 2, 1, 3).contiguous()
        x = self.attended(x + self.joined(context.view(rows, length, width)))
        return self.mixed(x + self.down(F.gelu(self.up(x))))


class Classifier(torch.nn.Module):
    """Embeddings, layers, and a classifier of the first place."""

    def __init__(self, *, vocabulary: int, length: int, width: int = 64, layers: int = 2, spread: float = 0.08) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(vocabulary, width, padding_idx=0)
        self.places, self.types = torch.nn.Embedding(length, width), torch.nn.Embedding(2, width)
        self.embedded = torch.nn.LayerNorm(width, 1e-12)
        self.layers = torch.nn.ModuleList([Layer(width, 4) for _ in range(layers)])
        self.pool, self.classify = torch.nn.Linear(width, width), torch.nn.Linear(width, 2)
        for module in self.modules():
            if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
                torch.nn.init.normal_(module.weight, std=spread)
            if isinstance(module, torch.nn.Linear):
                torch.nn.init.zeros_(module.bias)

    def forward(
        self, input_ids: torch.Tensor, token_type_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> torch.Tensor:
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.embedded(self.words(input_ids) + self.places(places) + self.types(token_type_ids))
        hidden = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, hidden)
        return self.classify(torch.tanh(self.pool(x[:, 0])))
