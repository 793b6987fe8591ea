"""Injected faults that nobody chose: operators that MPS has a kernel for x mechanisms (mechanisms.py), drawn by a seed.

python tests/sensitivity/fresh_faults.py --seed 1 [--count 100]

A draw takes a mechanism, an operator, one of its overloads that public calls dispatch, and a place in its schema, each
evenly. It counts where a witness exists that has nothing to do with the suite: a call that PyTorch's own samples (op_db
of torch.testing) dispatch, changed until it meets the mechanism's condition, which the CPU answers alike two times and
the fault otherwise. Else the next is drawn.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import random
import warnings
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from differences import differ
from mechanisms import MECHANISMS, Call, Mechanism, tensors, value_of, with_value, written

KERNELS = Path(__file__).with_name("mps_kernels.json")
# Answers of these are random, or lie in memory that nobody wrote.
_OPEN = (
    "rand",
    "normal",
    "bernoulli",
    "multinomial",
    "dropout",
    "empty",
    "uniform",
    "exponential",
    "cauchy",
    "geometric",
)
_SAMPLES, _CALLS, _MOST = 6, 8, 4096


class Fault:
    """One fault of one overload; calling it gives the context manager that holds it. `hits`: answers it changed."""

    def __init__(self, overload: str, mechanism: Mechanism, detail: Any) -> None:
        self.overload, self.mechanism, self.detail = overload, mechanism, detail
        self.hits = 0
        self.kept: dict[Any, Any] = {}

    def __str__(self) -> str:
        detail = self.detail if isinstance(self.detail, tuple) else (self.detail,)
        return ": ".join(filter(None, (self.overload, self.mechanism.name, " ".join(map(str, detail)))))

    def __call__(self) -> Holding:
        return Holding(self)

    def answer(self, func: Any, call: Call) -> Any:
        """Return what the faulty overload answers, and count it where it is wrong.

        Raises:
            RuntimeError: the mechanism refuses the call.
        """
        mechanism, detail = self.mechanism, self.detail
        if not mechanism.meets(func, call, detail):
            return func(*call[0], **call[1])
        targets = written(func, call)
        if mechanism.misread is not None:
            return self._misread(func, call, targets, mechanism.misread(func, call, detail))
        if mechanism.remembers:
            return self._remembered(func, call, targets)
        if not (mechanism.spoil or mechanism.loses):
            func(*call[0], **call[1])  # what the operator itself refuses it refuses in its own words
            self.hits += 1
            raise RuntimeError(f"{self.overload} is refused by the injected fault")
        before = [x.clone() for x in targets]
        right = func(*call[0], **call[1])
        if mechanism.loses:
            return self._written(right, targets, before)
        assert mechanism.spoil is not None
        place = detail if mechanism.name == "one of the gradients" else 0
        if targets:
            return self._written(right, targets, [mechanism.spoil(x) if not i else x for i, x in enumerate(targets)])
        leaves, spec = tree_flatten(right)
        numbers = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor) and x.layout == torch.strided]
        if place >= len(numbers):
            return right
        wrong = mechanism.spoil(leaves[numbers[place]])
        if not _differ([leaves[numbers[place]]], [wrong]):
            return right
        self.hits += 1
        leaves[numbers[place]] = wrong
        return tree_unflatten(leaves, spec)

    def _misread(self, func: Any, call: Call, targets: list[torch.Tensor], other: Call) -> Any:
        before = [x.clone() for x in targets]
        right = func(*call[0], **call[1])
        kept = [x.clone() for x in targets]
        for x, value in zip(targets, before):
            if x.shape == value.shape:
                x.copy_(value)
        wrong = func(*other[0], **other[1])
        self.hits += int(_differ(kept or right, targets or wrong))
        return wrong

    def _remembered(self, func: Any, call: Call, targets: list[torch.Tensor]) -> Any:
        form = _form(func, call, self.detail)
        if self.mechanism.remembers == "option":
            value = value_of(func, call, self.detail)
            if form not in self.kept or self.kept[form] == value:
                self.kept.setdefault(form, value)
                return func(*call[0], **call[1])
            return self._misread(func, call, targets, with_value(func, call, self.detail, self.kept[form]))
        right = func(*call[0], **call[1])
        if form not in self.kept:
            self.kept[form] = tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, targets or right)
            return right
        if targets:
            return self._written(right, targets, self.kept[form])
        self.hits += int(_differ(right, self.kept[form]))
        return tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, self.kept[form])

    def _written(self, right: Any, targets: list[torch.Tensor], wrong: list[torch.Tensor]) -> Any:
        """Write wrong values over the right ones, where a destination takes them."""
        pairs = [(x, y) for x, y in zip(targets, wrong) if x.shape == y.shape and 0 not in x.stride()]
        self.hits += int(_differ([x for x, _ in pairs], [y for _, y in pairs]))
        for x, y in pairs:
            x.copy_(y)
        return right


class Holding(TorchDispatchMode):
    """Holds a fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self._fault = fault

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(func) != self._fault.overload:
            return func(*args, **(kwargs or {}))
        return self._fault.answer(func, (args, kwargs or {}))


