"""What the host asks before it launches the kernels of the tests, and a contract for them."""

from __future__ import annotations

from dataclasses import replace

from mps_build.kernels.families.shared.contracts import Contract, load_contracts
from mps_build.kernels.families.shared.large import Ask, Rule
from mps_build.kernels.read.host_code import HostCode

UNGUARDED = HostCode(calls={"launch": {}})
CUT = HostCode(calls={"launch": {"with_32bit_indexing": 0}})
RULE = Rule(
    contracts=("*",),
    host=("launch",),
    asks=(Ask(guard="with_32bit_indexing", then="cuts"),),
    call="torch.good({input})",
    source="this test",
)


def changed(**fields: object) -> Rule:
    """Return the rule with other fields."""
    return RULE.model_copy(update=fields)


def contract() -> Contract:
    return replace(load_contracts()[0], folder="unary", family="own")
