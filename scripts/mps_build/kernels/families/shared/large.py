"""What torch's host code does with large tensors, as data: `large` of a family.yaml, a rule for some forms.

A rule names the host functions that launch the forms, which guards they ask, and a call that leads there. Whether a
wheel's host code asks them is read from the wheel (read/host_code.py), never from its version. A rule's condition is
over the numbers of a launch: `size > 4 * threads`.
"""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel, TypeAdapter, model_validator

from ....common import strict_yaml
from .contracts import FOLDER, Contract, load_families

Number = int | tuple[int, ...] | Mapping[str, int]

FUNCTIONS: dict[str, Callable[..., int]] = {
    "min": min,
    "max": max,
    "ceil_div": lambda a, b: -(-a // b),
    "bit_ceil": lambda n: 1 << max(n - 1, 0).bit_length(),  # the next power of two
}
_NODES = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.Eq, ast.NotEq, ast.Lt,
    ast.LtE, ast.Gt, ast.GtE, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Call, ast.Subscript,
    ast.Name, ast.Load, ast.Constant,
)  # fmt: skip


def names_in(text: str) -> set[str]:
    """Return the numbers that a condition names; a member of a mapping as `mapping.member`.

    >>> sorted(names_in("dims[0] > 4 * threads and element['x'] == 2"))
    ['dims', 'element.x', 'threads']

    Raises:
        ValueError: it is no condition.
    """
    tree = _parsed(text)
    members = {
        f"{node.value.id}.{node.slice.value}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    }
    mappings = {each.partition(".")[0] for each in members}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return (names - set(FUNCTIONS) - mappings) | members


def holds(text: str, numbers: Mapping[str, Number]) -> bool:
    """Return whether a condition holds.

    >>> holds("bit_ceil(dims[0]) == threads", {"dims": (5, 1), "threads": 8})
    True

    Raises:
        KeyError, NameError: a number that it names is not there.
    """
    code = compile(_parsed(text), "condition", "eval")
    return bool(eval(code, {"__builtins__": {}, **FUNCTIONS}, dict(numbers)))


def _parsed(text: str) -> ast.Expression:
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{text!r} is not a condition: {error.msg}") from None
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise ValueError(f"{text!r} is not a condition: {type(node).__name__} is not allowed")
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS):
            raise ValueError(f"{text!r} is not a condition: only {', '.join(FUNCTIONS)} may be called")
    return tree


def _checked(value: Any) -> Any:
    if value:
        names_in(value)
    return value


Condition = Annotated[str, AfterValidator(_checked)]
"""A condition in a data file."""


GUARDS = Path(__file__).with_name("guards.yaml")
Quantity = Literal["bytes", "elements", "dimension"]
Then = Literal["cuts", "other", "refuses"]
Way = Literal["x", "y", "z", "raised", "stretched", "stated"]
Texts = Annotated[tuple[str, ...], Field(min_length=1)]
_THEN: dict[Then, str] = {
    "cuts": "torch launches it in parts",
    "other": "torch launches another kernel",
    "refuses": "torch refuses the call",
}


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Guard(_Row):
    """A function that host code asks whether a tensor is too large, or what it says when it refuses one.

    Args:
        name: of the function, or the text of the error.
        arguments: the function's arguments as mangled, where a release has another meaning with others.
        quantity: what it limits: the bytes or elements that a tensor reaches over, or each of its dimensions.
        most: the most that passes.
        is_given: the call's second argument is the most that passes, if the machine code shows a number there.
        source: where that stands.
    """

    name: str
    arguments: str = ""
    quantity: Quantity
    most: int
    is_given: bool = False
    source: str

    @property
    def symbol(self) -> str:
        """Its name, and behind a space its mangled arguments."""
        return f"{self.name} {self.arguments}".strip()


