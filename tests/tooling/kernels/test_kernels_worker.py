"""Kernels are shared out among workers, and run in turn in closed processes: none is blamed for another."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mps_build.kernels.code.compiled import Code
from mps_build.kernels.execution import examine, worker
from mps_build.kernels.execution.closed import Ended, OurFault
from mps_build.kernels.execution.examine import Outcome, Verdict
from mps_build.kernels.execution.pool import BATCH, LAST_BATCH, Task, _batches
from mps_build.kernels.execution.worker import MOST_KERNELS, Turns
from mps_build.kernels.families.shared.contracts import load_binders, load_contracts
from mps_build.kernels.machine.device import Device
from mps_build.kernels.machine.left import BadReport
from mps_build.kernels.program.dtypes import DTYPES
from mps_build.kernels.program.launch import View, input_buffer, output_buffer
from small_kernels import compiled, device, doubled, floats, launch, pack_floats, summed


def test_every_kernel_is_in_one_batch_and_the_last_are_small() -> None:
    tasks = [Task(library=number, function=place) for number in (0, 1) for place in range(3000)]

    batches = list(_batches(tasks, BATCH, 2))

    assert sorted((library, place) for library, places in batches for place in places) == [
        (each.library, each.function) for each in tasks
    ]
    assert len(batches) < len(tasks) / LAST_BATCH / 2, "a process costs 80 ms before its first kernel"
    assert all(len(places) <= LAST_BATCH for _, places in batches[-12:])
    assert all(places == list(range(places[0], places[0] + len(places))) for _, places in batches), "neighbours"


def test_few_kernels_are_shared_among_all_workers() -> None:
    tasks = [Task(library=0, function=place) for place in range(6)]

    assert [places for _, places in sorted(_batches(tasks, 3, 2))] == [[0, 1, 2], [3, 4, 5]]


def test_binders_are_imported_before_workers_fork() -> None:
    load_binders()

    folder = "mps_build.kernels.families."
    assert {folder + each.binder.rpartition(".")[0] for each in load_contracts()} <= set(sys.modules)


pytest.importorskip("llvmlite")


class Process:
    """In the place of a closed process: counts who is there, and which codes each was given."""

    there: list[Process]

    def __init__(self, server: Path, runtime: object, codes: dict[str, Code]) -> None:
        self.given, self.is_open = [codes], True
        self.there.append(self)

    def load(self, codes: dict[str, Code]) -> None:
        self.given.append(codes)

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Iterator[Turns]:
    Process.there = []
    monkeypatch.setattr(worker, "Machine", Process)
    yield Turns(Path("server"), None)


def answering(*outcomes: Outcome | Exception) -> Any:
    left = list(outcomes)

    def examine(machine: Any) -> Verdict:
        assert machine.is_open
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Verdict(outcome=answer)

    return examine


def test_kernels_that_pass_share_a_process_until_it_has_run_enough(turns: Turns) -> None:
    for _ in range(MOST_KERNELS + 1):
        assert turns.examined({}, answering("passed")).outcome == "passed"

    assert [len(each.given) for each in Process.there] == [MOST_KERNELS, 1]
    assert [each.is_open for each in Process.there] == [False, True]


@pytest.mark.parametrize(
    "first", ["wrong", "race", "timeout", "misfit", Ended("crashed", "x"), OurFault("x"), BadReport("x")]
)
def test_what_is_not_well_in_a_used_process_is_tested_again_in_a_new_one(turns: Turns, first: Any) -> None:
    turns.examined({}, answering("passed"))

    assert turns.examined({}, answering(first, "passed")).outcome == "passed"

    assert [each.is_open for each in Process.there] == [False, True]


@pytest.mark.parametrize("outcome", ["wrong", "race", "crashed", "misfit"])
def test_a_new_process_has_the_last_word_and_nobody_follows_in_it(turns: Turns, outcome: Outcome) -> None:
    turns.examined({}, answering("passed"))

    assert turns.examined({}, answering("wrong", outcome)).outcome == outcome
    assert turns.examined({}, answering("passed")).outcome == "passed"

    assert [len(each.given) for each in Process.there] == [2, 1, 1]


@pytest.mark.parametrize("error", [Ended("timeout", "x"), OurFault("x"), BadReport("x")])
def test_a_new_process_that_fails_is_ended_and_its_error_is_the_kernels(turns: Turns, error: Exception) -> None:
    with pytest.raises(type(error)):
        turns.examined({}, answering(error))

    assert [each.is_open for each in Process.there] == [False]


def test_the_next_kernel_finds_no_memory_of_the_last_open() -> None:
    """A device that ran a large buffer and threadgroup memory, cleared, catches the same overreach as a new one."""
    large, small = input_buffer(pack_floats(*range(4096))), input_buffer(pack_floats(1, 2))
    codes = {"doubled": compiled(doubled()), "summed": compiled(summed()), "before": compiled(doubled(shift=-2000))}
    one: Device = device(codes)
    launch(one, "doubled", {"out": output_buffer(16384), "in": large}, threads=4096, group=64)
    out = output_buffer(4)
    launch(one, "summed", {"out": out, "in": large}, threads=64, group=64)

    one.clear()

    (trouble,) = launch(one, "before", {"out": output_buffer(8), "in": small}, threads=2, group=2).troubles
    assert trouble.kind == "fault"
    again = output_buffer(8)
    assert floats(launch(one, "doubled", {"out": again, "in": small}, threads=2, group=2), again) == (2, 4)


def test_bytes_between_the_elements_of_a_view_must_stay() -> None:
    view = View(buffer=output_buffer(12), dtype=DTYPES["short"], shape=(2, 2), strides=(3, 1))
    content = bytearray(b"\xa5" * 12)
    content[0:4] = content[6:10] = b"\1\2\3\4"

    assert examine.gap_changed([view], bytes(content), 0xA5) is None
    content[4] = 0
    assert examine.gap_changed([view], bytes(content), 0xA5) == 4
