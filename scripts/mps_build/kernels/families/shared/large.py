"""What torch's host code does with large tensors, as data: families/*/large.yaml, a rule for some forms of a family.

A rule names the host functions that launch the forms, which guards they ask, and a call that leads there. Whether a
wheel's host code asks them is read from the wheel (read/host_code.py), never from its version.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from ....common import strict_yaml
from .contracts import FOLDER, Contract

GUARDS = Path(__file__).with_name("guards.yaml")
Quantity = Literal["bytes", "elements", "dimension"]
Then = Literal["cuts", "other", "refuses"]
_THEN = {
    "cuts": "torch launches it in parts",
    "other": "torch launches another kernel",
    "refuses": "torch refuses the call",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A function that host code asks whether a tensor is too large, or what it says when it refuses one.

    Args:
        name: of the function, or the text of the error; `arguments`: the function's arguments as mangled, where a
            release has another meaning with others.
        quantity: what it limits: the bytes or elements that a tensor reaches over, or each of its dimensions.
        most: the most that passes; `is_told`: unless the call's second argument is another number.
        source: where that stands.
    """

    name: str
    arguments: str
    quantity: Quantity
    most: int
    source: str
    is_told: bool = False

    @property
    def symbol(self) -> str:
        """Its name, and behind a space its mangled arguments."""
        return f"{self.name} {self.arguments}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A guard that a rule says is asked.

    Args:
        guard: the function's name; empty if the host compares itself, which `refusal` then tells.
        refusal: the limit, whose name is the text of the error.
        then: what the host does with a tensor that does not pass.
        of: the kernel's arguments that are asked of; empty: all buffers.
    """

    guard: str
    refusal: Guard | None
    then: Then
    of: tuple[str, ...]

    @property
    def text(self) -> str:
        """What becomes of a larger tensor."""
        by = self.guard or (self.refusal.name if self.refusal else "")
        return f"larger ones: {_THEN[self.then]} ({by})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What the host does before it launches some forms of a family.

    Args:
        folder: of the family.
        contracts: shell patterns on the contracts' `family`; `kernels`: on the kernel's name (one of them fits).
        host: functions that launch; each may be a way, `A > B`, of which any function may ask.
        asks: the guards.
        compares: what the host functions compare with 2**31 themselves, if it keeps no launch of these forms small.
        chooses: why the host may launch another form at another size; then a failure there is no finding.
        views: the host hands the strides of views on as they are; else it may copy them before, and a failure for
            views alone is no finding.
        call: what leads there: `{input}` is a tensor as the argument `input` has it, `{op}` a part of the name.
        source: where the facts are from.
    """

    folder: str
    contracts: tuple[str, ...]
    kernels: tuple[str, ...]
    host: tuple[str, ...]
    asks: tuple[Ask, ...]
    call: str
    source: str
    compares: str = ""
    chooses: str = ""
    views: bool = False

    def covers(self, contract: Contract, kernel: str) -> bool:
        """Return whether the rule speaks of a kernel."""
        return (
            contract.folder == self.folder
            and any(fnmatch.fnmatchcase(contract.family, each) for each in self.contracts)
            and any(fnmatch.fnmatchcase(kernel, each) for each in self.kernels)
        )


def rule_of(contract: Contract, kernel: str) -> Rule | None:
    """Return the first rule that speaks of a kernel."""
    return next((each for each in load_rules() if each.covers(contract, kernel)), None)


@cache
def load_guards(path: Path = GUARDS) -> tuple[Guard, ...]:
    """Return all guards.

    Raises:
        ValueError: a row has an unknown key or lacks one.
    """
    rows = strict_yaml.unchecked(path.read_text(encoding="utf-8"))
    return tuple(_guard(row) for row in rows)


def _guard(row: Mapping[str, Any]) -> Guard:
    _check(row, "guards.yaml", needed={"name", "quantity", "most", "source"}, more={"arguments", "is_told"})
    if row["quantity"] not in get_args(Quantity):
        raise ValueError(f"guards.yaml: {row['name']}: unknown quantity {row['quantity']}")
    return Guard(
        name=row["name"],
        arguments=row.get("arguments", ""),
        quantity=row["quantity"],
        most=row["most"],
        source=row["source"],
        is_told=row.get("is_told", False),
    )


@cache
def load_rules(folder: Path = FOLDER) -> tuple[Rule, ...]:
    """Return all rules, each folder's in their order.

    Raises:
        ValueError: a rule has an unknown key, lacks one, or names a guard that is not there.
    """
    return tuple(
        _rule(row, path.parent.name)
        for path in sorted(folder.glob("*/large.yaml"))
        for row in strict_yaml.unchecked(path.read_text(encoding="utf-8")) or []
    )


def _rule(row: Mapping[str, Any], folder: str) -> Rule:
    where = f"{folder}: {row.get('contracts')}"
    _check(
        row,
        where,
        needed={"contracts", "host", "call", "source"},
        more={"kernels", "asks", "compares", "chooses", "views"},
    )
    return Rule(
        folder=folder,
        contracts=tuple(row["contracts"]),
        kernels=(kernels,) if isinstance(kernels := row.get("kernels", "*"), str) else tuple(kernels),
        host=tuple(row["host"]),
        asks=tuple(_ask(ask, where) for ask in row.get("asks", ())),
        call=row["call"],
        source=row["source"],
        compares=row.get("compares", ""),
        chooses=row.get("chooses", ""),
        views=row.get("views", False),
    )


def _ask(row: Mapping[str, Any], where: str) -> Ask:
    refusal = None
    if "message" in row:
        _check(row, where, needed={"message", "quantity", "most", "then"}, more={"of"})
        refusal = Guard(
            name=row["message"], arguments="", quantity=row["quantity"], most=row["most"], source="the error's text"
        )
    else:
        _check(row, where, needed={"guard", "then"}, more={"of"})
        if row["guard"] not in {each.name for each in load_guards()}:
            raise ValueError(f"{where}: {row['guard']} is not a guard")
    if row["then"] not in _THEN:
        raise ValueError(f"{where}: the host does not do {row['then']}")
    return Ask(guard=row.get("guard", ""), refusal=refusal, then=row["then"], of=tuple(row.get("of", ())))


def _check(row: Mapping[str, Any], where: str, *, needed: set[str], more: set[str]) -> None:
    if unknown := set(row) - needed - more:
        raise ValueError(f"{where}: unknown keys {sorted(unknown)}")
    if missing := needed - set(row):
        raise ValueError(f"{where}: lacks {sorted(missing)}")
