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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import rule_verdicts
import rule_verdicts_views
import rule_verdicts_wide
import suite_in_process
import wider_verdicts
from conditions import Conditions, Facts
from conditions_reach import name_of, runs_on_mps
from device_suite.overloads.asking import stored_calls
from device_suite.overloads.described import overload
from device_suite.overloads.forwards import choices_of
from device_suite.rules.asked import ASKED, RULES, WIDER_RULES
from device_suite.rules.changes import ChangedCall
from device_suite.touch import TouchMap
from fuller_samples import fuller_calls
from overload_calls import SEEDS, is_drawn, with_seeds, with_siblings
from rule_candidates import candidates, is_in_place
from rule_gpus import why_right
from rule_samples import best_of, in_float32, sample_of
from rule_verdicts import Overload, is_settled
from wider_candidates import WIDER

# Seconds of one candidate, overloads of one group.
_SECONDS, _TOGETHER = 20, 40
_DONE = "done"
VERDICTS = {
    **rule_verdicts.VERDICTS,
    **rule_verdicts_views.VERDICTS,
    **rule_verdicts_wide.VERDICTS,
    **wider_verdicts.VERDICTS,
}


def recorded() -> dict[Any, Facts]:
    """Return what the overloads are called with in some cases that dispatch them all, by the touch map."""
    touched = TouchMap.load(suite_in_process.DEVICE_TESTS / "touch_map.json").by_case
    suite = suite_in_process.Suite()
    suite.keep_nothing()
    asking = tuple(f"{rule}-" for rule in (*RULES, *WIDER_RULES))
    cases = {case.id: case for case in suite.cases if case.id in touched and not case.id.startswith(asking)}
    recorder = Conditions()
    for _ in range(2):  # what a first case calls with too many elements to keep, a second one may call with few
        kept = {str(func) for func, facts in recorder.facts.items() if facts.samples}
        wanted = {one for each in cases for one in touched[each]} - kept
        for each in sorted(cases, key=lambda one: len(touched[one])):  # the small ones are quick
            if wanted & set(touched[each]):
                wanted -= set(touched[each])
                suite.ask(cases.pop(each), lambda: recorder)
    return {func: facts for func, facts in recorder.facts.items() if runs_on_mps(func)}


def recorded_samples() -> dict[str, Any]:
    """Return the calls of each overload: the one of those that are recorded that says most, and fuller ones."""
    facts = with_siblings(with_seeds(recorded()))
    found = {name_of(func): [sample_of(func, facts[func])] for func in facts}
    calls = {name: one for name, one in found.items() if one[0] is not None}
    calls.update(given_besides(calls))
    return {name: [*one, *fuller_calls(name, one)] for name, one in calls.items()}


def given_besides(samples: dict[str, Any]) -> dict[str, Any]:
    """Return calls of overloads without a sample: of the calls that are made of single overloads, and seeds.

    A recording keeps small calls alone, and what the suite calls with many elements only would be asked by no rule.
    """
    seeds = json.loads(SEEDS.read_text(encoding="utf-8"))
    found = {}
    for name, calls in {**stored_calls(), **{name: [call] for name, call in seeds.items()}}.items():
        func = overload(name)
        if name not in samples and func is not None and runs_on_mps(func):
            found[name] = [best_of(func, calls)]
    return found


# Overloads that a public function calls under conditions that only it knows.
NOT_CALLED_BY_ITSELF = {
    "a part of a public function, which chooses when to call it": frozenset(
        (
            *("_conj_physical", "_slow_conv2d_forward", "_slow_conv2d_backward", "_pack_padded_sequence"),
            *("_efficientzerotensor", "_new_zeros_with_same_feature_meta", "_histogramdd_from_bin_cts"),
            *("_histogramdd_bin_edges", "_unique2", "log_sigmoid_forward", "native_group_norm_backward"),
            *("_neg_view", "_weight_norm_interface", "_ctc_loss_backward"),
        )
    ),
}