def _form(func: Any, call: Call, without: Any) -> Any:
    """Return what a graph's key should tell apart, but for one argument: shapes, dtypes, options."""
    call = with_value(func, call, without, None) if without else call
    return tuple((x.dtype, tuple(x.shape)) if isinstance(x, torch.Tensor) else str(x) for x in tree_flatten(call)[0])


def _differ(one: Any, other: Any) -> bool:
    return any(differ(x, y, 1e-3, 1e-4) for x, y in zip(tensors(one), tensors(other)))


# Witnesses: calls that upstream's samples dispatch.


class _Recorder(TorchDispatchMode):
    """Keeps some calls of each overload, as they were made."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[Any, list[Call]] = defaultdict(list)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = args, kwargs or {}
        kept = self.calls[func]
        if len(kept) < _CALLS and sum(x.numel() for x in tensors(call)) <= _MOST:
            kept.append(_copied(call))
        return func(*args, **(kwargs or {}))


def _copied(call: Call) -> Call:
    copied: Call = tree_map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, call)
    return copied


def recorded() -> dict[Any, list[Call]]:
    """Return calls of each overload that upstream's samples dispatch: forward, backward, in place, out=."""
    from torch.testing._internal.common_methods_invocations import op_db

    recorder = _Recorder()
    for operator in op_db:
        torch.manual_seed(0)
        if torch.float32 not in operator.dtypes:
            continue
        needs = operator.supports_autograd
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for sample in itertools.islice(operator.sample_inputs("cpu", torch.float32, requires_grad=needs), _SAMPLES):
                _run(recorder, operator.op, sample, needs)
                plain = sample.transform(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x)
                if operator.supports_out:
                    _run_with_out(recorder, operator.op, plain)
                if operator.inplace_variant and isinstance(sample.input, torch.Tensor):
                    _run(recorder, operator.inplace_variant, plain, False)
    return dict(recorder.calls)


def _run(recorder: _Recorder, function: Any, sample: Any, needs: bool) -> None:
    try:
        with recorder:
            answer = function(sample.input, *sample.args, **sample.kwargs)
            wanted = [x for x in tensors(answer) if x.requires_grad] if needs else []
            if wanted:
                sum(x.abs().sum() for x in wanted).backward()  # type: ignore[union-attr]
    except Exception:  # a sample that this build of torch refuses is no witness
        return


def _run_with_out(recorder: _Recorder, function: Any, sample: Any) -> None:
    try:
        answer = function(sample.input, *sample.args, **sample.kwargs)
        out = tree_map(torch.empty_like, tuple(answer) if isinstance(answer, tuple) else answer)
        with recorder:
            function(sample.input, *sample.args, **sample.kwargs, out=out)
    except Exception:
        return


