"""The rows: which model or kernel, in which shape, as announced in 2022 or as people work now."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn

from .images import resnet50, vgg16
from .texts import HAS_SDPA, Bert, Decoder

# A 3x3 convolution by Winograd's F(4x4) needs a quarter of the products: more "FLOP/s" than any matmul is no fault.
_WINOGRAD = 4.0


@dataclass(frozen=True)
class Workload:
    """One row. `sizes` are (announced or full, quick); the first of a size is what a memory shortage halves.

    `job` makes what runs, on the CPU: a model with its batch, or a kernel with its inputs.
    """

    name: str
    mode: str
    job: Callable[..., Job]
    sizes: tuple[dict[str, int], dict[str, int]]
    dtype: str = "float32"
    weight: float = 1.0
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.name}:{self.mode}"

    def size(self, *, quick: bool, lowered: int | None = None) -> dict[str, int]:
        """Return the shape to run; `lowered` replaces the number that a memory shortage halves."""
        size = dict(self.sizes[1 if quick else 0])
        if lowered is not None:
            size[next(iter(size))] = lowered
        return size

    def reduced(self, size: dict[str, int]) -> str | None:
        """Return in words how a shape is smaller than the full one."""
        full = self.sizes[0]
        parts = [f"{name} {full[name]} -> {number}" for name, number in size.items() if number != full[name]]
        return ", ".join(parts) or None


class Job:
    """What one side does: made on the CPU, moved once, then `step` again and again."""

    flops: float = 0.0
    bytes: float = 0.0
    slack: float = 1.0

    def round_to(self, dtype: torch.dtype) -> None:
        """Round what the work begins with, so that both sides begin with the same numbers."""
        raise NotImplementedError

    def to(self, device: torch.device, dtype: torch.dtype) -> Any:
        """Return this job on a device; the CPU's own side gets a copy too."""
        raise NotImplementedError

    def step(self) -> torch.Tensor:
        """Do the work once and return what can be read when it is done."""
        raise NotImplementedError

    def results(self) -> dict[str, torch.Tensor]:
        """Do the work once and return what it gave, on the CPU."""
        raise NotImplementedError


class KernelJob(Job):
    """One call of one function on inputs that stay where they are."""

    def __init__(
        self, call: Callable[..., torch.Tensor], inputs: list[torch.Tensor], *, flops: float, slack: float = 1.0
    ) -> None:
        self._call, self._inputs, self.flops, self.slack = call, inputs, flops, slack

    def round_to(self, dtype: torch.dtype) -> None:
        self._inputs = [each.to(dtype).float() for each in self._inputs]

    def to(self, device: torch.device, dtype: torch.dtype) -> KernelJob:
        moved = KernelJob(
            self._call,
            [each.to(device=device, dtype=dtype, copy=True) for each in self._inputs],
            flops=self.flops,
            slack=self.slack,
        )
        output = moved.step()
        moved.bytes = float(sum(each.numel() * each.element_size() for each in (*moved._inputs, output)))
        return moved

    def step(self) -> torch.Tensor:
        with torch.no_grad():
            return self._call(*self._inputs)

    def results(self) -> dict[str, torch.Tensor]:
        return {"out": self.step().cpu()}


