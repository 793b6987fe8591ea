"""Regressions reported of whole models: blocks of transformers and of diffusion models, written with torch alone."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import backward, leaf, parameters_and_state

cases = Cases("regressions")
WIDTH, HEADS, VOCABULARY = 24, 3, 37


def _encoder_weights(d: Any, classes: int) -> dict[str, torch.Tensor]:
    """Wide initialisation: with the usual 0.02 many faults vanish in the noise."""
    found = {
        "words": d.normal(VOCABULARY, WIDTH),
        "places": d.normal(20, WIDTH),
        "head": d.normal(classes, WIDTH, scale=0.4),
    }
    for name, shape in (
        ("qkv", (3 * WIDTH, WIDTH)),
        ("out", (WIDTH, WIDTH)),
        ("up", (2 * WIDTH, WIDTH)),
        ("down", (WIDTH, 2 * WIDTH)),
    ):
        found[name] = d.normal(*shape, scale=0.4)
        found[name + "_bias"] = d.normal(shape[0], scale=0.4)
    for name in ("first", "second", "third"):
        found[name], found[name + "_bias"] = d.uniform(0.5, 1.5, WIDTH), d.normal(WIDTH)
    return found


def _encode(p: Any, ids: Any, kept: Any) -> Any:
    """Return the logits of a one-layer BERT-like classifier, attention written out."""
    batch, length = ids.shape
    x = F.embedding(ids, p["words"], padding_idx=0) + p["places"][:length]
    x = F.layer_norm(x, (WIDTH,), p["first"], p["first_bias"])
    q, k, v = F.linear(x, p["qkv"], p["qkv_bias"]).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
    scores = torch.matmul(q, k.transpose(-1, -2)) / (WIDTH // HEADS) ** 0.5
    scores = scores.masked_fill(~kept[:, None, None, :], float("-inf"))
    mixed = torch.matmul(F.softmax(scores, dim=-1), v).transpose(1, 2).reshape(batch, length, WIDTH)
    x = F.layer_norm(x + F.linear(mixed, p["out"], p["out_bias"]), (WIDTH,), p["second"], p["second_bias"])
    x = x + F.linear(F.gelu(F.linear(x, p["up"], p["up_bias"])), p["down"], p["down_bias"])
    return F.linear(F.layer_norm(x, (WIDTH,), p["third"], p["third_bias"])[:, 0], p["head"])


def _task(classes: int, lengths: tuple[int, ...]) -> Any:
    def make(d: Any) -> Any:
        batches = []
        for length in lengths:
            ids = d.integers(1, VOCABULARY, 4 + d.k, length)
            kept = torch.ones(4 + d.k, length, dtype=torch.bool)
            kept[0, length // 2 :] = False
            batches.append((ids * kept, kept, d.integers(0, classes, 4 + d.k)))
        return _encoder_weights(d, classes), batches

    return make


def _fine_tune(foreach: bool | None) -> Any:
    def act(weights: Any, batches: Any) -> Any:
        learned = {name: leaf(weight) for name, weight in weights.items()}
        optimiser = torch.optim.AdamW(list(learned.values()), lr=0.003, eps=1e-4, foreach=foreach)
        losses, gradients = [], {}
        for ids, kept, labels in batches:
            optimiser.zero_grad()
            loss = F.cross_entropy(_encode(learned, ids, kept), labels)
            loss.backward()
            gradients = gradients or {name: parameter.grad.clone() for name, parameter in learned.items()}
            optimiser.step()
            losses.append(loss)
        return losses, gradients, parameters_and_state(optimiser)

    return act


# https://github.com/pytorch/pytorch/issues/82707: BERT fine-tuning on GLUE MRPC learns far worse on mps than on cpu
# https://github.com/pytorch/pytorch/issues/17971: DistilBERT emotion classification: F1 about 0.3 on mps vs 0.92 on
# cpu
for _issue, _classes, _name in (("17971", 6, "foreach"),):
    cases.add(
        f"issue-{_issue}-{_name}",
        _fine_tune(_name == "foreach"),
        issue=_issue,
        make=_task(_classes, (9,)),
        terms=10_000,
    )
# https://github.com/pytorch/pytorch/issues/128435: HF transformer inference gives poor scores
cases.add(
    "issue-128435",
    lambda weights, batches: [_encode(weights, ids, kept) for ids, kept, _ in batches],
    issue="128435",
    make=_task(3, (9, 12)),
    terms=2_000,
)


def _block_weights(d: Any, width: int, side: int, dtype: torch.dtype) -> Any:
    spread = (9 * width) ** -0.5
    names = ("first", "second")
    return (
        d.normal(2, width, side, side + 2 * d.k, dtype=dtype),
        {name: d.normal(width, width, 3, 3, dtype=dtype, scale=spread) for name in names},
        {name: d.uniform(0.5, 1.5, width, dtype=dtype) for name in names},
        {name: d.normal(width, dtype=dtype) for name in names},
        d.normal(3 * width, width, dtype=dtype, scale=width**-0.5),
    )


def _diffusion_block(x: Any, kernels: Any, gains: Any, shifts: Any, qkv: Any) -> Any:
    """A U-Net block: GroupNorm, SiLU, convolution, and so again, attention over the places, then down and up again."""
    y = x
    for name in ("first", "second"):
        y = F.conv2d(F.silu(F.group_norm(y, 8, gains[name], shifts[name])), kernels[name], shifts[name], padding=1)
    y = x + y
    batch, width, height, breadth = y.shape
    tokens = y.flatten(2).transpose(1, 2)
    q, k, v = (part.view(batch, -1, 4, width // 4).transpose(1, 2) for part in F.linear(tokens, qkv).chunk(3, dim=-1))
    if hasattr(F, "scaled_dot_product_attention"):
        mixed = F.scaled_dot_product_attention(q, k, v)
    else:
        mixed = torch.matmul(F.softmax(torch.matmul(q, k.transpose(-1, -2)) / (width // 4) ** 0.5, dim=-1), v)
    y = y + mixed.transpose(1, 2).reshape(batch, -1, width).transpose(1, 2).reshape(batch, width, height, breadth)
    small = F.avg_pool2d(y, 2)
    return (
        y,
        F.interpolate(small, scale_factor=2, mode="nearest") + y,
        F.interpolate(small, scale_factor=2, mode="bilinear"),
    )


# https://github.com/pytorch/pytorch/issues/141471: LTX-Video renders garbage after 2.4.1 (regression)
# https://github.com/pytorch/pytorch/issues/187280: SDXL fp16 corrupted on macOS 27 beta
# https://github.com/pytorch/pytorch/issues/89784: InvokeAI (SD) broken since nightly 1.14.0.dev20221104
for _issue in ("141471", "187280", "89784"):
    _dtype = torch.float32 if _issue == "89784" else torch.float16
    cases.add(
        f"issue-{_issue}",
        _diffusion_block,
        issue=_issue,
        terms=2_000,
        make=lambda d, dtype=_dtype, side={"141471": 8, "187280": 10, "89784": 12}[_issue]: _block_weights(
            d, 32, side, dtype
        ),
    )
    cases.add(
        f"issue-{_issue}-reported",
        _diffusion_block,
        issue=_issue,
        terms=20_000,
        full=True,
        states=("fresh", "again"),
        limit_seconds=300,
        make=lambda d, dtype=_dtype: _block_weights(d, 320, 32, dtype),
    )


@cases.case("issue-89784-backward", issue="89784", terms=10_000, make=lambda d: _block_weights(d, 32, 6, torch.float32))
def _diffusion_block_backward(x: Any, kernels: Any, gains: Any, shifts: Any, qkv: Any) -> Any:
    start, weight = leaf(x), leaf(qkv)
    learned = {name: leaf(kernel) for name, kernel in kernels.items()}
    return backward(_diffusion_block(start, learned, gains, shifts, weight)[1], start, weight, *learned.values())
