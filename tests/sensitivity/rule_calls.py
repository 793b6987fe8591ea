"""Make tests/device/device_suite/rules/asked.json: what each rule asks of each overload.

python tests/sensitivity/rule_calls.py [--only NAME,...] [--rules turns,...] [--reasons FILE]

A change of a call is kept where this torch's CPU says what is right, and where a device that is right is called right:
one that rounds otherwise, one that chooses otherwise. Each overload is asked in forked processes: a change that ends
one is left out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections import Counter
from pathlib import Path
from typing import Any

import torch

import suite_in_process
from call_changes import describe
from conditions import Conditions, Facts
from conditions_reach import name_of, runs_on_mps
from device_suite.overloads.described import overload, shape_of, texts
from device_suite.overloads.forwards import choices_of
from device_suite.rules.asked import ASKED, RULES
from device_suite.rules.changes import ChangedCall
from device_suite.touch import TouchMap
from overload_calls import is_drawn, with_seeds, with_siblings
from rule_candidates import candidates
from rule_verdicts import VERDICTS, Overload, is_settled

_SECONDS = 40


def recorded() -> dict[Any, Facts]:
    """Return what the overloads are called with in some cases that dispatch them all, by the touch map."""
    touched = TouchMap.load(suite_in_process.DEVICE_TESTS / "touch_map.json").by_case
    suite = suite_in_process.Suite()
    suite.keep_nothing()
    cases = {case.id: case for case in suite.cases if case.id in touched and not case.id.startswith(tuple(RULES))}
    recorder = Conditions()
    for _ in range(2):  # what a first case calls with too many elements to keep, a second one may call with few
        kept = {str(func) for func, facts in recorder.facts.items() if facts.samples}
        wanted = {one for each in cases for one in touched[each]} - kept
        for each in sorted(cases, key=lambda one: len(touched[one])):  # the small ones are quick
            if wanted & set(touched[each]):
                wanted -= set(touched[each])
                suite.ask(cases.pop(each), lambda: recorder)
    return {func: facts for func, facts in recorder.facts.items() if runs_on_mps(func)}


def sample_of(func: Any, facts: Facts) -> Any:
    """Return the kept call that says most: many operands, float32, two dimensions or more, few elements."""

    def score(call: Any) -> Any:
        every = texts(call)
        count = max((_numel(text) for text in every), default=0)
        floats = sum(text.startswith("@float32 ") for text in every)
        full = all(_numel(text) for text in every)
        rank = min(len(shape_of(every[0])), 3) if every else 0
        return full, 4 <= count <= 700, len(every), floats, rank, len(call[0]) + len(call[1]), -count

    described = [describe(sample) for sample in facts.samples.values()]
    return max(described, key=score) if described else None


def _numel(text: str) -> int:
    count = 1
    for side in shape_of(text):
        count *= side
    return count


def asked_of(rules: list[str], func: Any, call: Any, send: Any, skip: int) -> None:
    """Send (number, rule, changes, verdict) of each candidate from a number on; an empty verdict keeps it."""
    number = 0
    for rule in rules:
        told = Overload(func, name_of(func), call)
        for changes in candidates(rule, func, call):
            number += 1
            if number <= skip or is_settled(told, changes):
                continue
            send((number, rule, None, "begun"))
            try:
                made = ChangedCall(func, call, changes, choices_of(told.name))
                verdict, kept = VERDICTS[rule](told, made, changes)
            except Exception as raised:
                verdict, kept = f"cannot be made: {type(raised).__name__}", changes
            send((number, rule, kept, verdict))


def in_children(rules: list[str], func: Any, call: Any) -> tuple[dict[str, list[Any]], dict[str, Counter[str]]]:
    """Return by rule the changes that are kept, and how many stay out by reason: one that ends the process is such."""
    kept: dict[str, list[Any]] = {rule: [] for rule in rules}
    lost: dict[str, Counter[str]] = {rule: Counter() for rule in rules}
    skip = 0
    for _ in range(12):
        receiver, sender = multiprocessing.Pipe(duplex=False)
        child = os.fork()
        if child == 0:
            try:
                asked_of(rules, func, call, sender.send, skip)
            finally:
                os._exit(0)
        sender.close()
        begun = None
        while True:
            try:
                if not receiver.poll(_SECONDS):
                    break
                number, rule, changes, verdict = receiver.recv()
            except EOFError:
                break
            begun = (number, rule) if verdict == "begun" else None
            if verdict == "":
                kept[rule].append(changes)
            elif verdict != "begun":
                lost[rule][verdict] += 1
        os.kill(child, 9)
        os.waitpid(child, 0)
        if begun is None:
            break
        skip = begun[0]
        lost[begun[1]]["the CPU crashes"] += 1
    return kept, lost


def warmed_up() -> None:
    """Load once what every forked process would load: torch's own descriptions of operators, and the modes."""
    call = [["@float32 3x4 dense 0 1", "@float32 4x5 dense 0 1"], {}]
    asked_of(list(RULES), torch.ops.aten.mm.default, call, lambda told: None, 0)


