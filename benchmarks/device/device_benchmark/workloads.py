"""The rows: which model or kernel, in which shape, as announced in 2022 or as people work now."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn

from .images import resnet50, vgg16
from .jobs import Job, KernelJob, ModelJob, count_flops
from .texts import HAS_SDPA, Bert, Decoder
from .transfers import SIZES, copy_in, copy_out

# A 3x3 convolution by Winograd's F(4x4) needs a quarter of the products: more "FLOP/s" than any matmul is not a fault.
_WINOGRAD = 4.0


@dataclass(frozen=True)
class Workload:
    """One row. `sizes` are full (as announced), quick, and quick where both sides are the CPU, if that differs;
    the first number of a size is what a memory shortage halves.

    A row that `is_of_memory` times nothing: memory.py looks for the largest batch.

    `job` makes what runs, on the CPU: a model with its batch, or a kernel with its inputs.
    """

    name: str
    mode: str
    job: Callable[..., Job]
    sizes: tuple[dict[str, int], ...]
    dtype: str = "float32"
    weight: float = 1.0
    facts: dict[str, Any] = field(default_factory=dict)
    is_of_memory: bool = False

    @property
    def id(self) -> str:
        return f"{self.name}:{self.mode}"

    def size(self, *, quick: bool, on_cpu: bool = False, lowered: int | None = None) -> dict[str, int]:
        """Return the shape to run; `lowered` replaces the number that a memory shortage halves."""
        size = dict((self.sizes[-1] if on_cpu else self.sizes[1]) if quick else self.sizes[0])
        if lowered is not None:
            size[next(iter(size))] = lowered
        return size

    def reduced(self, size: dict[str, int]) -> str | None:
        """Return in words how a shape is smaller than the full one."""
        full = self.sizes[0]
        parts = [f"{name} {full[name]} -> {number}" for name, number in size.items() if number != full[name]]
        return ", ".join(parts) or None


def _image_job(make: Callable[[], nn.Module]) -> Callable[..., Job]:
    def job(mode: str, *, batch: int, side: int = 224) -> Job:
        model, given = make(), torch.randn(batch, 3, side, side)
        made = ModelJob(model, given, torch.randint(0, 1000, (batch,)), mode, "SGD")
        made.flops, made.slack = count_flops(model, given, training=mode == "training"), _WINOGRAD
        return made

    return job


def _text_job(make: Callable[[], nn.Module], vocab: int, optimiser: str) -> Callable[..., Job]:
    def job(mode: str, *, batch: int, sequence: int) -> Job:
        model, given = make(), torch.randint(1, vocab, (batch, sequence))
        made = ModelJob(model, given, torch.randint(1, vocab, (batch, sequence)), mode, optimiser)
        linear = count_flops(model, given, training=mode == "training")
        # Beside the linear layers: the tied head, and attention's two products in each of 12 layers.
        other = 2.0 * batch * sequence * 768 * vocab + 12 * 4.0 * batch * sequence * sequence * 768
        made.flops = linear + other * (3.0 if mode == "training" else 1.0)
        return made

    return job


def _matmul_job(mode: str, *, n: int) -> Job:
    return KernelJob(torch.matmul, [torch.randn(n, n), torch.randn(n, n)], flops=2.0 * n**3)


def _conv_job(mode: str, *, batch: int, channels: int, side: int) -> Job:
    inputs = [torch.randn(batch, channels, side, side), torch.randn(channels, channels, 3, 3) / (3 * channels**0.5)]
    flops = 2.0 * batch * side * side * channels * channels * 9
    return KernelJob(lambda x, w: F.conv2d(x, w, padding=1), inputs, flops=flops, slack=_WINOGRAD)


def _attention_job(mode: str, *, batch: int, heads: int, sequence: int) -> Job:
    inputs = [torch.randn(batch, heads, sequence, 64) for _ in range(3)]
    flops = 4.0 * batch * heads * sequence * sequence * 64

    def fused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v)

    def eager(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-1, -2)) / 8.0, dim=-1), v)

    return KernelJob(fused if HAS_SDPA else eager, inputs, flops=flops)


def _layer_norm_job(mode: str, *, rows: int, width: int) -> Job:
    inputs = [torch.randn(rows, width), torch.rand(width) + 0.5, torch.randn(width)]
    return KernelJob(lambda x, gain, shift: F.layer_norm(x, (width,), gain, shift), inputs, flops=8.0 * rows * width)


def _no_job(mode: str, **size: int) -> Job:
    raise NotImplementedError("a row of memory times nothing")


_SDPA = {"attention": "scaled_dot_product_attention" if HAS_SDPA else "eager: this torch has no SDPA"}


def workloads() -> tuple[Workload, ...]:
    """Return every row, cheap ones first: an interruption then leaves most of them."""
    kernels = (
        Workload("matmul", "kernel", _matmul_job, ({"n": 8192}, {"n": 2048}, {"n": 1024}), weight=0.4),
        Workload("matmul_bf16", "kernel", _matmul_job, ({"n": 8192}, {"n": 2048}), dtype="bfloat16", weight=0.3),
        Workload(
            "conv",
            "kernel",
            _conv_job,
            tuple({"batch": batch, "channels": 256, "side": 56} for batch in (32, 2, 1)),
            weight=0.4,
        ),
        Workload(
            "attention",
            "kernel",
            _attention_job,
            (
                {"batch": 8, "heads": 12, "sequence": 2048},
                {"batch": 1, "heads": 12, "sequence": 1024},
                {"batch": 1, "heads": 12, "sequence": 512},
            ),
            weight=0.4,
            facts=_SDPA,
        ),
        Workload(
            "layer_norm",
            "kernel",
            _layer_norm_job,
            ({"rows": 8192, "width": 8192}, {"rows": 4096, "width": 4096}, {"rows": 2048, "width": 4096}),
            weight=0.3,
        ),
    )
    vision = {"optimiser": "SGD with momentum", "input": "3x224x224"}
    bert = {"optimiser": "Adam", "head": "masked language model", "attention": "eager"}
    decoder = {"optimiser": "AdamW", **_SDPA}
    models: list[Workload] = []
    for mode, weight in (("inference", 0.6), ("training", 1.6)):
        resnet = _image_job(resnet50), ({"batch": 128}, {"batch": 1})
        vgg = _image_job(vgg16), ({"batch": 64}, {"batch": 1})
        modern = _text_job(Decoder, 50257, "AdamW"), ({"batch": 8, "sequence": 1024}, {"batch": 1, "sequence": 64})
        masked = _text_job(Bert, 30522, "Adam"), ({"batch": 64, "sequence": 512}, {"batch": 1, "sequence": 64})
        models += [
            Workload("resnet50", mode, *resnet, weight=weight, facts=vision),
            Workload("vgg16", mode, *vgg, weight=weight * 1.5, facts=vision),
            Workload("decoder", mode, *modern, dtype="bfloat16", weight=weight, facts=decoder),
            Workload("bert", mode, *masked, weight=weight, facts=bert),
        ]
    copies = tuple(
        Workload(f"copy_{direction}_{name}", "kernel", job, (full, quick), weight=0.1)
        for name, full, quick in SIZES
        for direction, job in (("in", copy_in), ("out", copy_out))
    )
    # Its "size" is the largest batch that is tried; what is measured is how large it can be.
    largest = Workload(
        "largest_batch", "memory", _no_job, ({"batch": 1024}, {"batch": 2}), weight=1.0, facts=vision, is_of_memory=True
    )
    return (*kernels, *copies, *models, largest)
