"""Record the conditions of the default layers, hold them against what is reachable, write the page and the figures.

python tests/sensitivity/conditions_table.py [--page docs/verify/conditions.md] [--write] [--layers layouts,...]

Why a condition stays out, the page says with --reasons: what overload_calls.py --reasons wrote of a --keep before.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pickle
from pathlib import Path
from typing import Any, Iterable

import torch

import suite_in_process
from conditions import DTYPES, LAYOUTS, RANKS, SIZES, Conditions, Transfers, graph_key, is_view
from conditions_page import BESIDE, overloads_page, reasons_table
from conditions_reach import KERNELS, name_of, reach_in_a_child, runs_on_mps
from suite_in_process import Suite

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("dtypes", "arguments", "layouts", "sizes")
TARGETS = {"dtypes": 0.95, "arguments": 0.95, "layouts": 0.9, "sizes": 0.9, "transfers": 0.9}
TRANSFERS = frozenset(
    (where, kind, one)
    for where in ("to device", "to host")
    for kind, every in (("dtype", DTYPES), ("layout", LAYOUTS), ("argument", ("dtype", "non_blocking")))
    for one in every
)

NOT_ASKED = "a call could be made: left out, the share that is wanted of its kind is reached"
# Why conditions of an overload stay out, by the overload.
Reasons = dict[str, dict[str, str]]


class Recording:
    """All the cases of some layers, each once, with what they dispatched."""

    def __init__(self, layers: Iterable[str]) -> None:
        suite = Suite(layers, device=torch.device("cpu", 0))
        suite.keep_nothing()
        self.conditions, self.transfers = Conditions(), Transfers()
        for case in suite.cases:
            suite.ask(case, self._around)
        self.keys = graph_keys(self.conditions)
        self.facts = {func: facts for func, facts in self.conditions.facts.items() if runs_on_mps(func)}
        self.reach = {func: found for func, facts in self.facts.items() if (found := reach_in_a_child(func, facts))}
        never = KERNELS - {name_of(func) for func in self.facts}
        self.unseen = sorted(name for name in never if not _is_seen(name))
        self.silent = sorted(never - set(self.unseen))

    def keep(self, path: Path) -> None:
        """Write what was met, with the kept calls: overload_calls.py reads it."""
        facts = {str(func): facts for func, facts in self.facts.items()}
        path.write_bytes(pickle.dumps({"facts": facts, "keys": self.keys, "transfers": self.transfers.seen}))

    def _around(self) -> Any:
        both = contextlib.ExitStack()
        both.enter_context(self.transfers)
        both.enter_context(self.conditions)
        return both

    def count(self, kind: str) -> tuple[int, int]:
        """Return covered and reachable conditions; a kernel that is never called counts as one that is missing."""
        if kind == "transfers":
            return len(self.transfers.seen & TRANSFERS), len(TRANSFERS)
        rows = [(getattr(self.facts[func], kind), getattr(reach, kind)) for func, reach in self.reach.items()]
        covered = sum(len(seen & could) for seen, could in rows)
        return covered, sum(len(could) for _, could in rows) + len(self.silent)


def _is_seen(name: str) -> bool:
    """Say whether a recorder on this torch's CPU can see a kernel called.

    What the CPU has not cannot be compared; what it decomposes arrives as its parts (F.linear as addmm).
    """
    packet, _, overload = name.partition(".")
    func = getattr(getattr(torch.ops.aten, packet, None), overload, None)
    keys = ("CPU", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
    return func is not None and any(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key) for key in keys)


def render(recording: Recording, reasons: Reasons) -> str:
    """Return the page: the figures, then for each overload what stays out, and why."""
    lines = [_HEAD.format(version=torch.__version__.split("+")[0], overloads=len(recording.facts)), ""]
    lines += ["| conditions | covered | reachable | share |", "|---|---|---|---|"]
    for kind in (*KINDS, "transfers"):
        covered, reachable = recording.count(kind)
        lines.append(f"| {kind} | {covered} | {reachable} | {covered / max(reachable, 1):.1%} |")
    lines += [
        "",
        "## By class",
        "",
        *_by_class(recording),
        "",
        "## Values of the first operand",
        "",
        *_values(recording),
    ]
    lines += [
        "",
        "## Kernels that no default case calls",
        "",
        ", ".join(f"`{one}`" for one in recording.silent) or "None.",
        "",
        "## Kernels that a recording on the CPU cannot see",
        "",
        "This torch's CPU has no such overload, or decomposes it before a recorder sees it.",
        "",
        ", ".join(f"`{one}`" for one in recording.unseen) or "None.",
    ]
    lines += [
        "",
        "## What stays out",
        "",
        f"Reachable conditions that no default case has, and why; [each overload's]({BESIDE}).",
        "",
    ]
    return "\n".join([*lines, *reasons_table(left_out(recording, reasons))]) + "\n"


def _by_class(recording: Recording) -> list[str]:
    """Return, for each class, of how many overloads it is covered."""
    rows = ["| class | covered | reachable |", "|---|---|---|"]
    for kind, classes in (
        ("dtypes", DTYPES),
        ("layouts", LAYOUTS),
        ("sizes", (*(f"rank {one}" for one in RANKS), *SIZES)),
    ):
        for one in classes:
            covered = reachable = 0
            for func, reach in recording.reach.items():
                could = {_word(item) for item in getattr(reach, kind)}
                reachable += one in could
                covered += one in could and one in {_word(item) for item in getattr(recording.facts[func], kind)}
            rows.append(f"| {kind}: {one} | {covered} | {reachable} |")
    return rows


def _word(item: Any) -> str:
    return item if isinstance(item, str) else str(item[1])


def _values(recording: Recording) -> list[str]:
    counted: dict[str, int] = {}
    for facts in recording.facts.values():
        for one in facts.values:
            counted[one] = counted.get(one, 0) + 1
    return ["| value | overloads |", "|---|---|", *(f"| {one} | {number} |" for one, number in sorted(counted.items()))]


def left_out(recording: Recording, reasons: Reasons) -> dict[str, dict[str, list[str]]]:
    """Return, for each overload that lacks a reachable condition, what it lacks by the reason."""
    found: dict[str, dict[str, list[str]]] = {}
    for func in sorted(recording.reach, key=str):
        for kind in KINDS:
            for one in getattr(recording.reach[func], kind) - getattr(recording.facts[func], kind):
                what = f"{kind} {one if isinstance(one, str) else ' '.join(map(str, one))}"
                reason = why(reasons.get(name_of(func), {}), what)
                found.setdefault(name_of(func), {}).setdefault(reason, []).append(what)
    return found


def why(reasons: dict[str, str], what: str) -> str:
    """Return in words why a condition stays out.

    >>> why({"dtypes 0 int8": "free: element 3 differs"}, "dtypes 0 int8")
    'a device may choose its answer'
    """
    told = reasons.get(what) or reasons.get("all", NOT_ASKED)
    kind, colon, _ = told.partition(":")
    return _WHY.get(kind, told) if colon else told


_WHY = {
    "rounded": "another rounding changes its answer altogether",
    "free": "a device may choose its answer",
    "healthy": "the CPU's own answer is not the one in float64",
    "refused": "the CPU refuses it with these operands",
    "raised": "it cannot be compared",
}
_HEAD = """# Under which conditions the device suite calls each operator

