"""Make tests/device/device_suite/rules/wider.json: what the wider rules ask of each overload.

python tests/sensitivity/wider_calls.py [--pool] [--only NAME,...] [--rules options,...] [--reasons FILE]

As rule_calls.py, of more overloads: `--pool` records their calls anew (numpy and expecttest needed).
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import torch

import pool_calls
from device_suite.overloads.described import overload
from device_suite.rules.asked import WIDER, WIDER_RULES, stored
from fuller_samples import fuller_calls
from rule_calls import Task, in_children, save, warmed_up
from rule_samples import in_float32
from wider_candidates import why_not_at_all

_TOGETHER = 40
Store = dict[str, Any]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pool", action="store_true", help="record the calls of the pool anew")
    parser.add_argument("--only", default="")
    parser.add_argument("--rules", default=",".join(WIDER_RULES))
    parser.add_argument("--output", default=str(WIDER), metavar="FILE")
    parser.add_argument("--reasons", default="", metavar="FILE", help="how many changes stay out, and why")
    given = parser.parse_args()
    torch.set_num_threads(1)
    output = Path(given.output)
    found: Store = json.loads(output.read_text(encoding="utf-8")) if output.is_file() else {}
    found = {"samples": {}, **{rule: {} for rule in WIDER_RULES}, **found}
    if given.pool or not found["samples"]:
        found["samples"] = pool_calls.pool(set(stored()["samples"]))
        found["samples"].update(pool_calls.with_outs({**found["samples"], **stored()["samples"]}))
        for name, calls in found["samples"].items():
            calls[:] = [in_float32(overload(name), one) for one in calls]
            if name not in stored()["samples"]:
                calls.extend(fuller_calls(name, calls))
        print(f"calls of {len(found['samples'])} overloads", flush=True)
        save(output, found, WIDER_RULES)
    warmed_up()
    path = Path(given.reasons) if given.reasons else None
    reasons: Store = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.is_file() else {}
    every = {name: [] for name in (*stored()["samples"], *found["samples"])}
    for samples in (stored()["samples"], found["samples"]):
        for name, calls in samples.items():
            every[name] += calls
    chosen = [one for one in sorted(every) if not given.only or one in given.only.split(",")]
    for begin in range(0, len(chosen), _TOGETHER):
        ask(chosen[begin : begin + _TOGETHER], every, given.rules.split(","), found, reasons)
        print(begin, chosen[begin], flush=True)
        save(output, found, WIDER_RULES)
    if path is not None:
        path.write_text(json.dumps(reasons, indent=0) + "\n", encoding="utf-8")
    for rule in given.rules.split(","):
        print(f"{rule:9} {sum(map(len, found[rule].values())):6} calls of {len(found[rule])} overloads")


def ask(names: list[str], every: Store, rules: list[str], found: Store, reasons: Store) -> None:
    """Ask some overloads, and put what is kept and what stays out into their places."""
    tasks = []
    for name in filter(overload, names):
        func = overload(name)
        wanted = []
        for rule in rules:
            found[rule].pop(name, None)
            reason = why_not_at_all(rule, func)
            reasons.setdefault(rule, {})[name] = Counter({reason: 1} if reason else {})
            wanted += [] if reason else [rule]
        tasks += [Task(name, func, call, wanted) for call in every[name]]
    in_children(tasks)
    for task in tasks:
        number = every[task.name].index(task.call)
        for rule in task.rules:
            reasons[rule][task.name] = Counter(reasons[rule][task.name]) + task.lost[rule]
            # Of a kind the first, also where a crash came in between.
            kept = {getattr(one, "kind", ""): one for one in reversed(task.kept[rule])}
            kept = {json.dumps(one): one for one in kept.values()}
            if kept:
                rows = in_turn(rule, task.name, list(reversed(kept.values())))
                found[rule].setdefault(task.name, []).extend([number, *one] for one in rows)


def _alternating(rows: list[Any], kinds: list[str]) -> list[Any]:
    """Return the first row of each kind, then the second of each."""
    turns = [kinds[:place].count(kind) for place, kind in enumerate(kinds)]
    return [one for _, one in sorted(zip(turns, rows), key=lambda pair: pair[0])]


def in_turn(rule: str, name: str, rows: list[Any]) -> list[Any]:
    """Return rows so that the first few say most: one of each argument first; of each overload another layout."""
    if rule == "options":
        return _alternating(rows, [str(one[-1][1]) for one in rows])
    if rule == "deterministic":  # what leaves nothing comes before what is asked as it stands
        return sorted(rows, key=lambda one: (one[-1][0] != "arg", len(one) == 1))
    if rule == "sizes":  # one long side, one dimension more, many elements; then the other sides
        return _alternating(rows, [str(len(one) if one[0][0] in ("grown", "side") else 0) for one in rows])
    turn = zlib.crc32(name.encode()) % len(rows) if rule in ("outs", "strides") else 0
    return rows[turn:] + rows[:turn]


if __name__ == "__main__":
    main()