class Ask(_Row):
    """What a rule says the host asks: a function, an error whose text the wheel holds, what chooses a kernel.

    Args:
        guard: the function's name; `message`: a text that the wheel's host code holds if it asks; `twin`: what
            chooses the kernel of 64-bit offsets that the library has beside this one. The latter two with `quantity`
            and `most` as in Guard.
        why: what a message's text does not tell.
        then: what the host does with a tensor that does not pass.
        of: the kernel's arguments that it concerns; empty: all buffers.
    """

    guard: str = ""
    message: str = ""
    twin: str = ""
    why: str = ""
    quantity: Quantity | None = None
    most: int | None = None
    then: Then
    of: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_one(self) -> Ask:
        if sum(map(bool, (self.guard, self.message, self.twin))) != 1:
            raise ValueError("needs a guard, a message or a twin")
        if self.guard and self.guard not in {each.name for each in load_guards()}:
            raise ValueError(f"{self.guard} is not a guard")
        if bool(self.guard) == (self.quantity is not None and self.most is not None):
            raise ValueError("a message or a twin needs quantity and most, a guard has its own")
        return self

    @property
    def limit(self) -> Guard | None:
        """The limit that a message or a twin tells of; None for a function."""
        if self.quantity is None or self.most is None:
            return None
        return Guard(name=self.question, quantity=self.quantity, most=self.most, source="the rule")

    @property
    def question(self) -> str:
        """What the host asks, in words."""
        return self.why or self.guard or self.message or self.twin

    @property
    def text(self) -> str:
        """What becomes of a larger tensor."""
        return f"larger ones: {_THEN[self.then]} ({self.question})"


class Rule(_Row):
    """What the host does before it launches some forms of a family.

    Args:
        contracts: shell patterns on the contracts' `family`; `kernels`: on the kernel's name (one of them fits).
        host: functions that launch; each may be a way, `A > B`, of which any function may ask.
        asks: the guards.
        compares: what the host functions compare with 2**31 themselves, if it keeps no launch of these forms small.
        chooses: why the host may launch another form at another size; then a failure there is no finding.
        held: a text that the wheel's host code holds if it is what `when` and `never` were read of.
        named: a text by which the host code names these forms; a wheel's that does not hold it launches none of them.
        when: the launches that the host makes of these forms: of the launch's constants, `groups` (threadgroups along
            each axis; threads, where they do not work together), `element` (bytes of an argument's elements) and the
            numbers in the kernel's name.
        never: why it launches these forms for no tensor at all.
        small: why their 32-bit arithmetic stays below 2**31 in every launch, however large the tensors are.
        ways: in which the cases become such launches; others are not tried. Empty: all.
        views: the host hands the strides of views on as they are; else it may copy them before, and a failure for
            views alone is no finding.
        call: what leads there: `{input}` is a tensor as the argument `input` has it, `{input_shape}` its shape, `{op}`
            a part of the kernel's name.
        source: where the facts are from.
    """

    contracts: Texts
    kernels: Texts = ("*",)
    host: Texts
    asks: tuple[Ask, ...] = ()
    compares: str = ""
    chooses: str = ""
    held: str = ""
    named: str = ""
    when: Condition = ""
    never: str = ""
    small: str = ""
    ways: tuple[Way, ...] = ()
    views: bool = False
    call: str
    source: str

    def covers(self, contract: Contract, kernel: str) -> bool:
        """Return whether the rule, one of the contract's folder, speaks of a kernel."""
        return any(fnmatch.fnmatchcase(contract.family, each) for each in self.contracts) and any(
            fnmatch.fnmatchcase(kernel, each) for each in self.kernels
        )


class Rules(RootModel[tuple[Rule, ...]]):
    """The rules of one family."""


def rule_of(contract: Contract, kernel: str) -> Rule | None:
    """Return the first rule that speaks of a kernel."""
    return next((each for each in load_rules().get(contract.folder, ()) if each.covers(contract, kernel)), None)


@cache
def load_guards(path: Path = GUARDS) -> tuple[Guard, ...]:
    """Return all guards.

    Raises:
        ValueError: a row has an unknown key, lacks one, or has another type.
    """
    return TypeAdapter(tuple[Guard, ...]).validate_python(strict_yaml.unchecked(path.read_text(encoding="utf-8")))


@cache
def load_rules(folder: Path = FOLDER) -> dict[str, tuple[Rule, ...]]:
    """Return the rules of each family's folder, in their order.

    Raises:
        ValueError: a rule has an unknown key, lacks one, or names a guard that is not there.
    """
    families = load_families(folder).items()
    return {name: Rules.model_validate(each["large"]).root for name, each in families if "large" in each}