@dataclass
class Task:
    """An overload with its call, the rules that ask it, and what came of that so far."""

    name: str
    func: Any
    call: Any
    rules: list[str]
    kept: dict[str, list[Any]] = field(default_factory=dict)
    lost: dict[str, Counter[str]] = field(default_factory=dict)


def _may_be(rule: str, task: Task) -> Iterator[list[Any]]:
    return WIDER[rule](task.func, task.call) if rule in WIDER else candidates(rule, task.func, task.call)


def asked_of(tasks: list[Task], send: Any, skip: int) -> None:
    """Send (number, task, rule, changes, verdict) of each candidate from a number on; an empty verdict keeps it."""
    number = 0
    for place, task in enumerate(tasks):
        for rule in task.rules:
            told = Overload(task.func, task.name, task.call)
            for changes in _may_be(rule, task):
                number += 1
                if number <= skip or is_settled(told, changes):
                    continue
                send((number, place, rule, None, "begun"))
                try:
                    made = ChangedCall(task.func, task.call, changes, choices_of(told.name))
                    verdict, kept = VERDICTS[rule](told, made, changes)
                except Exception as raised:
                    verdict, kept = f"cannot be made: {type(raised).__name__}", changes
                send((number, place, rule, kept, verdict))


def in_children(tasks: list[Task]) -> None:
    """Fill the tasks with the changes that are kept and those that stay out: one that ends the process is such.

    What a change does to the heap may end the process a little later, between two changes too: none is lost by that.
    """
    for task in tasks:
        task.kept = {rule: [] for rule in task.rules}
        task.lost = {rule: Counter() for rule in task.rules}
    skip, done = 0, False
    while not done:
        receiver, sender = multiprocessing.Pipe(duplex=False)
        child = os.fork()
        if child == 0:
            try:
                asked_of(tasks, sender.send, skip)
                sender.send((0, 0, "", None, _DONE))
            finally:
                os._exit(0)
        sender.close()
        begun, before = None, skip
        while receiver.poll(_SECONDS):
            try:
                number, place, rule, changes, verdict = receiver.recv()
            except EOFError:
                break
            if verdict == _DONE:
                done = True
                break
            begun = (place, rule) if verdict == "begun" else None
            skip = number
            if verdict == "":
                tasks[place].kept[rule].append(changes)
            elif verdict != "begun":
                tasks[place].lost[rule][verdict] += 1
        os.kill(child, 9)
        os.waitpid(child, 0)
        receiver.close()
        if skip == before and not done:
            raise SystemExit(f"no change of {tasks[0].name} and those behind it can be asked behind number {skip}")
        if begun is not None:
            tasks[begun[0]].lost[begun[1]]["the CPU crashes"] += 1


def warmed_up() -> None:
    """Load once what every forked process would load: torch's own descriptions of operators, and the modes."""
    call = [["@float32 3x4 dense 0 1", "@float32 4x5 dense 0 1"], {}]
    asked_of([Task("mm.default", torch.ops.aten.mm.default, call, list(RULES))], lambda told: None, 0)


def why_not_at_all(rule: str, func: Any, samples: Any) -> str:
    """Return why a rule asks nothing of an overload, or an empty text."""
    if rule == "chains" and not is_in_place(func):  # no condition of this rule
        return ""
    if reason := why_right(rule, func):
        return reason
    for reason, names in NOT_CALLED_BY_ITSELF.items():
        if name_of(func).partition(".")[0] in names:
            return reason
    if rule in ("form", "refused", "places", "written"):
        return ""
    if is_drawn(func):
        return "its answer is drawn"
    packet, _, _ = name_of(func).partition(".")
    writes = rule not in ("chains", "rows") and any(
        one.alias_info is not None and one.alias_info.is_write for one in func._schema.arguments
    )
    if writes:
        for other in samples:
            if other.partition(".")[0] == packet.rstrip("_") and other != name_of(func) and not other.endswith("out"):
                return "its operator is asked by the overload that writes to nothing"
    return ""


