"""How large a launch may be: what a family's rule says of the host, held against the wheel's own host code."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
        limited = [each for each in tensors if not self.ask.of or each.name in self.ask.of]
        return all(self._of(each) <= self.guard.most for each in limited)

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
        small: why the kernel's 32-bit arithmetic is small in every launch; empty if it need not be.
        unnamed: the name that the host code would need to launch the kernel, and does not hold; empty if it may.
    """

    rule: Rule | None
    bounds: tuple[Bound, ...] = ()
    unknown: str = ""
    small: str = ""
    unnamed: str = ""

    @property
    def never(self) -> str:
        """Why no launch of the kernel is made at all; empty if some is, or may be."""
        if self.unnamed:
            return f"the wheel's host code holds no {self.unnamed}"
        return self.rule.never if self.rule and not self.unknown else ""

    @property
    def when(self) -> str:
        """Which launches are made, as a condition (families/shared/large.py); empty if that is not stated."""
        return self.rule.when if self.rule and not self.unknown else ""

    @property
    def keeps_small(self) -> bool:
        """Whether every buffer of a launch reaches over less than 2**31 bytes: no offset of 32 bits wraps there."""
        return any(
            each.guard.quantity == "bytes" and each.guard.most < 1 << 31 and not each.ask.of for each in self.bounds
        )

    def makes(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether the host may make a launch of these tensors; True where it is not known."""
        return all(each.passes(tensors) for each in self.bounds)

    @property
    def text(self) -> str:
        """What becomes of larger tensors."""
        return "; ".join(dict.fromkeys(each.ask.text for each in self.bounds))


_TWINS = (("u32", "u64"), ("uint32_t", "uint64_t"), ("int32_t", "int64_t"), ("i32", "i64"))
NOTHING = HostCode(calls={}, reason="the wheel's host code was not read")


def host_code_of(target: Path, *, is_installed: bool = False) -> HostCode:
    """Return what the rules ask of a wheel's (or an installed torch's) host code."""
    rules = [rule for each in load_rules().values() for rule in each]
    functions = sorted({name for rule in rules for each in rule.host for name in _way(each)})
    guards = sorted({each.symbol for each in load_guards()})
    texts = sorted(
        {text for rule in rules for text in (rule.held, rule.named, *(ask.message for ask in rule.asks)) if text}
    )
    return (read_installed_code if is_installed else read_host_code)(target, functions, guards, texts)


def host_of(kernel: Kernel, code: HostCode, names: Collection[str] = ()) -> Host:
    """Return what the host is known to launch of a kernel.

    Args:
        names: of all kernels of the library.
    """
    rule = rule_of(kernel.contract, kernel.name) if kernel.contract else None
    if rule is None:
        return Host(rule=None, unknown="no rule says what the host does with large tensors")
    if rule.named and not code.reason and rule.named not in code.texts:
        return Host(rule=rule, unnamed=rule.named)
    ways = [_way(each) for each in rule.host]
    found = [tuple(name for name in way if name in code.calls) for way in ways]
    called = {way: _called(code.calls, way) for way in found if way}
    if not called:
        return Host(rule=rule, unknown=code.reason or f"the wheel's host code does not name {ways[0][-1]}")
    twin = twin_of(kernel.name, names)
    bounds = [each for ask in rule.asks for each in _bounds(ask, code, list(called.values()), twin)]
    if rule.held and rule.held not in code.texts:
        return Host(rule=rule, bounds=tuple(bounds), unknown="its host code is not the one that the rule was read of")
    if rule.small and len(bounds) >= len(rule.asks) and all(each.guard.most < 1 << 31 for each in bounds):
        return Host(rule=rule, bounds=tuple(bounds), small=rule.small)
    comparing = next((way[-1] for way, calls in called.items() if INLINE in calls), "")
    if comparing and not rule.compares and not bounds:
        unknown = f"{comparing} compares with 2**31 in a way that no rule states"
        return Host(rule=rule, bounds=tuple(bounds), unknown=unknown)
    above = {guard.partition(" ")[0] for way in called for name in way for guard in code.callers.get(name, ())}
    if unstated := above - {ask.guard for ask in rule.asks}:
        unknown = f"what calls {ways[0][-1]} asks {', '.join(sorted(unstated))}, and no rule says for what"
        return Host(rule=rule, bounds=tuple(bounds), unknown=unknown if not bounds else "")
    if twin and not rule.asks:
        return Host(rule=rule, unknown=f"{twin} is there for larger tensors, and no rule says when it is taken")
    return Host(rule=rule, bounds=tuple(bounds))


def twin_of(name: str, names: Collection[str]) -> str | None:
    """Return the kernel of 64-bit offsets that the library has beside one of 32-bit offsets.

    >>> twin_of("softmax_row_float_u32", {"softmax_row_float_u64"}), twin_of("softmax_row_float_u64", {"x"})
    ('softmax_row_float_u64', None)
    >>> twin_of("index_copy_float_32", {"index_copy_float_64"}), twin_of("mm_32_float", {"mm_64_float"})
    ('index_copy_float_64', None)
    """
    if name.endswith("_32") and name[:-2] + "64" in names:  # elsewhere it is a size of something else
        return name[:-2] + "64"
    found = (f"_{name}_".replace(f"_{narrow}_", f"_{wide}_")[1:-1] for narrow, wide in _TWINS)
    return next((each for each in found if each != name and each in names), None)


def _bounds(ask: Ask, code: HostCode, called: Sequence[Mapping[str, int]], twin: str | None) -> list[Bound]:
    """Return what an ask keeps small: nothing if the wheel's host code does not ask it in every way to the kernel."""
    if ask.limit is not None:
        holds = twin is not None if ask.twin else ask.message in code.texts
        return [Bound(guard=ask.limit, ask=ask)] if holds else []
    return [
        Bound(guard=_with_number(each, [calls[each.symbol] for calls in called]), ask=ask)
        for each in load_guards()
        if each.name == ask.guard and all(each.symbol in calls for calls in called)
    ]


def _with_number(guard: Guard, numbers: Sequence[int]) -> Guard:
    """Return a guard with the largest number that it is called with, if that is what it limits."""
    most = max(numbers) if guard.is_given else 0
    return guard.model_copy(update={"most": most or guard.most})


def _way(text: str) -> tuple[str, ...]:
    """Return the functions of a way.

    >>> _way("sort_out > launch_sort")
    ('sort_out', 'launch_sort')
    """
    return tuple(part.strip() for part in text.split(">"))


def _called(calls: Mapping[str, Mapping[str, int]], way: Sequence[str]) -> dict[str, int]:
    """Return the guards of a way, each with the smallest number that is given on it."""
    found: dict[str, int] = {}
    for name in way:
        for guard, number in calls[name].items():
            found[guard] = min(number, found.get(guard) or number)
    return found
