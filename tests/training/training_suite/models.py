"""Two dozen architectures as tiny configs with fixed seeds: what is built, what goes in; no weights, no download."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping

import torch
import transformers

from .cases import NotHere

VOCABULARY, ROWS, LENGTH, SEED = 96, 3, 16, 7
_WIDE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_DECODER = {**_WIDE, "vocab_size": VOCABULARY, "max_position_embeddings": 64, "pad_token_id": 0}
_GROUPED = {**_DECODER, "num_key_value_heads": 2}
_IMAGE = {"image_size": 32, "num_channels": 3}

Batch = Dict[str, torch.Tensor]


def text(generator: torch.Generator) -> Batch:
    """Return ids, a mask with padding at the end of two rows, and no labels."""
    ids = torch.randint(3, VOCABULARY, (ROWS, LENGTH), generator=generator)
    mask = torch.arange(LENGTH)[None, :] < torch.tensor([[LENGTH], [LENGTH - 5], [LENGTH - 9]])
    return {"input_ids": ids * mask, "attention_mask": mask.long()}


def classified(generator: torch.Generator) -> Batch:
    return {**text(generator), "labels": torch.tensor([0, 1, 1])}


def continued(generator: torch.Generator) -> Batch:
    batch = text(generator)
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    return {**batch, "labels": labels}


def translated(generator: torch.Generator) -> Batch:
    labels = torch.randint(3, VOCABULARY, (ROWS, 9), generator=generator)
    labels[1, 6:] = -100
    return {**text(generator), "labels": labels}


def seen(generator: torch.Generator) -> Batch:
    return {"pixel_values": torch.randn(ROWS, 3, 32, 32, generator=generator), "labels": torch.tensor([0, 1, 1])}


def seen_and_said(generator: torch.Generator) -> Batch:
    return {**text(generator), "pixel_values": torch.randn(ROWS, 3, 32, 32, generator=generator)}


def heard(generator: torch.Generator) -> Batch:
    labels = torch.randint(1, 30, (2, 5), generator=generator)
    return {"input_values": torch.randn(2, 1600, generator=generator), "labels": labels}


def heard_and_said(generator: torch.Generator) -> Batch:
    labels = torch.randint(3, VOCABULARY, (2, 7), generator=generator)
    return {"input_features": torch.randn(2, 16, 64, generator=generator), "labels": labels}


# name: (model, config, the config's values, what goes in)
MODELS: Mapping[str, tuple[str, str, dict[str, Any], Callable[[torch.Generator], Batch]]] = {
    "bert": ("BertForSequenceClassification", "BertConfig", {**_DECODER}, classified),
    "distilbert": (
        "DistilBertForSequenceClassification",
        "DistilBertConfig",
        {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4, "vocab_size": VOCABULARY},
        classified,
    ),
    "electra": (
        "ElectraForSequenceClassification",
        "ElectraConfig",
        {**_DECODER, "embedding_size": 16},
        classified,
    ),
    "deberta-v2": (
        "DebertaV2ForSequenceClassification",
        "DebertaV2Config",
        {**_DECODER, "relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]},
        classified,
    ),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": VOCABULARY},
        continued,
    ),
    "gpt-neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", {**_DECODER}, continued),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        {**_DECODER, "ffn_dim": 64, "word_embed_proj_dim": 32},
        continued,
    ),
    "bloom": (
        "BloomForCausalLM",
        "BloomConfig",
        {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": VOCABULARY},
        continued,
    ),
    "llama": ("LlamaForCausalLM", "LlamaConfig", {**_GROUPED}, continued),
    "mistral": ("MistralForCausalLM", "MistralConfig", {**_GROUPED, "sliding_window": 6}, continued),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", {**_GROUPED}, continued),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", {**_GROUPED, "head_dim": 8}, continued),
    "mamba": (
        "MambaForCausalLM",
        "MambaConfig",
        {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, "vocab_size": VOCABULARY},
        continued,
    ),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 64,
            "num_layers": 2,
            "num_heads": 4,
            "vocab_size": VOCABULARY,
            "decoder_start_token_id": 0,
        },
        translated,
    ),
    "bart": (
        "BartForConditionalGeneration",
        "BartConfig",
        {
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "vocab_size": VOCABULARY,
            "max_position_embeddings": 64,
            "pad_token_id": 0,
            "decoder_start_token_id": 2,
        },
        translated,
    ),
    "vit": ("ViTForImageClassification", "ViTConfig", {**_WIDE, **_IMAGE, "patch_size": 8}, seen),
    "swin": (
        "SwinForImageClassification",
        "SwinConfig",
        {**_IMAGE, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
        seen,
    ),
    "convnext": (
        "ConvNextForImageClassification",
        "ConvNextConfig",
        {"num_channels": 3, "hidden_sizes": [16, 32], "depths": [2, 2], "num_stages": 2, "layer_scale_init_value": 1.0},
        seen,
    ),
    "resnet": (
        "ResNetForImageClassification",
        "ResNetConfig",
        {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [2, 2], "layer_type": "basic"},
        seen,
    ),
    "clip": (
        "CLIPModel",
        "CLIPConfig",
        {
            "text_config": {**_DECODER, "eos_token_id": 2},
            "vision_config": {**_WIDE, **_IMAGE, "patch_size": 8},
            "projection_dim": 32,
        },
        seen_and_said,
    ),
    "wav2vec2": (
        "Wav2Vec2ForCTC",
        "Wav2Vec2Config",
        {
            **_WIDE,
            "vocab_size": 32,
            "conv_dim": [16, 16, 16],
            "conv_stride": [5, 4, 2],
            "conv_kernel": [10, 8, 4],
            "num_feat_extract_layers": 3,
            "num_conv_pos_embeddings": 8,
            "num_conv_pos_embedding_groups": 4,
            "apply_spec_augment": False,
            "ctc_loss_reduction": "mean",
        },
        heard,
    ),
    "whisper": (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "vocab_size": VOCABULARY,
            "num_mel_bins": 16,
            "max_source_positions": 32,
            "max_target_positions": 32,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 1,
            "suppress_tokens": None,
            "begin_suppress_tokens": None,
        },
        heard_and_said,
    ),
}


def build(name: str) -> tuple[torch.nn.Module, Batch]:
    """Return a model in training mode without dropout, and its batch, both drawn from one seed.

    Raises:
        NotHere: this version of the library has no such architecture.
    """
    model_name, config_name, values, draw = MODELS[name]
    model_class, config_class = getattr(transformers, model_name, None), getattr(transformers, config_name, None)
    if model_class is None or config_class is None:
        raise NotHere(f"transformers {transformers.__version__} has no {model_name}")
    config = config_class(**values)
    without_dropout(config)
    torch.manual_seed(SEED)
    return model_class(config).train(), draw(torch.Generator().manual_seed(SEED))


def without_dropout(config: Any) -> None:
    """Put every rate of dropout in a config to zero (devices draw other numbers), and widen the weights.

    With BERT's own spread of 0.02 half of the injected faults vanish in the noise.
    """
    for field, value in vars(config).items():
        if isinstance(value, float) and ("drop" in field or field.endswith("pdrop")):
            setattr(config, field, 0.0)
        elif field in ("initializer_range", "init_std") and isinstance(value, float):
            setattr(config, field, 0.2)
        elif hasattr(value, "to_dict") and not isinstance(value, dict):
            without_dropout(value)
