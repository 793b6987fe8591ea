"""What a dense MPS tensor meets at each operator, by the dispatcher's own order; two torches; what a record adds.

The order is that of c10's OperatorEntry::computeDispatchTableEntryWithDebug: a kernel of the key itself, then
CompositeExplicitAutogradNonFunctional, CompositeExplicitAutograd, CompositeImplicitAutograd, then the key's fallback.

A record of verify_mps adds what each operator did. A case's id names the operator that it runs: `addr:gradient:17`; it
is one of that operator's overloads, and the record does not say which. A refusal and a fallback name their overload in
PyTorch's own words. What a case that is written by hand dispatches is not recorded: a model that fails says nothing
about one operator.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mps_build.common.records.device_record import FAILED, Case, Record

from .model import COMPOSITES, Facts

KERNEL, EXPLICIT, IMPLICIT = "kernel", "composite_explicit", "composite_implicit"
ALWAYS, ON_DEMAND, REFUSED, ELSEWHERE = "falls_back_always", "falls_back_on_demand", "refused", "elsewhere"
# In the order of the tables. What each means to a user stands beside it.
STATUSES = {
    KERNEL: "has a kernel for MPS",
    EXPLICIT: "one body for all devices; autograd as for a kernel",
    IMPLICIT: "made of other operators, whose kernels decide",
    ALWAYS: "runs on the CPU, always: registered so in MPSFallback.mm",
    ON_DEMAND: "refused; runs on the CPU with PYTORCH_ENABLE_MPS_FALLBACK=1",
    REFUSED: "registered for MPS only to say no",
    ELSEWHERE: "only for other layouts or devices (sparse, mkldnn, quantized, CUDA)",
}
RUNS_ON_MPS = frozenset({KERNEL, EXPLICIT, IMPLICIT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operator: its status, by which road, and which keys have kernels.

    `how` is `own` (named in native_functions.yaml), `structured` (through its out= form's kernel), `by hand`,
    or the composite's key; `through` is the one operator that a composite made by torchgen calls.
    """

    name: str
    status: str
    how: str
    keys: tuple[str, ...]
    through: str = ""

    @property
    def family(self) -> str:
        """The operator without its overload: `add` of `add.Tensor`."""
        return self.name.partition(".")[0]

    def document(self) -> dict[str, Any]:
        """Return the overload as JSON; `through` names what it calls, where that decides."""
        through = {"through": self.through} if self.through else {}
        return {"name": self.name, "status": self.status, "how": self.how, "keys": list(self.keys), **through}


