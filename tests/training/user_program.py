"""A program of the user's own, as it is, watched from within: one run on the device, one on the CPU.

    python user_program.py --run device --expect mps --outcomes FILE --exchange DIR --program train.py -- ARGUMENTS

Every call of `backward` on a loss is a step; after the first 20 the program is ended. `{device}` in the arguments is
the run's device. In the reference run every accelerator says that it is not there. Dropout is off in both runs: each
device draws its masks by a generator of its own. How far roundings alone carry the losses is measured on the CPU, by
the same program with weights that are off by a rounding.
"""

from __future__ import annotations

import argparse
import os
import random
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import torch
from torch import nn
from torch.nn import functional

from training_suite.child_run import ChildRun, compare_gradients, parser
from training_suite.events import Events
from training_suite.observer import Observer, fetch, fingerprint
from training_suite.own_work import own_work, tell_own_fault

_SEED = 20220518


class _Enough(BaseException):
    """The compared steps are done; no `except Exception` of the program's may hold it."""


class _Watch:
    """Sees each outermost model's call and each loss's backward."""

    def __init__(self, observer: Observer, *, jittered: bool) -> None:
        self.observer, self._jittered = observer, jittered
        self._depth = 0
        self._model: Any = None
        self._batch: dict[str, Any] = {}
        self._began_with = ""

    def install(self) -> None:
        call: Callable[..., Any] = nn.Module.__call__
        backward = torch.Tensor.backward
        watch = self

        def watched_call(module: Any, *given: Any, **named: Any) -> Any:
            if watch._depth == 0 and torch.is_grad_enabled() and next(iter(module.parameters()), None) is not None:
                watch._called(module, given, named)
            watch._depth += 1
            try:
                return call(module, *given, **named)
            finally:
                watch._depth -= 1

        def watched_backward(loss: Any, *given: Any, **named: Any) -> Any:
            result = backward(loss, *given, **named)
            if loss.numel() == 1 and watch._model is not None:
                watch._stepped(loss)
            return result

        nn.Module.__call__ = watched_call  # type: ignore[method-assign]
        torch.Tensor.backward = watched_backward  # type: ignore[method-assign]

    def _called(self, module: Any, given: Any, named: Any) -> None:
        self._model = module
        items = [*enumerate(given), *named.items()]
        found = {str(name): value for name, value in items if isinstance(value, torch.Tensor)}
        for name, value in items:
            if isinstance(value, (list, tuple)):
                found.update({f"{name}.{at}": each for at, each in enumerate(value)})
        self._batch = {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}
        if not self._began_with:
            weights = fetch(dict(module.named_parameters()))
            with own_work("the observer"):
                self._began_with = fingerprint(weights)
            if self._jittered:
                _jitter(module)

    def _stepped(self, loss: Any) -> None:
        self.observer.saw(self._model, self._batch, loss)
        if self.observer.steps == 1:  # runs that begin with other weights cannot be compared either
            self.observer.batches[0] += " " + self._began_with
        if self.observer.done:
            raise _Enough


def _jitter(module: Any) -> None:
    """Move each weight by a rounding; the program's own random numbers stay as they are."""
    own = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in module.parameters():
            if weight.is_floating_point():
                signs = torch.randint(0, 2, weight.shape, generator=own).to(weight) * 2.0 - 1.0
                weight.mul_(1.0 + torch.finfo(weight.dtype).eps * signs)


def main() -> None:
    options = _options()
    if options.jitter:
        observer = Observer(None, compared=options.compared, stop_after=options.compared)
        try:
            seen = _watched(observer, options, jittered=True)
        except BaseException as raised:
            tell_own_fault(Events(options.outcomes), raised)
            raise
        kept = {"losses": seen.losses, "batches": seen.batches, "gradients": seen.gradients}
        torch.save(kept, str(options.exchange / "jittered.pt"))
        return
    run = ChildRun("script", options)
    with run.running():
        with run.injected():
            observer = Observer(run.events, compared=run.compared, stop_after=run.compared)
            seen = _watched(observer, options, jittered=False)
        path = run.exchange / "first_gradients.pt"
        if run.is_device:
            run.events.tell("losses", losses=seen.losses, batches=seen.batches, steps=seen.steps)
            torch.save(seen.gradients, str(path))
            return
        subprocess.run([sys.executable, *_again()], check=True)
        jittered = torch.load(str(run.exchange / "jittered.pt"), map_location="cpu")
        run.events.tell("losses", losses=jittered["losses"], batches=jittered["batches"], steps=seen.steps)
        run.events.tell("reference", losses=seen.losses, batches=seen.batches)
        device = torch.load(str(path), map_location="cpu") if path.is_file() else None
        with own_work("the comparison of gradients"):
            figures = compare_gradients(device, jittered["gradients"], seen.gradients)
        run.events.tell("gradients", parameters=figures)


def _again() -> list[str]:
    return [sys.argv[0], "--jitter", *sys.argv[1:]]


def _watched(observer: Observer, options: argparse.Namespace, *, jittered: bool) -> Observer:
    """Run the program until its end or the last compared step, and return what was seen."""
    device = options.expect if options.run == "device" else "cpu"
    if device == "cpu":
        _hide_accelerators()
    _without_dropout()
    _seed()
    watch = _Watch(observer, jittered=jittered)
    watch.install()
    program = options.program.resolve()
    kept = sys.argv[:]
    sys.argv[:] = [str(program), *(word.replace("{device}", device) for word in options.arguments)]
    sys.path.insert(0, str(program.parent))
    try:
        runpy.run_path(str(program), run_name="__main__")
    except _Enough:
        pass
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    finally:
        sys.argv[:] = kept
    if not observer.steps:
        sys.exit(f"{program}: ended without a step: no loss of one number was given to backward")
    return observer


def _hide_accelerators() -> None:
    """Let every accelerator say that it is not there: what chooses a device by itself then takes the CPU."""
    os.environ["ACCELERATE_USE_CPU"] = "true"
    torch.cuda.is_available = lambda: False
    torch.cuda.device_count = lambda: 0
    backend: Any = getattr(torch.backends, "mps", None)
    if backend is not None:
        backend.is_available = lambda: False
        backend.is_built = lambda: False
    accelerator: Any = getattr(torch, "accelerator", None)
    if accelerator is not None:
        accelerator.is_available = lambda: False
        accelerator.current_accelerator = lambda *_, **__: None


def _without_dropout() -> None:
    def same(given: Any, *_: Any, **__: Any) -> Any:
        return given

    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
        if hasattr(functional, name):
            setattr(functional, name, same)
    fused: Any = getattr(functional, "scaled_dot_product_attention", None)
    if fused is not None:

        def without(*given: Any, **named: Any) -> Any:
            named["dropout_p"] = 0.0
            return fused(*given[:4], *((0.0, *given[5:]) if len(given) > 4 else ()), **_one(named, len(given) > 4))

        functional.scaled_dot_product_attention = without


def _one(named: dict[str, Any], positional: bool) -> dict[str, Any]:
    return {name: value for name, value in named.items() if not (positional and name == "dropout_p")}


def _seed() -> None:
    random.seed(_SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_SEED)
    torch.manual_seed(_SEED)


def _options() -> argparse.Namespace:
    options = parser()
    options.add_argument("--program", type=Path, required=True)
    options.add_argument("--jitter", action="store_true", help="the CPU's run with weights that are off by a rounding")
    own, rest = sys.argv[1:], []
    if "--" in own:
        own, rest = own[: own.index("--")], own[own.index("--") + 1 :]
    found = options.parse_args(own)
    found.arguments = rest
    return found


if __name__ == "__main__":
    main()