def is_shown(fault: Fault, func: Any, calls: list[Call]) -> bool:
    """Say whether the fault changes the answer to a recorded call, or to one made of it, which the CPU repeats."""
    for recorded_call in calls:
        try:
            call = fault.mechanism.provoke(func, _copied(recorded_call), fault.detail)
            if call is None or not fault.mechanism.meets(func, call, fault.detail):
                continue
            if not _repeats(func, call):
                continue
            if fault.mechanism.remembers:
                fault.answer(func, _first_of(fault, func, _copied(recorded_call)))
        except Exception:
            continue
        try:
            fault.answer(func, call)
        except Exception:
            if not fault.hits:
                continue
        if fault.hits:
            return True
    return False


def _in_a_child(ask: Callable[[], bool]) -> bool:
    """Return an answer of a forked process: some kernels of the CPU end it where sizes are others than they expect."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os._exit(0 if ask() else 1)
    return os.waitpid(child, 0)[1] == 0


def _first_of(fault: Fault, func: Any, call: Call) -> Call:
    """Return the earlier call: with other options as it is, else with other values."""
    if fault.mechanism.remembers == "option":
        return call
    changed: Call = tree_map(
        lambda x: x.flip(-1) + 1 if isinstance(x, torch.Tensor) and x.is_floating_point() and x.dim() else x, call
    )
    return changed


def _repeats(func: Any, call: Call) -> bool:
    """Whether the CPU takes a call and answers it two times with the same bits."""
    answers = []
    for _ in range(2):
        targets = written(func, call)
        before = [x.clone() for x in targets]
        answer = func(*call[0], **call[1])
        answers.append([x.clone() for x in tensors(targets or answer)])
        for x, value in zip(targets, before):
            x.copy_(value)
    return bool(answers[0]) and not any(differ(x, y) for x, y in zip(*answers))


@dataclass(frozen=True)
class Sample:
    """Faults of one seed, and how many draws had no witness."""

    faults: list[Fault]
    without: int


def drawn(seed: int, count: int, calls: dict[Any, list[Call]] | None = None) -> Sample:
    """Draw so many faults, each with a witness.

    Args:
        calls: of each overload; upstream's samples unless given.
    """
    calls = recorded() if calls is None else calls
    universe = _universe(calls)
    rng, found, without = random.Random(seed), [], 0
    fitting = {mechanism.name: _fitting(mechanism, universe) for mechanism in MECHANISMS}
    mechanisms = [one for one in MECHANISMS if fitting[one.name]]
    seen = set()
    while len(found) < count:
        mechanism = rng.choice(mechanisms)
        overloads = fitting[mechanism.name]
        func = rng.choice(overloads[rng.choice(list(overloads))])
        fault = Fault(str(func), mechanism, rng.choice(list(mechanism.places(func._schema))))
        if str(fault) in seen:
            continue
        seen.add(str(fault))
        if _in_a_child(functools.partial(is_shown, fault, func, calls[func])):
            found.append(Fault(fault.overload, mechanism, fault.detail))
        else:
            without += 1
    return Sample(found, without)


def _fitting(mechanism: Mechanism, universe: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the overloads with a place for a mechanism, by operator."""
    found = {
        name: [one for one in overloads if list(mechanism.places(one._schema))] for name, overloads in universe.items()
    }
    return {name: overloads for name, overloads in found.items() if overloads}


def _universe(calls: dict[Any, list[Call]]) -> dict[str, list[Any]]:
    """Return the overloads that may be drawn, by operator: MPS has a kernel for one of its overloads."""
    kernels = {one.partition(".")[0] for one in json.loads(KERNELS.read_text(encoding="utf-8"))["kernel"].split()}
    found: dict[str, list[Any]] = defaultdict(list)
    for func in sorted(calls, key=str):
        name = func._schema.name.partition("::")[2]
        is_view = any(one.alias_info is not None and not one.alias_info.is_write for one in func._schema.returns)
        if name in kernels and calls[func] and not is_view and not any(part in name for part in _OPEN):
            found[name].append(func)
    return dict(found)


def main() -> None:
    """Print a sample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    given = parser.parse_args()
    torch.set_num_threads(1)  # each draw is a fork
    sample = drawn(given.seed, given.count)
    print(*sample.faults, sep="\n")
    print(f"{len(sample.faults)} faults; {sample.without} draws have no witness")


if __name__ == "__main__":
    main()
