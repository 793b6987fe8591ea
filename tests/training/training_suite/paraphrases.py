"""A paraphrase task that stands for MRPC and needs no download.

A sentence is some of thirty words, each of which has a synonym. A paraphrase says the same words in another order,
about half of them by their synonyms; anything else says words that the first sentence lacks. Synonyms begin near each
other, as embeddings that were trained before would have them: `near_synonyms`.
"""

from __future__ import annotations

import random

import torch

PAD, CLS, SEP, FIRST, WORDS = 0, 1, 2, 3, 30
VOCABULARY = FIRST + 2 * WORDS
LONGEST = 1 + 7 + 1 + 7


class Paraphrases(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Pairs as a tokenizer would give them, padded to one length."""

    def __init__(self, count: int, *, seed: int, length: int = LONGEST) -> None:
        source = random.Random(seed)
        self._rows = [_pair(source, length) for _ in range(count)]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return self._rows[index]


def near_synonyms(embedding: torch.Tensor, *, seed: int, nearness: float = 0.1) -> None:
    """Put each word's synonym near it, in place."""
    generator = torch.Generator().manual_seed(seed)
    spread = float(embedding.std())
    with torch.no_grad():
        words = embedding[FIRST : FIRST + WORDS]
        noise = torch.randn(words.shape, generator=generator)
        embedding[FIRST + WORDS : FIRST + 2 * WORDS] = words + nearness * spread * noise


def _pair(source: random.Random, length: int) -> dict[str, torch.Tensor]:
    words = list(range(WORDS))
    source.shuffle(words)
    size = source.randint(4, 7)
    left, rest = words[:size], words[size:]
    same = source.random() < 0.5
    right = list(left) if same else rest[:size]
    source.shuffle(right)
    said = [FIRST + word + (WORDS if source.random() < 0.5 else 0) for word in right]
    ids: list[int] = [CLS, *(FIRST + word for word in left), SEP, *said]
    types = [0] * (size + 2) + [1] * size
    padding = length - len(ids)
    return {
        "input_ids": torch.tensor(ids + [PAD] * padding),
        "token_type_ids": torch.tensor(types + [0] * padding),
        "attention_mask": torch.tensor([1] * len(ids) + [0] * padding),
        "labels": torch.tensor(int(same)),
    }
