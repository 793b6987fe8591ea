"""torch.nn's modules by their own forward: dense and strided input, backward, parameters, buffers, evaluation."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.acts import leaf

cases = Cases("layouts")


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for item in value for one in _tensors(item)] if isinstance(value, (tuple, list)) else []


def _swapped(x: Any) -> Any:
    """The same values in another memory order."""
    if x.dim() == 4:
        return x.contiguous(memory_format=torch.channels_last)
    return x.transpose(0, -1).contiguous().transpose(0, -1) if x.dim() > 1 else x


def _run(name: str, arguments: tuple[Any, ...], options: dict[str, Any], spread: bool) -> Any:
    def act(run: Any, inputs: Any, weights: Any) -> Any:
        module = getattr(torch.nn, name)(*arguments, **options).to(run.device, run.cast(torch.float32))
        with torch.no_grad():
            for parameter, weight in zip(module.parameters(), weights):
                parameter.copy_(weight[: parameter.numel()].view(parameter.shape))
        answers = []
        for given in (inputs, [_swapped(one) for one in inputs]) if spread else (inputs,):
            starts = [leaf(one) if one.is_floating_point() else one for one in given]
            outputs = _tensors(module(*starts))
            module.zero_grad()
            sum((one * one).sum() for one in outputs if one.requires_grad).backward()
            grads = [start.grad for start in starts if start.requires_grad]
            answers.append((outputs, grads, [parameter.grad.clone() for parameter in module.parameters()]))
        with torch.no_grad():
            answers.append(_tensors(module.eval()(*inputs)))
        return answers, list(module.buffers())

    return act


def _add(
    name: str, arguments: tuple[Any, ...], *shapes: Any, terms: int = 4096, spread: bool = True, **options: Any
) -> None:
    if not hasattr(torch.nn, name):
        return
    label = options.pop("label", name)
    count = len(list(getattr(torch.nn, name)(*arguments, **options).parameters()))
    sizes = [parameter.numel() for parameter in getattr(torch.nn, name)(*arguments, **options).parameters()]

    def make(d: Any) -> Any:
        inputs = [shape(d) if callable(shape) else d.normal(shape[0] + d.k, *shape[1:]) for shape in shapes]
        return inputs, [d.uniform(-0.6, 0.8, sizes[place]) for place in range(count)]

    cases.add(
        f"layout-module-{label}",
        _run(name, arguments, options, spread),
        make=make,
        terms=terms,
        factor=8,
        floor=0.1,
        # Scattered sums have no fixed order: embeddings, and the backward of reflection on CUDA.
        deterministic="Embedding" not in name and "eflect" not in label,
        may_be_missing=True,
        states=("fresh", "polluted") if terms < 4096 else ("fresh", "again", "other", "polluted"),
    )


_ACTIVATIONS = """ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Sigmoid Tanh Softplus Softsign Hardswish Hardsigmoid
Hardtanh LogSigmoid Tanhshrink Softshrink Hardshrink Identity PReLU"""
for _name in _ACTIVATIONS.split():
    _add(_name, (), (5, 7), terms=64)
_add("GELU", (), (5, 7), terms=64, approximate="tanh", label="GELU_tanh")
for _name in ("Softmax", "LogSoftmax", "Softmin", "GLU"):
    _add(_name, (1,), (5, 6), terms=64)
_add("Softmax2d", (), (2, 3, 4, 5), terms=64)
_add("Linear", (7, 5), (4, 7))
_add("Linear", (7, 5), (2, 3, 7), label="Linear_batches")
_add("Linear", (7, 5, False), (4, 7), label="Linear_without_bias")
_add("Bilinear", (4, 3, 5), (6, 4), (6, 3))
for _dims, _shape in ((1, (2, 3, 9)), (2, (2, 3, 7, 6)), (3, (2, 3, 4, 5, 6))):
    _add(f"Conv{_dims}d", (3, 4, 3), _shape, padding=1)
    _add(f"Conv{_dims}d", (3, 6, 2), _shape, groups=3, stride=2, bias=False, label=f"Conv{_dims}d_grouped")
    _add(f"ConvTranspose{_dims}d", (3, 4, 3), _shape, stride=2)
    _add(f"BatchNorm{_dims}d", (3,), _shape)
    _add(f"InstanceNorm{_dims}d", (3,), _shape, affine=True)
    _add(f"MaxPool{_dims}d", (2,), _shape, terms=64)
    _add(f"AdaptiveAvgPool{_dims}d", (2,), _shape, terms=64)
    _add(f"ConstantPad{_dims}d", (1, 0.5), _shape, terms=64)
_add("Conv2d", (3, 4, 3), (2, 3, 7, 6), padding=2, dilation=2, padding_mode="reflect", label="Conv2d_reflecting")
_add("AvgPool2d", (2,), (2, 3, 6, 4), terms=64)
_add("AdaptiveMaxPool2d", (2,), (2, 3, 6, 4), terms=64)
_add("LPPool2d", (2, 2), lambda d: d.uniform(0.2, 1, 2 + d.k, 3, 6, 4), terms=64)
for _name, _padding in (("ReflectionPad2d", 1), ("ReplicationPad2d", 2), ("ZeroPad2d", (1, 0, 2, 1))):
    _add(_name, (_padding,), (2, 3, 5, 4), terms=64)
_add("LayerNorm", (7,), (2, 3, 7))
_add("LayerNorm", ((3, 7),), (2, 3, 7), label="LayerNorm_two")
_add("GroupNorm", (2, 4), (2, 4, 5, 3))
_add("RMSNorm", (7,), (2, 3, 7))
_add("LocalResponseNorm", (2,), (2, 3, 4, 5))
_add("Dropout", (0.0,), (5, 7), terms=64)
_add("Flatten", (), (2, 3, 4), terms=64)
_add("Unflatten", (1, (2, 3)), (4, 6), terms=64)
_add("PixelShuffle", (2,), (2, 8, 3, 4), terms=64)
_add("PixelUnshuffle", (2,), (2, 3, 4, 6), terms=64)
_add("Upsample", (), (2, 3, 4, 5), scale_factor=2, terms=64)
_add("Upsample", (), (2, 3, 4, 5), scale_factor=2, mode="bilinear", terms=64, label="Upsample_bilinear")
_add("Unfold", (2,), (2, 3, 5, 4), terms=64)
_add("Fold", ((4, 5), 2), (2, 12, 12), terms=64)
_add("CosineSimilarity", (), (5, 7), (5, 7), terms=64)
_add("PairwiseDistance", (), (5, 7), (5, 7), terms=64)
_add("Embedding", (9, 4), lambda d: d.integers(0, 9, 3 + d.k, 5))
_add("Embedding", (9, 4), lambda d: d.integers(0, 9, 3 + d.k, 5), padding_idx=2, label="Embedding_padded")
_add("EmbeddingBag", (9, 4), lambda d: d.integers(0, 9, 3 + d.k, 5), spread=False)
for _name in ("LSTM", "GRU", "RNN"):
    _add(_name, (4, 3), (5, 2, 4), num_layers=2, terms=65536)
    _add(_name, (4, 3), (2, 5, 4), batch_first=True, bidirectional=True, terms=65536, label=f"{_name}_both_ways")
for _name in ("LSTMCell", "GRUCell", "RNNCell"):
    _add(_name, (4, 3), (5, 4), terms=65536)
_add(
    "MultiheadAttention", (8, 2), *(lambda d: d.normal(2, 5 + d.k, 8) for _ in range(3)), batch_first=True, terms=65536
)
_add("TransformerEncoderLayer", (8, 2, 16), (2, 5, 8), dropout=0.0, batch_first=True, terms=65536)
_add(
    "TransformerEncoderLayer",
    (8, 2, 16),
    (2, 5, 8),
    dropout=0.0,
    norm_first=True,
    activation="gelu",
    terms=65536,
    label="TransformerEncoderLayer_gelu",
)
_add(
    "TransformerDecoderLayer",
    (8, 2, 16),
    lambda d: d.normal(2, 5, 8),
    lambda d: d.normal(2, 6, 8),
    dropout=0.0,
    batch_first=True,
    terms=65536,
)
_add("MSELoss", (), (5, 7), (5, 7), terms=64)
for _name in ("L1Loss", "SmoothL1Loss", "HuberLoss", "PoissonNLLLoss"):
    _add(_name, (), (5, 7), lambda d: d.uniform(0.2, 2, 5 + d.k, 7), terms=64)
_add("BCEWithLogitsLoss", (), (5, 7), lambda d: d.uniform(0.1, 0.9, 5 + d.k, 7), terms=64)
_add("BCELoss", (), lambda d: d.uniform(0.1, 0.9, 5 + d.k, 7), lambda d: d.uniform(0.1, 0.9, 5 + d.k, 7), terms=64)
_add("KLDivLoss", (), (5, 7), lambda d: d.uniform(0.1, 0.9, 5 + d.k, 7), terms=64, reduction="batchmean")
for _name in ("CrossEntropyLoss", "NLLLoss", "MultiMarginLoss"):
    _add(_name, (), (5, 7), lambda d: d.integers(0, 7, 5 + d.k), terms=64)
_add("TripletMarginLoss", (), (5, 7), (5, 7), (5, 7), terms=64)
for _dims, _shape in ((1, (2, 3, 8)), (2, (2, 3, 6, 8)), (3, (2, 3, 4, 6, 8))):
    for _name in ("CircularPad", "ReflectionPad", "ReplicationPad", "ZeroPad"):
        _add(f"{_name}{_dims}d", ((1, 2) * _dims,), _shape, terms=64, label=f"{_name}{_dims}d_uneven")
    _add(f"AvgPool{_dims}d", (3, 2, 1), _shape, terms=64, count_include_pad=False, label=f"AvgPool{_dims}d_padded")
    _add(f"AdaptiveMaxPool{_dims}d", (3,), _shape, terms=64, label=f"AdaptiveMaxPool{_dims}d_uneven")
    _add(
        f"LPPool{_dims}d",
        (3, 2),
        lambda d, shape=_shape: d.uniform(0.2, 1, shape[0] + d.k, *shape[1:]),
        terms=64,
        stride=1,
        label=f"LPPool{_dims}d_cubes",
    )
    # Nothing is left to chance: every channel is dropped, or none.
    _add(f"Dropout{_dims}d", (1.0,), _shape, terms=64)
    _add(f"Dropout{_dims}d", (0.0,), _shape, terms=64, label=f"Dropout{_dims}d_none")
for _name in ("AlphaDropout", "FeatureAlphaDropout"):
    _add(_name, (0.0,), (2, 3, 4, 5), terms=64)
_add("UpsamplingNearest2d", (), (2, 3, 4, 5), scale_factor=2, terms=64)
_add("UpsamplingBilinear2d", (), (2, 3, 4, 5), scale_factor=3, terms=64)
_add("CrossMapLRN2d", (3,), (2, 5, 4, 6), terms=64)
_add("AdaptiveLogSoftmaxWithLoss", (7, 9, [3, 6]), (9, 7), lambda d: torch.arange(9 + d.k) % 9)
_add("CosineEmbeddingLoss", (0.25,), (5, 7), (5, 7), lambda d: d.integers(0, 2, 5 + d.k) * 2 - 1, terms=64)
_add("GaussianNLLLoss", (), (5, 7), (5, 7), lambda d: d.uniform(0.2, 2, 5 + d.k, 7), terms=64, full=True)
_add("HingeEmbeddingLoss", (0.5,), (5, 7), lambda d: d.integers(0, 2, 5 + d.k, 7) * 2 - 1, terms=64)
_add("MarginRankingLoss", (0.5,), (5, 7), (5, 7), lambda d: d.integers(0, 2, 5 + d.k, 7) * 2 - 1, terms=64)
_add("MultiLabelMarginLoss", (), (5, 7), lambda d: d.integers(-1, 7, 5 + d.k, 7), terms=64)
_add("MultiLabelSoftMarginLoss", (), (5, 7), lambda d: d.integers(0, 2, 5 + d.k, 7), terms=64)
_add("SoftMarginLoss", (), (5, 7), lambda d: d.integers(0, 2, 5 + d.k, 7) * 2 - 1, terms=64)
_add("TripletMarginWithDistanceLoss", (), (5, 7), (5, 7), (5, 7), swap=True, terms=64)
