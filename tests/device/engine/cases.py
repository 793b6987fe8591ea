"""A case: one small question to a device, and the registry in which a test file collects its own."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import Any, Callable

# fresh: the first call in the case; again: the same inputs, the answer must be bit for bit the first;
# other: another shape in between (graph caches keyed too coarsely); polluted: new values at the first shape after
# freed blocks of the allocator were filled with a large number (stale caches, reads past the end).
STATES = ("fresh", "again", "other", "polluted")
# Another shape is another graph: a case that is about it says so; `repeated` asks it of every operator.
DEFAULT_STATES = ("fresh", "again", "polluted")


@dataclass(frozen=True)
class Case:
    """One question. `make` draws the bases on the host, `act` gets them on a device and returns what is compared.

    Attributes:
        terms: K, how many products or summands one output element has; the bound grows with its square root.
        factor: c of the bound: 4, and 16 for pow, whose Metal function may be 16 units in the last place off.
        floor: the scale is at least this: results that are small beside their terms (cancellation).
        deterministic: two calls must give the same bits; False where the order of additions is free (atomics).
        strides: compare the strides of the outputs too (views, in-place, out=: where the layout is a contract).
        anywhere: outputs may lie on any device (copies to the host).
        alone: run in a process of its own, where a driver is there to start one: it leaves traces in the process.
        quiet: with `full`: where the option is not given, the case is not even listed as skipped.
        autocast: the dtype in which the act computes under autocast, in all runs but the reference. Its answers have
            the dtypes that the device's lists give, and the bound of this one.
        check: `act` is a free check, called once with a Bench; it asserts by itself.
    """

    id: str
    layer: str
    act: Callable[..., Any]
    make: Callable[..., Any] | None = None
    issues: tuple[str, ...] = ()
    terms: int = 1
    factor: float = 4.0
    floor: float = 0.0
    deterministic: bool = True
    strides: bool = False
    anywhere: bool = False
    since: str | None = None
    full: bool = False
    quiet: bool = False
    memory_bytes: int = 0
    limit_seconds: float = 60.0
    states: tuple[str, ...] = DEFAULT_STATES
    devices: tuple[str, ...] = ()
    may_be_missing: bool = False
    autocast: Any = None
    check: bool = False
    alone: bool = False

    @functools.cached_property
    def wants_run(self) -> bool:
        """Say whether `act` takes the run as its first argument."""
        parameters = list(inspect.signature(self.act).parameters)
        return bool(parameters) and parameters[0] == "run"


class Cases:
    """The cases of one test file, in order; ids are unique.

    >>> cases = Cases("regressions")
    >>> @cases.case("issue-1", make=lambda d: d.normal(2, 3), issues=("1",))
    ... def doubled(x):
    ...     return x * 2
    >>> [case.id for case in cases]
    ['issue-1']
    """

    def __init__(self, layer: str) -> None:
        self.layer = layer
        self._by_id: dict[str, Case] = {}

    def __iter__(self) -> Any:
        return iter(self._by_id.values())

    def listed(self, *, full: bool) -> list[Case]:
        """Return the cases; what is quiet, or takes long to list, is listed with `full` only."""
        return [case for case in self if full or not case.quiet]

    def add(self, case_id: str, act: Callable[..., Any], **fields: Any) -> None:
        """Register one case; `issue="1"` is short for `issues=("1",)`."""
        if "issue" in fields:
            fields["issues"] = (str(fields.pop("issue")),)
        if case_id in self._by_id:
            raise ValueError(f"two cases are called {case_id}")
        self._by_id[case_id] = Case(id=case_id, layer=self.layer, act=act, **fields)

    def case(self, case_id: str, **fields: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register the decorated function as a case that is compared with the reference."""

        def register(act: Callable[..., Any]) -> Callable[..., Any]:
            self.add(case_id, act, **fields)
            return act

        return register

    def check(self, case_id: str, **fields: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register the decorated function as a free check: called once with a Bench, it asserts by itself."""
        return self.case(case_id, check=True, **fields)