def classify(facts: Facts) -> tuple[Row, ...]:
    """Return a row for each operator, by name."""
    by_hand = {each.operator: each for each in facts.by_hand if each.key == "MPS"}
    keys: dict[str, list[str]] = {}
    for key, names in sorted(facts.registered.items()):
        for name in names:
            keys.setdefault(name, []).append(key)

    def status_of(name: str, seen: frozenset[str]) -> tuple[str, str, str]:
        hand = by_hand.get(name)
        if hand is not None:  # where both are registered, the later one counts: by hand, as the linker orders them
            return (ALWAYS if hand.falls_back else REFUSED if hand.refuses else KERNEL), "by hand", ""
        known = keys.get(name, [])
        if "MPS" in known:
            return KERNEL, "own" if name in facts.own else "structured", ""
        composite = next((key for key in COMPOSITES if key in known), None)
        if composite is not None:
            target = facts.through.get(name, "")
            if target and target not in seen:
                reached = status_of(target, seen | {name})[0]
                if reached not in RUNS_ON_MPS:
                    return reached, composite, target
            return (IMPLICIT if composite == COMPOSITES[-1] else EXPLICIT), composite, target
        return (ON_DEMAND if "CPU" in known else ELSEWHERE), "", ""

    rows = []
    for name in sorted(facts.operators):
        status, how, through = status_of(name, frozenset())
        known = (*keys.get(name, ()), *facts.elsewhere.get(name, ()))
        rows.append(Row(name=name, status=status, how=how, keys=known, through=through))
    return tuple(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many operators have each status; `share` is that of operators that run on a CPU which run on MPS too."""

    overloads: Mapping[str, int]
    families: Mapping[str, int]
    cpu: int
    cpu_on_mps: int

    @property
    def share(self) -> float:
        """The share, 0 to 1, of the overloads with a CPU kernel that MPS runs."""
        return self.cpu_on_mps / self.cpu if self.cpu else 0.0


def count(rows: tuple[Row, ...]) -> Counts:
    """Return the counts; a family (`add`) has the best status that one of its overloads has."""
    order = list(STATUSES)
    best: dict[str, str] = {}
    for row in rows:
        best[row.family] = min(best.get(row.family, ELSEWHERE), row.status, key=order.index)
    with_cpu = [row for row in rows if "CPU" in row.keys]
    return Counts(
        overloads=Counter(row.status for row in rows),
        families=Counter(best.values()),
        cpu=len(with_cpu),
        cpu_on_mps=sum(row.status in RUNS_ON_MPS for row in with_cpu),
    )


def gaps(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Return what a Mac lacks most: operators with kernels for CPU and CUDA that MPS does not run."""
    return tuple(row for row in rows if {"CPU", "CUDA"} <= set(row.keys) and row.status not in RUNS_ON_MPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One operator whose status differs; an empty status means that the side does not have it."""

    name: str
    before: str
    after: str
    reason: str

    def document(self) -> dict[str, str]:
        """Return the change of an overload's status as JSON."""
        return {"name": self.name, "before": self.before, "after": self.after, "reason": self.reason}


def compare(left: Facts, right: Facts) -> tuple[Change, ...]:
    """Return every operator whose status differs between two torches, each with its reason."""
    before, after = ({row.name: row for row in classify(side)} for side in (left, right))
    changes = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old is not None and new is not None and old.status == new.status:
            continue
        reason = _reason(old, new, left, right)
        changes.append(
            Change(name=name, before=old.status if old else "", after=new.status if new else "", reason=reason)
        )
    return tuple(changes)


def _reason(old: Row | None, new: Row | None, left: Facts, right: Facts) -> str:
    """Return why two rows differ, as far as the facts tell."""
    if old is None or new is None:
        side = right if old is None else left
        return f"only {side.label} has this operator"
    if {old.status, new.status} == {KERNEL, REFUSED} and "wheel" in (left.kind, right.kind):
        return "compiled code does not show that a kernel by hand only refuses: the source does"
    if old.through and new.through == old.through:
        return f"follows {new.through}, which it calls"
    if new.how == "by hand" or old.how == "by hand":
        side, state = (right, "registered") if new.how == "by hand" else (left, "no longer registered")
        where = next((each.where for each in side.by_hand if each.operator == new.name), "")
        return f"{state} by hand ({where})" if where else f"{state} by hand"
    if new.status == KERNEL:
        return "named for MPS in native_functions.yaml" if new.how == "own" else "its out= form has a kernel now"
    if old.status == KERNEL:
        return "no longer named for MPS in native_functions.yaml"
    gained, lost = set(new.keys) - set(old.keys), set(old.keys) - set(new.keys)
    changes = [f"{word} {', '.join(sorted(keys))}" for word, keys in (("gained", gained), ("lost", lost)) if keys]
    return "; ".join(changes) or (f"now calls {new.through}" if new.through else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelChange:
    """One embedded metallib of two wheels: how many kernels on each side, and the names that only one has."""

    section: str
    left: int
    right: int
    only_left: tuple[str, ...]
    only_right: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the difference of a metallib's kernels as JSON: counts and names."""
        only = {"only_left": list(self.only_left), "only_right": list(self.only_right)}
        return {"section": self.section, "left": self.left, "right": self.right, **only}


def compare_kernels(left: Facts, right: Facts) -> tuple[KernelChange, ...]:
    """Return the metallibs of two wheels side by side; none where a side has no wheel to read them from."""
    if not (left.kind == right.kind == "wheel"):
        return ()
    changes = []
    for section in sorted(left.kernels.keys() | right.kernels.keys()):
        old, new = (frozenset(side.kernels.get(section, ())) for side in (left, right))
        changes.append(
            KernelChange(
                section=section,
                left=len(old),
                right=len(new),
                only_left=tuple(sorted(old - new)),
                only_right=tuple(sorted(new - old)),
            )
        )
    return tuple(changes)


WORDS = ("wrong", "suspect", "refused", "fell back", "right")
_REFUSED = re.compile(r"operator '(?:aten::)?([\w.]+)' is not currently implemented")
_FELL_BACK = re.compile(r"operator '(?:aten::)?([\w.]+)' is not currently supported[^']*fall back")
_WRONG = (*FAILED, "known")
# How ids of older records begin: `layout-addr-grad`.
_NAMED = ("layout", "condition", "overload", "opinfo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One operator on one device: the word, and in how many cases it answered right and wrong."""

    word: str
    passed: int
    failed: int

    def document(self) -> dict[str, Any]:
        """Return the measured outcome of an operator as JSON: the word and the cases."""
        return {"measured": self.word, "passed": self.passed, "failed": self.failed}


def operator_of(case: str) -> str:
    """Return the operator that a case's id names; empty where it names none. Ids of older records are read too.

    >>> operator_of("addr:gradient:17"), operator_of("layout-addr-grad"), operator_of("overload-add.out")
    ('addr', 'addr', 'add')
    >>> operator_of("issue-131750")
    ''
    """
    name, is_drawn, _ = case.partition(":")
    if not is_drawn:
        layer, name = (*case.split("-", 2), "")[:2]
        name = name.partition(".")[0] if layer in _NAMED else ""
    return name.strip("_")


def measure(record: Record, operators: Iterable[str], *, on_cpu: frozenset[str] = frozenset()) -> dict[str, Measured]:
    """Return what the record tells of each operator that one of its cases asks.

    Args:
        operators: the overloads that there are (`add.Tensor`).
        on_cpu: operators registered to fall back by themselves: on MPS, their right answers are the CPU's.
    """
    overloads: dict[str, list[str]] = {}
    for name in operators:
        overloads.setdefault(name.partition(".")[0].strip("_").removesuffix("_backward"), []).append(name)
    passed: dict[str, int] = {}
    failed: dict[str, int] = {}
    named: dict[str, str] = dict.fromkeys(on_cpu, "fell back") if record.device == "mps" else {}
    for case in record.cases:
        text = _text(case)
        named |= dict.fromkeys(_REFUSED.findall(text), "refused") | dict.fromkeys(_FELL_BACK.findall(text), "fell back")
        tally = passed if case.outcome in ("passed", "unexpected_pass") else failed if case.outcome in _WRONG else None
        if tally is None or (tally is failed and _REFUSED.search(text)):
            continue  # a refusal is a gap, not a wrong answer
        for name in overloads.get(operator_of(case.id), ()):
            if _is_tested(name, case.id):
                tally[name] = tally.get(name, 0) + 1
    return {
        operator: _measured(named.get(operator, ""), passed.get(operator, 0), failed.get(operator, 0))
        for operator in sorted(passed.keys() | failed.keys() | (named.keys() - on_cpu))
    }


def _is_tested(operator: str, case: str) -> bool:
    """Say whether a case can have run an overload: a gradient's kernel, an `out=` and a write in place by their form.

    >>> [_is_tested(name, "elu:out:3") for name in ("elu", "elu.out", "elu_", "elu_backward")]
    [False, True, False, False]
    """
    words = set(re.split(r"[:-]", case))
    name, _, overload = operator.partition(".")
    if name.endswith("_backward"):
        return bool(words & {"gradient", "grad", "second_gradient"})
    if "out" in overload.split("_"):
        return "out" in words
    return ("inplace" in words) if name.endswith("_") else not words & {"out", "inplace"}


def _measured(named: str, passed: int, failed: int) -> Measured:
    word = named or ("right" if not failed else "suspect" if passed else "wrong")
    return Measured(word=word, passed=passed, failed=failed)


def _text(case: Case) -> str:
    return f"{case.reason or ''} {json.dumps(case.error) if case.error else ''}"


def totals(measured: Iterable[Measured]) -> dict[str, int]:
    """Return how many operators each word has, in the order of WORDS."""
    words = [each.word for each in measured]
    return {word: words.count(word) for word in WORDS if word in words}
