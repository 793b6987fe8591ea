"""What a worker knows of large launches already: kernels that make their addresses alike share a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..families.shared.contracts import Case, Kernel
from ..families.shared.large import rule_of
from ..machine.runner import Runner
from ..read.host_code import HostCode
from .examine import Verdict
from .examine_large import examine_large, unmoved
from .moves import Ways
from .records import Addressing

_SHARED = ("passed", "overflow_candidate")


@dataclass(slots=True, kw_only=True)
class LargeRuns:
    """The large launches of one worker, one kernel after the other.

    Args:
        host: what the wheel's host code asks before it launches.
    """

    host: HostCode
    _ways: Ways = field(default_factory=Ways)
    _seen: dict[tuple[object, ...], tuple[str, Verdict]] = field(default_factory=dict)

    def settled(self, kernel: Kernel, found: Addressing) -> Verdict | None:
        """Return a kernel's verdict if it need not be run."""
        if (verdict := unmoved(kernel, found.narrow)) is not None:
            return verdict
        name, verdict = self._seen.get(_key(kernel, found), ("", None))
        if verdict is None:
            return None
        return replace(verdict, reason=f"{verdict.reason} (as {name}, which makes its addresses alike)")

    def examined(self, kernel: Kernel, case: Case, device: Runner, found: Addressing) -> Verdict:
        """Run a kernel, and keep its verdict for those that make their addresses alike."""
        verdict = examine_large(kernel, case, device, found.narrow, self.host, self._ways)
        if verdict.outcome in _SHARED:
            self._seen[_key(kernel, found)] = kernel.name, verdict
        return verdict


def _key(kernel: Kernel, found: Addressing) -> tuple[object, ...]:
    """Return what two kernels must share: form, rule, the types' sizes, and all that decides what they touch."""
    sizes = tuple((each.name, each.element, each.size, each.align) for each in kernel.metadata.arguments)
    rule = rule_of(kernel.contract, kernel.name) if kernel.contract else None
    return kernel.contract and kernel.contract.family, rule, sizes, kernel.metadata.arrays, found.digest