def counted_before(given: argparse.Namespace) -> dict[str, dict[str, Counter[str]]]:
    """Return the reasons of the overloads that this run leaves as they were."""
    path = Path(given.reasons)
    return json.loads(path.read_text(encoding="utf-8")) if given.only and path.is_file() else {}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="take the calls anew from the suite's cases")
    parser.add_argument("--only", default="")
    parser.add_argument("--after", default="", metavar="NAME", help="go on behind this overload")
    parser.add_argument("--rules", default=",".join(RULES))
    parser.add_argument("--shard", default="0/1", help="I/N: every Nth overload")
    parser.add_argument("--output", default=str(ASKED), metavar="FILE")
    parser.add_argument(
        "--reasons",
        default="",
        metavar="FILE",
        help="how many changes stay out, and why; of --only alone, in such a file",
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    part, parts = map(int, given.shard.split("/"))
    output = Path(given.output)
    stored: dict[str, Any] = json.loads(output.read_text(encoding="utf-8")) if output.is_file() else {}
    stored = {"samples": {}, **{rule: {} for rule in RULES}, **stored}
    if given.record or not stored["samples"]:
        stored["samples"] = recorded_samples()
        print(f"calls of {len(stored['samples'])} overloads", flush=True)
    stored["samples"].update(given_besides(stored["samples"]))
    warmed_up()
    reasons = counted_before(given)
    chosen = [
        name
        for number, name in enumerate(sorted(stored["samples"]))
        if number % parts == part and overload(name) is not None and name > given.after
    ]
    chosen = [name for name in chosen if not given.only or name in given.only.split(",")]
    for begin in range(0, len(chosen), _TOGETHER):
        tasks = []
        for name in chosen[begin : begin + _TOGETHER]:
            func, rules = overload(name), []
            stored["samples"][name] = [in_float32(func, one) for one in stored["samples"][name]]
            for rule in given.rules.split(","):
                stored[rule].pop(name, None)
                reason = why_not_at_all(rule, func, stored["samples"])
                if reason:
                    reasons.setdefault(rule, {})[name] = Counter({reason: 1})
                else:
                    rules.append(rule)
            tasks += [Task(name, func, call, rules) for call in stored["samples"][name]]
        in_children(tasks)
        for task in tasks:
            number = stored["samples"][task.name].index(task.call)
            for rule in task.rules:
                before = reasons.setdefault(rule, {}).get(task.name, Counter()) if number else Counter()
                reasons[rule][task.name] = Counter(before) + task.lost[rule]
                if task.kept[rule]:
                    plain = [[]] if rule == "turns" else []  # what the others follow
                    rows = [[number, *one] for one in plain + task.kept[rule]]
                    stored[rule].setdefault(task.name, []).extend(rows)
        save(output, stored)
        print(begin, tasks[-1].name, flush=True)
        if given.reasons:
            Path(given.reasons).write_text(json.dumps(reasons, indent=0) + "\n", encoding="utf-8")
    save(output, stored)
    if given.reasons:
        Path(given.reasons).write_text(json.dumps(reasons, indent=0) + "\n", encoding="utf-8")
    for rule in given.rules.split(","):
        total = sum(map(len, stored[rule].values()))
        print(f"{rule:9} {total:6} calls of {len(stored[rule])} overloads")


def save(path: Path, stored: dict[str, Any], rules: Sequence[str] = RULES) -> None:
    """Write what is asked, one overload of a rule a line."""
    parts = {"samples": stored["samples"], **{rule: stored[rule] for rule in rules}}
    lines = [
        f"{json.dumps(part)}: {{\n"
        + ",\n".join(f"{json.dumps(n)}: {json.dumps(c)}" for n, c in sorted(rows.items()))
        + "\n}"
        for part, rows in parts.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