Generated by `python tests/sensitivity/conditions_table.py --page docs/verify/conditions.md`; do not edit. A bug seldom
breaks an operator altogether: it breaks one dtype, one argument, one layout, one size. This page counts which of
them the default layers reach, for each of the {overloads} overloads that they dispatch and MPS runs (torch
{version}, recorded on the CPU).

*Reachable* is what the schema allows, the CPU accepts (calls of the suite are asked again with one thing changed),
and MPS has: a kernel or one body for all devices in torch 2.15.0 (`op_coverage` of the official wheel), and a dtype
that upstream's own tests do not list as failing there. Operands are counted by their number, 0 is the first. A
kernel that no case calls counts as one condition that is missing, under each heading. What is asked besides of every
overload, by rule (refusals, special values in each operand and in gradients, windows, results' form, arguments in
turn, chains in place, 2**16 elements, one rounding), and what stays out there:
[conditions by rule](conditions_by_rule.md); of functions that are made of others, and of kernels that MPS has not yet,
too: [wider rules](conditions_by_wider_rule.md)."""


def main() -> int:
    """Run the command; return 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", metavar="FILE", help="write the page")
    parser.add_argument("--write", action="store_true", help="put the figures into benchmarks/results.json")
    parser.add_argument("--keep", metavar="FILE", help="write what was met, with kept calls, for overload_calls.py")
    parser.add_argument("--json", metavar="FILE", help="write the figures and the missing conditions")
    parser.add_argument("--layers", default=",".join(suite_in_process.DEFAULT_LAYERS))
    parser.add_argument(
        "--reasons", nargs="*", default=[], metavar="FILE", help="what overload_calls.py --reasons wrote"
    )
    given = parser.parse_args()
    reasons: Reasons = {}
    for path in given.reasons:
        reasons |= json.loads(Path(path).read_text(encoding="utf-8"))
    recording = Recording(given.layers.split(","))
    met = True
    for kind in (*KINDS, "transfers"):
        covered, reachable = recording.count(kind)
        share = covered / max(reachable, 1)
        met = met and share >= TARGETS[kind]
        print(f"conditions.{kind:10} {covered:6} of {reachable:6}  {share:.4f}")
        if given.write:
            _record(f"conditions.{kind}", share, TARGETS[kind])
    print(f"suite.graph_keys      {recording.keys}; kernels never called: {len(recording.silent)}")
    if given.write:
        _record("suite.graph_keys", recording.keys, None)
    if given.keep:
        recording.keep(Path(given.keep))
    if given.page:
        page = Path(given.page)
        page.write_text(render(recording, reasons), encoding="utf-8")
        page.with_name(BESIDE).write_text(overloads_page(left_out(recording, reasons)), encoding="utf-8")
    if given.json:
        Path(given.json).write_text(json.dumps(left_out(recording, reasons), indent=0) + "\n", encoding="utf-8")
    return 0 if met else 1


def graph_keys(conditions: Conditions) -> int:
    """Return how many distinct operators with shapes, dtypes and layouts were dispatched, views left out."""
    return len({graph_key(form) for form in conditions.keys if not is_view(form[0])})


def _record(name: str, value: float, target: float | None) -> None:
    from shared.record import record

    text = "" if target is None else f">= {target:.2f} of what is reachable"
    command = "python tests/sensitivity/conditions_table.py --write"
    unit = "keys" if target is None else "ratio"
    record(name, [round(value, 4)], unit=unit, command=command, target=text, versions=f"torch {torch.__version__}")


if __name__ == "__main__":
    raise SystemExit(main())
