"""A model that the user has: from its folder, without a network, with a batch of made-up values."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import torch
import transformers

from .cases import Wrong
from .models import LENGTH, ROWS, SEED, without_dropout


def load_with_batch(folder: Path) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """Return the model in training mode without dropout, and a batch for it.

    Raises:
        Wrong: its class is unknown here, or takes neither text nor images.
    """
    config = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True)
    spread = getattr(config, "initializer_range", None)
    without_dropout(config)
    if spread is not None:
        config.initializer_range = spread
    named = (getattr(config, "architectures", None) or ["AutoModel"])[0]
    model_class: Any = getattr(transformers, named, None)
    if model_class is None:
        raise Wrong(f"{folder}: transformers {transformers.__version__} has no {named}")
    model = model_class.from_pretrained(str(folder), config=config, local_files_only=True).float()
    return model.train(), _batch(model, config)


def _batch(model: torch.nn.Module, config: Any) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(SEED)
    takes = inspect.signature(model.forward).parameters
    batch: dict[str, torch.Tensor] = {}
    text = getattr(config, "text_config", config)
    if "input_ids" in takes:
        words = int(getattr(text, "vocab_size", 100))
        batch["input_ids"] = torch.randint(3, max(words, 4), (ROWS, LENGTH), generator=generator)
        batch["attention_mask"] = torch.ones(ROWS, LENGTH, dtype=torch.int64)
    if "decoder_input_ids" in takes:
        batch["decoder_input_ids"] = batch["input_ids"][:, :8].clone()
    if "pixel_values" in takes:
        shown = getattr(config, "vision_config", config)
        size = getattr(shown, "image_size", 224)
        height, width = (size, size) if isinstance(size, int) else tuple(size)
        channels = int(getattr(shown, "num_channels", 3))
        batch["pixel_values"] = torch.randn(ROWS, channels, height, width, generator=generator)
    if not batch:
        raise Wrong(f"{type(model).__name__} takes neither text nor images: nothing can be made up for it")
    return batch
