"""Make tests/device/device_suite/overloads/calls.json: calls of each overload under the conditions that no case has.

python tests/sensitivity/conditions_table.py --keep kept.pickle
python tests/sensitivity/overload_calls.py kept.pickle [--only NAME,...] [--reasons FILE] [--device cuda --shard I/N]
python tests/sensitivity/overload_calls.py --check [--only NAME,...]   # after a change of free_choice.py
    --output .../overloads/more_calls.json   # asked since torch 2.13, beside those that there are

A call that the suite makes, or one of seed_calls.json, is changed in one thing or a few: a dtype, a layout, a size, a
rank, an argument. It is kept where the CPU answers it and where a device that is right is called right: one that rounds
otherwise, one that chooses otherwise. With --device a real one is asked besides, in this process; the reasons name it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pickle
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import suite_in_process  # noqa: F401 - the device suite comes into reach by it
from call_changes import change_call, describe
from conditions import Conditions, Facts
from conditions_reach import KERNELS, Reach, name_of, reach_in_a_child, runs_on_mps
from device_suite.compare import Mismatch
from device_suite.overloads import asking
from device_suite.overloads.asking import CALLS
from device_suite.overloads.described import overload
from device_suite.runs import Bench
from device_suite.states import Refused
from free_choice import ChoosesOtherwise
from generic_plants import UNDEFINED
from rounding import RoundsOtherwise

SEEDS = Path(__file__).parent / "seed_calls.json"
KINDS = ("dtypes", "arguments", "layouts", "sizes")
_SECONDS, _TOGETHER = 12.0, 3


def is_drawn(func: Any) -> bool:
    """Say whether an overload's answer is random, or fresh memory."""
    name = name_of(func).split(".")[0]
    return (
        torch.Tag.nondeterministic_seeded in func.tags or name in UNDEFINED or name.startswith(("empty", "new_empty"))
    )


class Making:
    """The calls of one overload while they are made."""

    def __init__(self, func: Any, facts: Facts, reach: Reach | None, device: torch.device) -> None:
        """Without `reach` the kept calls are all that is asked."""
        self.device, self.may_change = device, reach is not None
        self.func, self.name = func, name_of(func)
        self.samples = [describe(sample) for sample in facts.samples.values()]
        self.calls: list[Any] = []
        self.lost: dict[str, str] = {}
        if reach is None:
            could = {one for sample in self.samples for one in self._met(sample)}
        else:
            could = {(kind, one) for kind in KINDS for one in getattr(reach, kind)}
        self.left = {(kind, one) for kind, one in could if one not in getattr(facts, kind)}

    def make(self) -> None:
        """Cover what is left, one condition after the other."""
        until = time.monotonic() + _SECONDS
        for item in sorted(self.left, key=str):
            if item in self.left and time.monotonic() < until:
                reason = self._cover(item)
                if reason:
                    self.lost[
                        " ".join(map(str, (item[0], *(item[1] if isinstance(item[1], tuple) else (item[1],)))))
                    ] = reason
                    self.left.discard(item)

    def _cover(self, item: Any) -> str:
        reason = "no kept call can be changed so"
        for sample in self.samples:
            alone = sample if item in self._met(sample) else None
            alone = change_call(self.func, sample, item) if alone is None and self.may_change else alone
            if alone is None:
                continue
            for call in (self._with_others(alone, item), alone) if self.may_change else (alone,):
                reason = self._verdict(call)
                if not reason and item in self._met(call):
                    self.calls.append(call)
                    self.left -= self._met(call)
                    return ""
        return reason or "the change does not show"

    def _with_others(self, call: Any, item: Any) -> Any:
        """Add conditions of other kinds; what has few elements or none is asked alone, or it would hide the others."""
        if _is_thin(item):
            return call
        others = [one for one in sorted(self.left, key=str) if one[0] != item[0] and not _is_thin(one)]
        for other in others[: _TOGETHER * 2]:
            richer = change_call(self.func, call, other)
            if richer is not None and {item, other} <= self._met(richer):
                call = richer
        return call

    def keep_valid(self, calls: list[Any]) -> None:
        """Keep those of some calls that a device which is right is still called right for."""
        for call in calls:
            reason = self._verdict(call)
            if reason:
                self.lost[json.dumps(call)] = reason
            else:
                self.calls.append(call)

    def _met(self, call: Any) -> set[Any]:
        """Return the conditions that a call has; none where the CPU refuses it."""
        recorder = Conditions()
        try:
            with recorder:
                drawn = asking.Drawn(call, len(self.calls))
                asking.perform(self.func, drawn, Bench(torch.device("cpu")).same(), drawn.bases)
        except Exception:
            return set()
        facts = recorder.facts.get(self.func, Facts())
        return {(kind, one) for kind in KINDS for one in getattr(facts, kind)}

    def _verdict(self, call: Any) -> str:
        """Return why a call cannot be asked, or an empty text."""
        number = len(self.calls)
        if reads_beyond(self.func, call, number):
            return "the CPU reads beyond an operand"
        cpu = torch.device("cpu")
        judges: list[Any] = [
            ("healthy", Bench(cpu)),
            ("rounded", Bench(cpu, around=lambda: RoundsOtherwise(2.0))),
            ("free", Bench(cpu, around=ChoosesOtherwise)),
            *([("device", Bench(self.device))] if self.device != cpu else []),
        ]
        for kind, bench in judges:
            try:
                drawn = asking.Drawn(call, number)
                copies = bench.device_run().copy(drawn.bases)
                with bench.device_run() as run:
                    answers = asking.attempt_answers(self.func, drawn, run, copies)
                asking.judge(self.func, drawn, answers, Bench(bench.device))
            except Refused as refused:
                if kind != "device":  # what a device lacks is a gap, not a reason
                    return "refused: " + str(refused)[:90]
            except Mismatch as wrong:
                return f"{kind}: " + str(wrong).split("\n")[0][:80]
            except Exception as raised:
                return f"raised: {type(raised).__name__}: {raised}"[:90]
        return ""


