"""One run of a workload: which device it is for, what it writes, the fault that is held around it."""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import sys
import warnings
from pathlib import Path
from typing import Any, Callable, ContextManager, Iterator

import torch

from .events import Events
from .observer import Observer
from .own_work import own_work, tell_own_fault

# The suite beside this one knows how a fault is loaded: docs/verify/injected_faults.md.
sys.path.insert(0, str(Path(__file__).parents[2] / "device"))

from engine.faults import InjectedFault

LIMIT_SECONDS = 900.0


class ChildRun:
    """What a workload was given, and where it reports what it saw.

    `is_device` is true for the run on the device under test; the other is the CPU's, which holds the float64
    reference too and compares the first gradients.
    """

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self.name = name
        self.is_device = options.run == "device"
        self.events = Events(options.outcomes)
        self.exchange: Path = options.exchange
        self.steps: int | None = options.steps
        self.compared: int = options.compared
        self.force_cpu: bool = options.force_cpu
        self.expected: str = options.expect
        self._fault = InjectedFault(options.inject) if options.inject and self.is_device else None

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Tell the beginning and the end; count the warnings that an operator fell back to the CPU."""
        self.events.tell("started", id=self.name, limit_seconds=LIMIT_SECONDS)
        self.events.tell("session", **_versions())
        fallen: list[str] = []
        shown = warnings.showwarning

        def note(message: Any, *rest: Any, **more: Any) -> None:
            if "fall back to run on the CPU" in str(message):
                fallen.append(str(message).split("(Triggered", maxsplit=1)[0].strip())
            shown(message, *rest, **more)

        warnings.showwarning = note  # type: ignore[assignment]
        try:
            yield
        except BaseException as raised:
            tell_own_fault(self.events, raised)
            raise
        finally:
            warnings.showwarning = shown
        self.events.tell("fallbacks", operators=sorted(set(fallen)))
        if self._fault is not None:
            self.events.tell("fault", name=self._fault.name, hits=self._fault.hits)
        self.events.tell("finished", id=self.name)
        self.events.tell("end")

    @property
    def fault_hits(self) -> int | None:
        """How often the fault fired so far; None where its file does not count, or there is none."""
        return self._fault.hits if self._fault is not None else None

    def injected(self) -> ContextManager[Any]:
        """Return what is to be held around the training: the fault, in the device run."""
        return self._fault.maker() if self._fault is not None else contextlib.nullcontext()

    def observer(self) -> Observer:
        """Return the observer of the training itself."""
        return Observer(self.events, compared=self.compared)

    def reference(self) -> Observer:
        """Return the observer of the same training's first steps in float64."""
        return Observer(None, compared=self.compared, stop_after=self.compared)

    def report(self, seen: Observer, accuracy: float, count: int, reference: Observer | None = None) -> None:
        """Tell what a training came to; the reference run compares with its reference and with the device run."""
        self.events.tell("losses", losses=seen.losses, batches=seen.batches, steps=seen.steps)
        self.events.tell("accuracy", value=accuracy, count=count)
        path = self.exchange / "first_gradients.pt"
        if self.is_device:
            torch.save(seen.gradients, str(path))
            return
        if reference is None:
            raise ValueError("the reference run compares with a float64 reference")
        self.events.tell("reference", losses=reference.losses, batches=reference.batches)
        device = torch.load(str(path), map_location="cpu") if path.is_file() else None
        with own_work("the comparison of gradients"):
            figures = compare_gradients(device, seen.gradients, reference.gradients)
        self.events.tell("gradients", parameters=figures)


def run_training(name: str, training_function: Callable[[ChildRun, Observer, torch.dtype], tuple[float, int]]) -> None:
    """Run the run that the command line asks for: the training, and on the CPU its reference in float64 too.

    `training_function` returns (accuracy, of how many examples).
    """
    run = ChildRun(name, parser().parse_args())
    with run.running():
        seen = run.observer()
        with run.injected():
            accuracy, count = training_function(run, seen, torch.float32)
        reference = None
        if not run.is_device:
            reference = run.reference()
            training_function(run, reference, torch.float64)
        run.report(seen, accuracy, count, reference)


def compare_gradients(device: Any, same: Any, reference: Any) -> dict[str, dict[str, Any]]:
    """Return for each parameter how far the device's and the CPU's own first gradient lie from the float64 one."""
    figures = {}
    for name, gradient in reference.items():
        wanted = gradient.double()
        figures[name] = {
            "device": _off(None if device is None else device.get(name), wanted),
            "cpu": _off(same.get(name), wanted),
            "scale": float(wanted.abs().max()) if wanted.numel() else 0.0,
        }
    return figures


def _off(gradient: Any, wanted: torch.Tensor) -> float | None:
    if gradient is None or gradient.shape != wanted.shape:
        return None
    if not wanted.numel():
        return 0.0
    return float((gradient.double() - wanted).abs().max())


def parser() -> argparse.ArgumentParser:
    """Return the options that every workload has."""
    options = argparse.ArgumentParser(allow_abbrev=False)
    options.add_argument("--run", choices=("device", "cpu"), required=True)
    options.add_argument("--expect", choices=("mps", "cuda", "cpu"), required=True)
    options.add_argument("--outcomes", type=Path, required=True)
    options.add_argument("--exchange", type=Path, required=True)
    options.add_argument("--steps", type=int, help="end after so many steps (without a gate on the accuracy)")
    options.add_argument("--compared", type=int, default=20, help="how many first steps are compared")
    options.add_argument("--force-cpu", action="store_true", help="ask the library for the CPU by its own argument")
    options.add_argument("--inject", metavar="FILE.py:NAME")
    return options


def _versions() -> dict[str, Any]:
    """Return what runs here; libraries that were not imported are left out."""
    found = {
        name: str(getattr(sys.modules[name], "__version__", "?"))
        for name in ("torch", "accelerate", "transformers", "sklearn", "numpy")
        if name in sys.modules
    }
    return dict(
        found,
        python=platform.python_version(),
        threads=torch.get_num_threads(),
        fallback=os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK"),
    )