class ModelJob(Job):
    """A model with its batch; in training a whole step: gradients to nothing, forward, loss, backward, optimiser."""

    def __init__(self, model: nn.Module, given: torch.Tensor, wanted: torch.Tensor, mode: str, optimiser: str) -> None:
        self._model, self._given, self._wanted, self._mode = model, given, wanted, mode
        self._optimiser_name = optimiser
        self._optimiser: Any = None

    def round_to(self, dtype: torch.dtype) -> None:
        self._model.to(dtype).float()

    def to(self, device: torch.device, dtype: torch.dtype) -> ModelJob:
        given = self._given.to(device=device, dtype=dtype if self._given.is_floating_point() else None, copy=True)
        model = copy.deepcopy(self._model).to(device=device, dtype=dtype)
        moved = ModelJob(model, given, self._wanted.to(device), self._mode, self._optimiser_name)
        moved.flops, moved.slack = self.flops, self.slack
        model.train(self._mode == "training")
        if self._mode == "training":
            weights = list(model.parameters())
            moved._optimiser = {
                "SGD": lambda: torch.optim.SGD(weights, lr=1e-3, momentum=0.9),
                "Adam": lambda: torch.optim.Adam(weights, lr=1e-4),
                "AdamW": lambda: torch.optim.AdamW(weights, lr=1e-4),
            }[self._optimiser_name]()
        return moved

    def step(self) -> torch.Tensor:
        if self._mode == "inference":
            with torch.no_grad():
                return self._model(self._given)  # type: ignore[no-any-return]
        self._optimiser.zero_grad(set_to_none=True)
        self._loss(self._model(self._given)).backward()
        self._optimiser.step()
        return self._optimiser.param_groups[0]["params"][-1]  # type: ignore[no-any-return]

    def results(self) -> dict[str, torch.Tensor]:
        """Return the logits (a part of them where they are gigabytes); in training loss and gradients, no dropout."""
        if self._mode == "inference":
            return {"out": self._part(self.step())}
        drops = [module for module in self._model.modules() if isinstance(module, nn.Dropout)]
        shares = [module.p for module in drops]
        for module in drops:
            module.p = 0.0
        try:
            self._model.zero_grad(set_to_none=True)
            out = self._model(self._given)
            loss = self._loss(out)
            loss.backward()
        finally:
            for module, share in zip(drops, shares):
                module.p = share
        found = {"loss": loss.detach().reshape(1).cpu(), "out": self._part(out.detach())}
        for name, weight in self._model.named_parameters():
            found[f"grad:{name}"] = weight.grad.detach().cpu()  # type: ignore[union-attr]
        self._model.zero_grad(set_to_none=True)
        return found

    def _loss(self, out: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(out.reshape(-1, out.shape[-1]).float(), self._wanted.reshape(-1))

    @staticmethod
    def _part(out: torch.Tensor) -> torch.Tensor:
        return out.reshape(-1, out.shape[-1])[:2048].cpu()


def count_flops(model: nn.Module, given: torch.Tensor, *, training: bool) -> float:
    """Return the FLOPs of the convolutions and linear layers of one step (backward costs twice the forward)."""
    total = [0.0]

    def count(module: Any, inputs: Any, out: torch.Tensor) -> None:
        if isinstance(module, nn.Conv2d):
            per_value = 2.0 * module.in_channels * module.kernel_size[0] * module.kernel_size[1]
            total[0] += per_value * out.numel()
        else:
            total[0] += 2.0 * module.in_features * out.numel()

    layers = [module for module in model.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    with torch.no_grad():
        model.eval()(given[:1])
    for hook in hooks:
        hook.remove()
    return total[0] * len(given) * (3.0 if training else 1.0)


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


_SDPA = {"attention": "scaled_dot_product_attention" if HAS_SDPA else "eager: this torch has no SDPA"}


def workloads() -> tuple[Workload, ...]:
    """Return every row, cheap ones first: an interruption then leaves most of them."""
    kernels = (
        Workload("matmul", "kernel", _matmul_job, ({"n": 8192}, {"n": 2048}), weight=0.4),
        Workload("matmul_bf16", "kernel", _matmul_job, ({"n": 8192}, {"n": 2048}), dtype="bfloat16", weight=0.3),
        Workload(
            "conv",
            "kernel",
            _conv_job,
            ({"batch": 32, "channels": 256, "side": 56}, {"batch": 2, "channels": 256, "side": 56}),
            weight=0.4,
        ),
        Workload(
            "attention",
            "kernel",
            _attention_job,
            ({"batch": 8, "heads": 12, "sequence": 2048}, {"batch": 1, "heads": 12, "sequence": 1024}),
            weight=0.4,
            facts=_SDPA,
        ),
        Workload(
            "layer_norm",
            "kernel",
            _layer_norm_job,
            ({"rows": 8192, "width": 8192}, {"rows": 4096, "width": 4096}),
            weight=0.3,
        ),
    )
    sequence = {"batch": 64, "sequence": 512}, {"batch": 1, "sequence": 64}
    modern = {"batch": 8, "sequence": 1024}, {"batch": 1, "sequence": 64}
    vision = {"optimiser": "SGD with momentum", "input": "3x224x224"}
    models: list[Workload] = []
    for mode, weight in (("inference", 0.6), ("training", 1.6)):
        models += [
            Workload(
                "resnet50", mode, _image_job(resnet50), ({"batch": 128}, {"batch": 1}), weight=weight, facts=vision
            ),
            Workload(
                "bert",
                mode,
                _text_job(Bert, 30522, "Adam"),
                sequence,
                weight=weight,
                facts={"optimiser": "Adam", "head": "masked language model", "attention": "eager"},
            ),
            Workload(
                "vgg16", mode, _image_job(vgg16), ({"batch": 64}, {"batch": 1}), weight=weight * 1.5, facts=vision
            ),
            Workload(
                "decoder",
                mode,
                _text_job(Decoder, 50257, "AdamW"),
                modern,
                dtype="bfloat16",
                weight=weight,
                facts={"optimiser": "AdamW", **_SDPA},
            ),
        ]
    return (*kernels, *models)