def reads_beyond(func: Any, call: Any, number: int) -> bool:
    """Say whether the CPU's answer depends on what lies behind an operand: sizes that do not fit, and go unnoticed."""
    first, second = (_beside(func, call, number, other) for other in (19, -23))
    return len(first) != len(second) or not all(_agree(one, other) for one, other in zip(first, second))


def _agree(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Say whether two answers are the same but for rounding: a library adds up in another order at another address."""
    if one.shape != other.shape or not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    return torch.allclose(one, other, rtol=1e-2, atol=1e-2, equal_nan=True)


def _beside(func: Any, call: Any, number: int, other: int) -> list[torch.Tensor]:
    """Return a call's answer, each operand with another number behind it; nothing where it raises."""

    def place(base: torch.Tensor) -> torch.Tensor:
        count = base.numel()
        memory = torch.full((count + 4096,), other, dtype=torch.float64).to(base.dtype)
        memory[:count] = base.reshape(-1)
        return memory[:count].view(base.shape)

    drawn = asking.Drawn(call, number)
    args, kwargs = drawn.arguments(list(map(place, drawn.bases)), torch.device("cpu"), lambda dtype: dtype)
    try:
        answers = func(*args, **kwargs)
    except Exception:
        return []
    found = [
        one for one in asking.flat_answers(answers) if isinstance(one, torch.Tensor) and one.layout == torch.strided
    ]
    return [one.resolve_neg().resolve_conj() for one in found]


def _is_thin(item: Any) -> bool:
    return item[1] in ("0", "1") or item[1][-1] in ("empty", "no_dimensions", "expanded") or item[1] == "rank 0"


def made(func: Any, facts: Facts, reach: Reach | None, device: torch.device) -> Any:
    """Return an overload's calls and what stays out; in a forked process where the CPU is asked alone.

    Where the CPU crashes at a changed call, the kept calls stay as they are.
    """
    if device.type != "cpu":
        return _made(func, facts, reach, device)
    crashed: Any = [], {"all": "the CPU crashes"}
    calls, lost = crashed if reach is None else _in_a_child(func, facts, reach, device)
    return (_in_a_child(func, facts, None, device)[0], lost) if "all" in lost else (calls, lost)


def _in_a_child(func: Any, facts: Facts, reach: Reach | None, device: torch.device) -> Any:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            sender.send(_made(func, facts, reach, device))
        finally:
            os._exit(0)
    sender.close()
    try:
        found: Any = receiver.recv() if receiver.poll(60) else ([], {"all": "it takes longer than a minute"})
    except EOFError:
        found = [], {"all": "the CPU crashes"}
    os.kill(child, 9)
    os.waitpid(child, 0)
    return found


def _made(func: Any, facts: Facts, reach: Reach | None, device: torch.device) -> Any:
    making = Making(func, facts, reach, device)
    making.make()
    return making.calls, making.lost


def with_seeds(facts: dict[Any, Facts]) -> dict[Any, Facts]:
    """Return the facts with the calls of seed_calls.json: overloads that no case calls, arguments that none gives."""
    found, cpu = dict(facts), torch.device("cpu")
    for name, call in json.loads(SEEDS.read_text(encoding="utf-8")).items():
        func = overload(name)
        if func is not None:
            drawn, met = asking.Drawn(call, 0), found.get(func, Facts())
            args, kwargs = drawn.arguments(drawn.bases, cpu, lambda dtype: dtype)
            found[func] = replace(met, samples={"seed": (tuple(args), kwargs), **met.samples})
    return found


def with_siblings(facts: dict[Any, Facts]) -> dict[Any, Facts]:
    """Return the facts with those of out= overloads that no case calls: their calls come from the functional ones."""
    found = dict(facts)
    for name in sorted(KERNELS - {name_of(func) for func in facts}):
        func = overload(name)
        if func is not None and func._schema.is_mutable:
            samples = _out_samples(func, [one for one in facts if str(one).split(".")[1] == name.split(".")[0]], facts)
            if samples:
                found[func] = Facts(samples=samples)
    return found


def _out_samples(func: Any, siblings: list[Any], facts: dict[Any, Facts]) -> dict[Any, Any]:
    outs = [one.name for one in func._schema.arguments if one.alias_info is not None and one.alias_info.is_write]
    rest = [one.name for one in func._schema.arguments if one.name not in outs]
    for sibling in siblings:
        if [one.name for one in sibling._schema.arguments] == rest and not sibling._schema.is_mutable:
            samples = {}
            for number, (args, kwargs) in enumerate(facts[sibling].samples.values()):
                answer = sibling(*args, **kwargs)
                answers = answer if isinstance(answer, (tuple, list)) else (answer,)
                if len(answers) == len(outs):
                    samples[number] = (args, {**kwargs, **{n: torch.zeros_like(one) for n, one in zip(outs, answers)}})
            return samples
    return {}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kept", metavar="FILE", nargs="?", help="what conditions_table.py --keep wrote")
    parser.add_argument("--check", action="store_true", help="drop the stored calls that a right device fails")
    parser.add_argument("--only", default="")
    parser.add_argument("--add", action="store_true", help="keep the calls that there are; the kept facts know them")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--shard", default="0/1", help="I/N: every Nth overload")
    parser.add_argument("--output", default=str(CALLS), metavar="FILE")
    parser.add_argument("--reasons", default="", metavar="FILE", help="why conditions stay out")
    parser.add_argument("--resume", action="store_true", help="go on behind the overload that ended the last process")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.check:
        check_calls(Path(given.output), given.only.split(",") if given.only else [])
        return
    if given.kept is None:
        parser.error("FILE is missing: what conditions_table.py --keep wrote (or --check, which needs none)")
    device, (part, parts) = torch.device(given.device), map(int, given.shard.split("/"))
    kept = pickle.loads(Path(given.kept).read_bytes())["facts"]
    facts = {func: one for name, one in kept.items() if (func := overload(name.removeprefix("aten."))) is not None}
    facts = with_siblings(with_seeds({func: one for func, one in facts.items() if runs_on_mps(func)}))
    output, begun = Path(given.output), Path(given.output + ".begun")
    going_on = bool(given.only or given.add or given.resume) and output.is_file()
    stored = json.loads(output.read_text(encoding="utf-8")) if going_on else {}
    done = set(begun.read_text(encoding="utf-8").split()) if given.resume and begun.is_file() else set()
    chosen = [
        func
        for number, func in enumerate(sorted(facts, key=str))
        if number % parts == part and (not given.only or name_of(func) in given.only.split(","))
    ]
    chosen = [func for func in chosen if not is_drawn(func) and name_of(func) not in done]
    # What can be reached is asked of the CPU in forked processes, before a device is opened.
    reach = {func: reach_in_a_child(func, facts[func]) for func in chosen}
    reasons: dict[str, Any] = {}
    for func in chosen:
        with begun.open("a", encoding="utf-8") as file:
            file.write(name_of(func) + "\n")
        found = reach[func]
        if found is None and device.type != "cpu":
            reasons[name_of(func)] = {"all": "the CPU crashes"}
            continue
        calls, reasons[name_of(func)] = made(func, facts[func], found, device)
        calls = [*stored.get(name_of(func), ()), *calls] if given.add else calls
        if device.type != "cpu" and not Bench(device).still_serves():
            raise SystemExit(3)
        stored[name_of(func)] = calls
        save_calls(output, stored)
        if given.reasons:
            Path(given.reasons).write_text(json.dumps(reasons, indent=1) + "\n", encoding="utf-8")
    print(f"{sum(map(len, stored.values()))} calls of {len(stored)} overloads")


def check_calls(path: Path, only: list[str]) -> None:
    """Drop the stored calls that a device which is right is called wrong for, and say which."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    unknown = sorted(set(only) - set(stored))
    if unknown:
        raise SystemExit(f"{path} has no calls of {', '.join(unknown)}")
    for name in only or sorted(stored):
        func = overload(name)
        if func is None:  # what another release has alone
            continue
        making = Making(func, Facts(), None, torch.device("cpu"))
        making.keep_valid(stored[name])
        for call, reason in making.lost.items():
            print(f"{name}: {reason}: {call[:100]}", flush=True)
        stored[name] = making.calls
    save_calls(path, stored)
    print(f"{sum(map(len, stored.values()))} calls of {len(stored)} overloads")


def save_calls(path: Path, stored: dict[str, list[Any]]) -> None:
    """Write the calls, one overload a line; those without a call are left out."""
    lines = [f"{json.dumps(name)}: {json.dumps(calls)}" for name, calls in sorted(stored.items()) if calls]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