def why_not_at_all(rule: str, func: Any, samples: Any) -> str:
    """Return why a rule asks nothing of an overload, or an empty text."""
    if rule in ("form", "refused", "places"):
        return ""
    if is_drawn(func):
        return "its answer is drawn"
    packet, _, _ = name_of(func).partition(".")
    writes = any(one.alias_info is not None and one.alias_info.is_write for one in func._schema.arguments)
    if writes:
        for other in samples:
            if other.partition(".")[0] == packet.rstrip("_") and other != name_of(func) and not other.endswith("out"):
                return "its operator is asked by the overload that writes to nothing"
    return ""


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="take the calls anew from the suite's cases")
    parser.add_argument("--only", default="")
    parser.add_argument("--rules", default=",".join(RULES))
    parser.add_argument("--shard", default="0/1", help="I/N: every Nth overload")
    parser.add_argument("--output", default=str(ASKED), metavar="FILE")
    parser.add_argument("--reasons", default="", metavar="FILE", help="how many changes stay out, and why")
    given = parser.parse_args()
    torch.set_num_threads(1)
    part, parts = map(int, given.shard.split("/"))
    output = Path(given.output)
    stored: dict[str, Any] = json.loads(output.read_text(encoding="utf-8")) if output.is_file() else {}
    stored = {"samples": {}, **{rule: {} for rule in RULES}, **stored}
    if given.record or not stored["samples"]:
        facts = with_siblings(with_seeds(recorded()))
        found = {name_of(func): [sample_of(func, facts[func])] for func in facts}
        stored["samples"] = {name: calls for name, calls in found.items() if calls[0] is not None}
        print(f"calls of {len(stored['samples'])} overloads", flush=True)
    warmed_up()
    reasons: dict[str, dict[str, Counter[str]]] = {}
    for number, name in enumerate(sorted(stored["samples"])):
        func = overload(name)
        if number % parts != part or func is None or (given.only and name not in given.only.split(",")):
            continue
        (call,) = stored["samples"][name]
        rules = []
        for rule in given.rules.split(","):
            stored[rule].pop(name, None)
            reason = why_not_at_all(rule, func, stored["samples"])
            if reason:
                reasons.setdefault(rule, {})[name] = Counter({reason: 1})
            else:
                rules.append(rule)
        kept, lost = in_children(rules, func, call)
        for rule in rules:
            reasons.setdefault(rule, {})[name] = lost[rule]
            if kept[rule]:
                stored[rule][name] = [[0, *one] for one in kept[rule]]
        if number % 50 == 0:
            save(output, stored)
            print(number, name, flush=True)
    save(output, stored)
    if given.reasons:
        Path(given.reasons).write_text(json.dumps(reasons, indent=0) + "\n", encoding="utf-8")
    for rule in given.rules.split(","):
        total = sum(map(len, stored[rule].values()))
        print(f"{rule:9} {total:6} calls of {len(stored[rule])} overloads")


def save(path: Path, stored: dict[str, Any]) -> None:
    """Write what is asked, one overload of a rule a line."""
    parts = {"samples": stored["samples"], **{rule: stored[rule] for rule in RULES}}
    lines = [
        f"{json.dumps(part)}: {{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(c)}" for n, c in sorted(rows.items())) + "\n}"
        for part, rows in parts.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
