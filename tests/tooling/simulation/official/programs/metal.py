"""Run with an official wheel: its mps device against its own CPU. Prints a line `NAME ok`, or what went wrong."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import torch

functional: Any = torch.nn.functional

OPERATORS: Mapping[str, Callable[[Any], Any]] = {
    "add": lambda x: x + x,
    "mul": lambda x: x * 2.5,
    "relu": lambda x: (x - 2).relu(),
    "exp": lambda x: x.exp(),
    "sigmoid": lambda x: x.sigmoid(),
    "gelu": functional.gelu,
    "where": lambda x: torch.where(x > 2, x, -x),
    "floor_divide": lambda x: x.long() // 2,
    "remainder": lambda x: x.long() % 3,
    "bitwise_and": lambda x: x.int().bitwise_and(5),
    "any": lambda x: (x > 2).any(1),
    "half": lambda x: (x.half() * 2 + 1).float(),
    "bfloat16": lambda x: (x.bfloat16() * 3).sum().float(),
    "complex": lambda x: torch.complex(x, x).abs(),
    "sum": lambda x: (x.sum(), x.sum(1)),
    "mean": lambda x: x.mean(0),
    "var": lambda x: x.var(1),
    "argmax": lambda x: x.argmax(1),
    "amin": lambda x: x.amin(0),
    "isnan": lambda x: x.isnan().all(),
    "softmax": lambda x: (x.softmax(1), x.log_softmax(0)),
    "layer_norm": lambda x: functional.layer_norm(x, (3,)),
    "sort": lambda x: tuple(x.sort(1, descending=True)),
    "topk": lambda x: tuple(x.topk(2, 1)),
    "cumsum": lambda x: x.cumsum(1),
    "unique": lambda x: x.unique(),
    "contiguous": lambda x: x.t().contiguous(),
    "cat": lambda x: torch.cat([x, x]),
    "index": lambda x: x[:, [2, 0]],
    "slice": lambda x: x[1:, ::2] * 2,
    "tril": lambda x: x.tril(),
    "gather": lambda x: x.gather(1, torch.tensor([[0, 2], [1, 1]], device=x.device)),
    "scatter_add": lambda x: torch.zeros(2, 3, device=x.device).scatter_add(
        1, torch.tensor([[0, 2, 2], [1, 1, 0]], device=x.device), x
    ),
    "embedding": lambda x: functional.embedding(torch.tensor([1, 0], device=x.device), x),
    "masked_fill": lambda x: x.masked_fill(x > 2, -1),
    "nonzero": lambda x: x.nonzero(),
    "mm": lambda x: x @ x.t(),
    "linear": lambda x: functional.linear(x, torch.ones(4, 3, device=x.device), torch.arange(4.0, device=x.device)),
    "conv2d": lambda x: functional.conv2d(x.reshape(1, 1, 2, 3), torch.ones(1, 1, 2, 2, device=x.device)),
    "max_pool2d": lambda x: functional.max_pool2d(x.reshape(1, 1, 2, 3), 2),
    "solve": lambda x: torch.linalg.solve(torch.eye(3, device=x.device) * 2 + 1, x.t()),
    "cholesky": lambda x: torch.linalg.cholesky(torch.eye(3, device=x.device) * 4 + 1),
    "attention": lambda x: functional.scaled_dot_product_attention(
        *(torch.linspace(-1, 1, 64, device=x.device).reshape(1, 1, 8, 8) for _ in "qkv")
    ),
    "losses": lambda x: (
        functional.binary_cross_entropy_with_logits(x, (x > 2).float()),
        functional.mse_loss(x, x + 1),
    ),
    "large": lambda x: (torch.ones(300, 400, device=x.device) + 1, torch.ones(300, 400, device=x.device).sum()),
}


def equal(one: Any, other: Any) -> bool:
    if isinstance(other, tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(
        one.dtype == other.dtype
        and one.shape == other.shape
        and torch.allclose(one.cpu().double(), other.double(), atol=1e-5, rtol=1e-5, equal_nan=True)
    )


def close(one: Any, other: Any) -> bool:
    return bool(torch.allclose(one, other, atol=1e-5))


def operators() -> None:
    """Each against the CPU; a line `differs NAME REASON` of each that does not equal it."""
    given, wrong = torch.arange(6.0).reshape(2, 3), []
    for name, function in OPERATORS.items():
        try:
            reason = "" if equal(function(given.to("mps")), function(given)) else "other values"
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
        if reason:
            wrong.append(name)
            print("differs", name, reason, flush=True)
    assert not wrong, f"{len(OPERATORS) - len(wrong)} of {len(OPERATORS)} hold"


def training() -> None:
    def trained(device: str) -> list[Any]:
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3).to(device)
        optimiser = torch.optim.Adam(model.parameters(), 1e-2)
        given = torch.linspace(-1, 1, 20).reshape(5, 4).to(device)
        for _ in range(3):
            optimiser.zero_grad()
            loss = (model(given) ** 2).mean()
            loss.backward()
            optimiser.step()
        return [each.detach().cpu() for each in (*model.parameters(), loss)]

    assert all(map(close, trained("cpu"), trained("mps")))


def faults() -> None:
    """A kernel that leaves its buffer is named with its place, and the process goes on."""
    if not hasattr(getattr(torch, "mps", None), "compile_shader"):  # before 2.7
        return
    library = torch.mps.compile_shader(
        "kernel void far(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i + 500] = 1; }"
        "kernel void near(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {"
        " uint3 k = 0; k = 2u * k; out[i] = 7 + k.x; }"
    )
    out = torch.zeros(4, device="mps")
    try:
        library.far(out)
        torch.mps.synchronize()
    except RuntimeError as error:
        assert "kernel far: it reads or writes outside of its buffers (thread 0, 0, 0" in str(error), error
    else:
        raise AssertionError("no error")
    library.near(out)
    assert out.tolist() == [7] * 4


def end() -> None:
    """The process ends while work is queued."""
    given = torch.ones(64, 64, device="mps")
    for _ in range(50):
        given = given @ given * 0.01


for check in (operators, training, faults, end):
    try:
        check()
        print(check.__name__, "ok", flush=True)
    except Exception:
        print(check.__name__, traceback.format_exc(), flush=True)
sys.exit(3)
