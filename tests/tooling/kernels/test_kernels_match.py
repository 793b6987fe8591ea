"""No kernel of the six releases on record has two contracts, in whatever order they are read."""

from __future__ import annotations

import json
import lzma
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mps_build.kernels.families.shared.contracts import Contract, load_contracts, match_kernel
from mps_build.kernels.program.launch import WrongBinding
from mps_build.kernels.read.metadata import Argument, Metadata

RELEASES = {"2.6.0", "2.10.0", "2.11.0", "2.13.0", "2.14.1", "2.15.0"}
KERNELS, BOUND = 24_000, 0.96


@cache
def _recorded() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        lzma.decompress(Path(__file__).with_name("kernel_names.json.xz").read_bytes())
    )
    return document


def _arguments(row: list[list[str]]) -> tuple[Argument, ...]:
    return tuple(
        Argument(
            name=name,
            kind=kind,
            type="float" if type_ == "T" else type_,
            index=place,
            slot=place if kind.endswith("buffer") else None,
        )
        for place, (name, kind, type_) in enumerate(row)
    )


def _metadata(row: list[list[str]]) -> Metadata:
    return Metadata(function="k", arguments=_arguments(row), max_threads=None, arrays=(), types=())


def test_every_recorded_kernel_has_one_contract_or_none() -> None:
    """`match_kernel` raises where two match; nearly all have one."""
    names = [(name, _metadata(arguments)) for arguments, some in _recorded()["kernels"] for name in some]
    found = [match_kernel(name, metadata) for name, metadata in names]

    assert set(_recorded()["releases"]) == RELEASES
    assert len(names) > KERNELS
    assert sum(each is not None for each in found) > BOUND * len(names)


def test_the_order_of_contracts_decides_nothing() -> None:
    rows = load_contracts()
    some = [(names[0], _metadata(arguments)) for arguments, names in _recorded()["kernels"][::40]]
    for name, metadata in some:
        one, other = (match_kernel(name, metadata, order) for order in (rows, rows[::-1]))
        assert (one and one.contract) is (other and other.contract)


def test_a_kernel_that_two_contracts_match_is_an_error_that_names_both() -> None:
    def row(family: str) -> Contract:
        return Contract(
            folder="f", family=family, arguments="x", builtins="", types={}, pattern=re.compile("k.*"), binder="f.b.c",
            companions=(), options={},
        )  # fmt: skip

    metadata = _metadata([["x", "buffer", "T"]])
    assert match_kernel("kernel", metadata, (row("one"),)) is not None
    with pytest.raises(WrongBinding, match=r"kernel has two contracts: one \(f.b.c\) and two \(f.b.c\)"):
        match_kernel("kernel", metadata, (row("one"), row("two")))
