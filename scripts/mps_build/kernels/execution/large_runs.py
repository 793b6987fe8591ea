"""What the workers of a run know of large launches already: kernels that make their addresses alike share a verdict."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ...common.files import write_whole
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
        folder: of this run alone, where its workers leave verdicts for each other.
    """

    host: HostCode
    folder: Path
    _ways: Ways = field(default_factory=Ways)
    _seen: dict[str, tuple[str, Verdict]] = field(default_factory=dict)

    def settled(self, kernel: Kernel, found: Addressing) -> Verdict | None:
        """Return a kernel's verdict if it need not be run."""
        if (verdict := unmoved(kernel, found.narrow)) is not None:
            return verdict
        key = _key(kernel, found)
        if key not in self._seen and (row := _read(self.folder / key)) is not None:
            self._seen[key] = row["name"], Verdict(**row["verdict"])
        if key not in self._seen:
            return None
        name, verdict = self._seen[key]
        return replace(verdict, reason=f"{verdict.reason} (as {name}, which makes its addresses alike)")

    def examined(
        self, kernel: Kernel, case: Case, device: Runner, found: Addressing, names: Collection[str]
    ) -> Verdict:
        """Run a kernel of a library with these kernels, and keep its verdict for those that make addresses alike."""
        verdict = examine_large(kernel, case, device, found.narrow, self.host, self._ways, names)
        if verdict.outcome in _SHARED:
            key = _key(kernel, found)
            self._seen[key] = kernel.name, verdict
            self.folder.mkdir(mode=0o700, exist_ok=True)
            write_whole(self.folder / key, json.dumps({"name": kernel.name, "verdict": asdict(verdict)}), mode=0o600)
        return verdict


def _read(path: Path) -> dict[str, Any] | None:
    try:
        row: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return row


def _key(kernel: Kernel, found: Addressing) -> str:
    """Return a digest of what two kernels must share: form, rule, sizes of types, and what decides what they touch."""
    arguments = kernel.metadata.arguments
    sizes = [(each.name, each.element, each.size, each.align) for each in arguments]
    rule = rule_of(kernel.contract, kernel.name) if kernel.contract else None
    family = kernel.contract.family if kernel.contract else ""
    named = sorted(kernel.parts.items()) if rule and rule.when else ()  # a condition may name them
    shared = family, rule, sizes, kernel.metadata.arrays, named, found.digest
    return hashlib.sha256(repr(shared).encode()).hexdigest()[:32]
