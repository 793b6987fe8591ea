"""How kernels are shared out among processes: few of them, small ones last, and nothing done again in each."""

from __future__ import annotations

import sys

from mps_build.kernels.execution.pool import BATCH, LAST_BATCH, Task, _batches
from mps_build.kernels.families.shared.contracts import load_binders, load_contracts


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
