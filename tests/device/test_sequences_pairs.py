"""Sequences: a producer that leaves an unusual layout, then a consumer sensitive to it; all pairs, with gradients."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.consumers import CONSUMERS, Consumer
from device_suite.layout_cases import tensors_of
from device_suite.producers import PRODUCERS, Producer

cases = Cases("sequences")
HALVES = (torch.float16, torch.bfloat16)
# What half precision is asked of: every consumer, after these.
_FEW = ("permuted", "some_channels", "every_second", "expanded_batch", "convolved_last")


def _derived(produce: Producer, consume: Consumer, base: torch.Tensor, operands: Any) -> Any:
    """Return what comes out, and the gradients of the base and of every operand, each weighted unevenly."""
    start, others = leaf(base), [leaf(one) for one in operands]
    results = tensors_of(consume.act(produce.act(start), *others))
    wanted = [result for result in results if result.requires_grad]
    weights = [_weights(result) for result in wanted]
    torch.autograd.backward(wanted, weights)
    return results, start.grad, [one.grad for one in others]


def _weights(result: torch.Tensor) -> torch.Tensor:
    """Return a gradient of the result's form that differs at every place, in another layout where it has two sides."""
    ramp = (torch.arange(result.numel(), device=result.device, dtype=torch.float32) % 13 - 5) / 8
    if result.dim() < 2:
        return ramp.reshape(result.shape).to(result.dtype)
    return ramp.reshape((*result.shape[:-2], result.shape[-1], result.shape[-2])).mT.to(result.dtype)


def _asked(produce: Producer, consume: Consumer) -> Any:
    def act(base: torch.Tensor, *operands: torch.Tensor) -> Any:
        if consume.gradients:
            return _derived(produce, consume, base, operands)
        return consume.act(produce.act(base), *operands)

    return act


def _add(produce: Producer, consume: Consumer, dtype: torch.dtype = torch.float32) -> None:
    if (consume.writes or consume.distinct) and produce.shared:
        return  # several places are one element: what is written is undefined, and the largest is not unique
    if (consume.exact and not produce.view) or (consume.distinct and dtype == torch.bfloat16):
        return  # rounding decides which of two is larger

    def make(d: Any) -> Any:
        draw = d.distinct if consume.distinct else d.normal
        return (draw(*produce.base, dtype=dtype), *(d.normal(*shape, dtype=dtype) for shape in consume.operands))

    cases.add(
        f"sequence-{produce.name}-{consume.name}" + ("" if dtype == torch.float32 else "-" + str(dtype)[6:]),
        _asked(produce, consume),
        make=make,
        terms=256 if dtype == torch.float32 else 64,
        floor=0.25 if dtype == torch.float32 else 0.0,
        since="2.0",
        states=("fresh", "polluted") if produce.name in _FEW and dtype == torch.float32 else ("fresh",),
        deterministic=False,
        may_be_missing=True,
    )


for _produce in PRODUCERS:
    for _consume in CONSUMERS:
        _add(_produce, _consume)
        if _produce.name in _FEW:
            for _dtype in HALVES:
                _add(_produce, _consume, _dtype)
