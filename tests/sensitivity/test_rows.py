"""The generated conditions' rows: what they cover, and what the default layers ask of it."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from device_suite.conditions.listed import all_rows, rows_of
from engine.description import Operator
from operators import tables
from row_classes import classes_of, threes_of, triples_of
from row_making import OF_GPUS, Pairing, rows_of_gpus

SPECS = [spec for table in tables() for spec in table.operators.values()]


def test_every_three_classes_meet() -> None:
    """Of a kernel whose fault needs three facts: pairs alone leave most of these out."""
    spec = Operator(
        name="three_facts",
        args={"a": (0, 1, 2), "b": (0, 1, 2), "c": (0, 1)},
        dtypes="f",
        sizes={"one": (3, 4), "other": (4, 4)},
        values=("plain",),
        forms=("call",),
        layouts=("dense", "transposed", "offset"),
        act=lambda x, a, b, c: x * (1 + a) + b - c,
    )
    pairing = Pairing(spec)
    pairing.make()

    classes = classes_of(spec)
    for places in triples_of(spec):
        wanted = set(itertools.product(*(set(classes[place]) for place in places)))
        assert {tuple(classes[place][row[place]] for place in places) for row in pairing.rows} == wanted


def test_a_pair_that_is_refused_is_not_tried_as_three() -> None:
    def act(x: torch.Tensor, a: int, b: int, c: int) -> torch.Tensor:
        if a and b:
            raise ValueError("a and b exclude each other")
        return x + a + b + c

    options: dict[str, Any] = {"dtypes": "s", "sizes": {"one": (3, 4)}, "values": ("plain",), "forms": ("call",)}
    spec = Operator(
        name="excluding", args={"a": (0, 1), "b": (0, 1), "c": (0, 1)}, layouts=("dense",), act=act, **options
    )
    pairing = Pairing(spec)
    pairing.make()

    assert pairing.rows
    assert pairing.dropped == 1  # the pair alone


def test_what_a_gpu_answers_otherwise_is_of_rows_that_can_be_read_and_is_not_asked() -> None:
    specs = {spec.name: spec for spec in SPECS}
    assert OF_GPUS
    for name in OF_GPUS:
        assert rows_of_gpus(specs[name])
        assert not rows_of_gpus(specs[name]) & {row.digits for row in all_rows(specs[name])}


def test_no_operator_is_described_twice() -> None:
    names = [spec.name for spec in SPECS]
    assert sorted(names) == sorted(set(names))


def test_the_default_layers_ask_every_three_classes_that_a_row_has() -> None:
    lacking = []
    for spec in SPECS:
        every = {three for row in all_rows(spec) for three in threes_of(spec, row)}
        asked = {three for row in rows_of(spec) for three in threes_of(spec, row)}
        lacking += [f"{spec.name}: {three}" for three in every - asked]
    assert not lacking


def test_every_level_has_a_row() -> None:
    """A level that no row has is a mistake of the description: it reads as if it were asked."""
    missing = []
    for spec in SPECS:
        rows = all_rows(spec)
        for name, levels in spec.factors:
            if name == "@form" or name.startswith("@layout"):  # which of these exist is found when rows are made
                continue
            held = [row.levels[name] for row in rows]
            missing += [f"{spec.name}: {name}={level}" for level in levels if not any(one is level for one in held)]
    assert not missing
