"""How large a launch may be: what a family's rule says of the host, held against the wheel's own host code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..families.shared.contracts import Kernel
from ..families.shared.large import Ask, Guard, Rule, load_guards, load_rules, rule_of
from ..program.launch import Shape
from ..read.host_code import INLINE, HostCode, read_host_code, read_installed_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor of a large launch: what the kernel calls it, its bytes, its shape as far as it is known, an element."""

    name: str
    size: int
    shape: Shape
    element: int

    @property
    def elements(self) -> int:
        """How many elements it reaches over."""
        return -(-self.size // max(self.element, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What tensors keep in each launch of one kernel, and what the host does with larger ones."""

    guard: Guard
    ask: Ask

    def passes(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether a launch of these tensors is made."""
        asked = [each for each in tensors if not self.ask.of or each.name in self.ask.of]
        return all(self._of(each) <= self.guard.most for each in asked)

    def _of(self, tensor: Tensor) -> int:
        if self.guard.quantity == "bytes":
            return tensor.size
        return tensor.elements if self.guard.quantity == "elements" else max(tensor.shape, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What is known of the host's launches of one kernel.

    Args:
        rule: the family's; None if none speaks of the kernel.
        bounds: of each launch; a stated guard that the wheel's code does not ask is none.
        unknown: why it is not known which launches are made; empty if it is.
    """

    rule: Rule | None
    bounds: tuple[Bound, ...] = ()
    unknown: str = ""

    def makes(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether the host may make a launch of these tensors; True where it is not known."""
        return all(each.passes(tensors) for each in self.bounds)

    @property
    def text(self) -> str:
        """What becomes of larger tensors."""
        return "; ".join(dict.fromkeys(each.ask.text for each in self.bounds))


NOTHING = HostCode(calls={}, reason="the wheel's host code was not read")


def host_code_of(target: Path, *, is_installed: bool = False) -> HostCode:
    """Return what the rules ask of a wheel's (or an installed torch's) host code."""
    functions = sorted({name for rule in load_rules() for each in rule.host for name in _way(each)})
    guards = sorted({each.symbol for each in load_guards()})
    return (read_installed_code if is_installed else read_host_code)(target, functions, guards)


def host_of(kernel: Kernel, code: HostCode) -> Host:
    """Return what the host is known to launch of a kernel."""
    rule = rule_of(kernel.contract, kernel.name) if kernel.contract else None
    if rule is None:
        return Host(rule=None, unknown="no rule says what the host does with large tensors")
    ways = [_way(each) for each in rule.host]
    found = [[name for name in way if name in code.calls] for way in ways]
    if not any(found):
        why = code.reason or f"the wheel's host code does not name {ways[0][-1]}"
        return Host(rule=rule, unknown=why)
    called = [_called(code.calls, way) for way in found if way]
    bounds, missing = [], []
    for ask in rule.asks:
        holding = [each for each in load_guards() if each.name == ask.guard]
        common = [each for each in holding if all(each.symbol in calls for calls in called)]
        bounds += [Bound(guard=each, ask=ask) for each in common]
        if not common:
            missing.append(ask)
    if (missing or not rule.asks) and any(INLINE in calls for calls in called):
        name = next(way[-1] for way, calls in zip((each for each in found if each), called, strict=True) if INLINE in calls)
        return Host(rule=rule, bounds=tuple(bounds), unknown=f"{name} compares with 2**31 in a way that no rule states")
    return Host(rule=rule, bounds=tuple(bounds))


def _way(text: str) -> tuple[str, ...]:
    """Return the functions of a way.

    >>> _way("sort_out > launch_sort")
    ('sort_out', 'launch_sort')
    """
    return tuple(part.strip() for part in text.split(">"))


def _called(calls: Mapping[str, frozenset[str]], way: Sequence[str]) -> set[str]:
    return {guard for name in way for guard in calls[name]}

