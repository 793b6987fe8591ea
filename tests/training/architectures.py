"""Transformers: each architecture forward, backward and one optimiser's step, against the CPU in float64."""

from __future__ import annotations

import argparse
import copy
import functools
from pathlib import Path
from typing import Any

import torch
import transformers

from training_suite.cases import (
    GRADIENT_FLOOR,
    OUTPUT_FLOOR,
    SMALLEST_SHARE,
    Bench,
    Wrong,
    largest,
    moved,
    on_the_cpu,
    run_cases,
)
from training_suite.child_run import ChildRun, parser
from training_suite.models import MODELS, SEED, build
from training_suite.real_weights import load_with_batch

RATE = 1e-2
# AdamW's first step is the rate times the gradient's sign: only where the gradient is no noise has it one.
CLEAR = 1e-2


def run_of(master: torch.nn.Module, batch: dict[str, torch.Tensor], device: Any, dtype: torch.dtype) -> dict[str, Any]:
    """Return what one forward, backward and step on a device come to."""
    model = copy.deepcopy(master).to(dtype).to(device)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    answer = model(**moved(batch, device, dtype))
    output = next(value for key, value in answer.items() if key != "loss" and torch.is_tensor(value))
    loss = getattr(answer, "loss", None)
    if loss is None:
        weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(SEED)).to(device).to(dtype)
        loss = (output * weights).sum() / output.numel() ** 0.5
    loss.backward()
    gradients = {n: p.grad.detach().clone() for n, p in model.named_parameters() if p.grad is not None}
    optimizer.step()
    steps = {name: parameter.detach() - before[name] for name, parameter in model.named_parameters()}
    return {"output": output, "loss": loss, "gradients": gradients, "steps": steps}


def ask(bench: Bench, master: torch.nn.Module, batch: dict[str, torch.Tensor]) -> None:
    """Compare one model's device run with the CPU's in its own type and in float64."""
    with on_the_cpu():
        same = run_of(master, batch, "cpu", torch.float32)
        reference = run_of(master, batch, "cpu", torch.float64)
    with bench.injected():
        device = run_of(master, batch, bench.device, torch.float32)
        bench.is_there("output", device["output"], device["loss"])
        bench.is_there("gradients", *device["gradients"].values())
    bench.compare("output", device["output"], same["output"], reference["output"], floor=OUTPUT_FLOOR)
    bench.compare("loss", device["loss"], same["loss"], reference["loss"], floor=OUTPUT_FLOOR)
    least = SMALLEST_SHARE * largest(reference["gradients"].values())
    # The last layers first: the first that differs is nearest to the fault.
    for name in reversed(list(reference["gradients"])):
        if name not in device["gradients"]:
            raise Wrong(f"{name}: no gradient reached it")
        runs = (run["gradients"][name] for run in (device, same, reference))
        bench.compare(f"gradient of {name}", *runs, floor=GRADIENT_FLOOR, least=least)
    for name, gradient in reference["gradients"].items():
        scale = float(gradient.abs().max())
        clear = (gradient.abs() > CLEAR * scale) & (gradient.abs() > least)
        runs = (run["steps"][name].cpu()[clear] for run in (device, same, reference))
        bench.compare(f"step of {name}", *runs, floor=GRADIENT_FLOOR)


def of_config(bench: Bench, *, name: str) -> None:
    ask(bench, *build(name))


def of_weights(bench: Bench, *, path: Path) -> None:
    ask(bench, *load_with_batch(path))


def main(options: argparse.Namespace) -> None:
    transformers.logging.set_verbosity_error()
    run = ChildRun("transformers-architectures", options)
    run.events.tell("session", transformers=transformers.__version__, torch=torch.__version__)
    cases: dict[str, Any] = {f"transformers-{name}": functools.partial(of_config, name=name) for name in MODELS}
    if options.real_weights:
        cases = {"transformers-real-weights": functools.partial(of_weights, path=options.real_weights)}
    run_cases(cases, run.events, run.expected, run.injected, after=options.after, hits=lambda: run.fault_hits)


if __name__ == "__main__":
    arguments = parser()
    arguments.add_argument("--after", metavar="CASE")
    arguments.add_argument("--real-weights", metavar="DIR", type=Path)
    main(arguments.parse_args())
