"""A short run of the fuzzing session over every reader of strangers' files; `nox -s dev -- fuzz` is the long one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fuzzed_json import KINDS
from fuzzing import SEED, TARGETS, Target, mutated, run
from processes import why_no_sandbox

INPUTS = 40


@pytest.mark.parametrize("target", TARGETS)
def test_whatever_is_read_ends_with_an_answer_or_an_error_of_ours(target: str, tmp_path: Path) -> None:
    if target == "bitcode" and why_no_sandbox():
        pytest.skip(f"no process can be closed here: {why_no_sandbox()}")
    inputs = 5 if target == "commands" else INPUTS  # whole commands, several to an input
    figures = run(TARGETS[target](), tmp_path, inputs=inputs)

    assert figures.inputs >= inputs
    assert not figures.errors
    assert figures.slowest < 10


def test_the_inputs_that_are_mutated_are_read_as_they_are(tmp_path: Path) -> None:
    for name, target in TARGETS.items():
        if name == "bitcode" and why_no_sandbox():
            continue
        for seed, data in target().seeds.items():
            if seed not in ("attestation", "benchmark"):
                target().read(seed, data, tmp_path)
                assert data, name


def test_mutations_of_a_structure_keep_it_json() -> None:
    document = json.dumps({"a": [1, {"b": "c"}], "d": None}).encode()
    for kind in KINDS:
        for where in (0.0, 0.3, 0.6, 0.99):
            changed = mutated(document, [(kind, where, 0.5, b"")])
            assert json.loads(changed) != json.loads(document) or kind in ("rename", "double")
    assert mutated(b"{", [("retype", 0.5, 0.5, b"")]) == b"{"
    assert json.loads(mutated(b'"x"', [("drop", 0.5, 0.0, b"")])) is None


def test_mutations_change_something() -> None:
    for kind in ("replace", "insert", "delete", "repeat", "flip", "cut"):
        assert mutated(b"0123456789", [(kind, 0.5, 0.1, b"xy")]) != b"0123456789"


def test_each_job_draws_inputs_of_its_own_and_the_same_ones_again(tmp_path: Path) -> None:
    def drawn(start: int) -> list[bytes]:
        found: list[bytes] = []
        target = Target(seeds={"a": b"0123456789"}, read=lambda _name, data, _folder: found.append(data))
        run(target, tmp_path, inputs=20, start=start)
        return found

    first, second, again = (drawn(start) for start in (SEED, SEED + 1, SEED))

    assert first == again
    assert first != second
