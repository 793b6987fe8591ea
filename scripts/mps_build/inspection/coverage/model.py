"""What was found out about one torch's operators, and the document that keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...common.errors import UsageError
from ...common.json_text import checked

SCHEMA = "mps-build/op_coverage/1"
COMPOSITES = ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd", "CompositeImplicitAutograd")


@dataclass(frozen=True, slots=True, kw_only=True)
class ByHand:
    """One kernel that C++ code registers itself, past torchgen.

    It `falls_back` if it is the one that asks the CPU, and `refuses` if its body fails whatever it is given.
    """

    operator: str
    falls_back: bool
    where: str
    refuses: bool = False
    key: str = "MPS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One torch: what each dispatch key has kernels for.

    Attributes:
        registered: dispatch key to operators (`add.Tensor`), as torchgen or the headers say.
        through: a composite that torchgen wrote itself, to the one operator that it calls.
        elsewhere: an operator without a kernel for CPU, CUDA or MPS and without a composite, to the keys it has.
        kernels: the names in each embedded metallib (of a wheel).
        checks: what one way of reading says and another does not.
    """

    label: str
    kind: Literal["source", "wheel"]
    version: str
    registered: Mapping[str, frozenset[str]]
    own: frozenset[str] = frozenset()
    through: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by_hand: tuple[ByHand, ...] = ()
    kernels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def operators(self) -> frozenset[str]:
        """Every operator of aten that something is known of."""
        return frozenset().union(*self.registered.values(), self.elsewhere, (each.operator for each in self.by_hand))

    def document(self) -> dict[str, Any]:
        """Return the facts as JSON, from which `from_document` makes them again."""
        return {
            "schema": SCHEMA,
            "label": self.label,
            "kind": self.kind,
            "version": self.version,
            "registered": {key: sorted(names) for key, names in sorted(self.registered.items())},
            "own": sorted(self.own),
            "through": dict(sorted(self.through.items())),
            "elsewhere": {name: list(keys) for name, keys in sorted(self.elsewhere.items())},
            "by_hand": [
                {
                    "operator": each.operator,
                    "key": each.key,
                    "falls_back": each.falls_back,
                    "refuses": each.refuses,
                    "where": each.where,
                }
                for each in self.by_hand
            ],
            "kernels": {section: sorted(names) for section, names in sorted(self.kernels.items())},
            "checks": list(self.checks),
            "notes": list(self.notes),
        }


def from_document(document: object, *, named: str) -> Facts:
    """Return the facts that a document of ours holds.

    Raises:
        UsageError: it is none.
    """
    if isinstance(document, dict) and isinstance(document.get("facts"), dict):
        document = document["facts"]
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        hint = "give a recipe, a source tree, a wheel, a requirement, or what `op_coverage --json` wrote"
        raise UsageError(f"{named}: is not a document of op_coverage (schema {SCHEMA})", hint=hint)
    return checked(document, Facts, name=named, what="document of op_coverage")
