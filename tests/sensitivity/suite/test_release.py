"""Between files a process gives memory back to the system only where it holds much: the device waits for that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

import suite_in_process  # noqa: F401 - the suite comes into reach by it
from engine.runs import Bench


@pytest.mark.parametrize(
    ("held", "given_back"),
    [
        ({"driver_allocated_memory": lambda: 1 << 20}, 0),
        ({"driver_allocated_memory": lambda: 1 << 30}, 1),
        ({"memory_reserved": lambda: 1 << 20}, 0),
        ({"memory_reserved": lambda: 1 << 30}, 1),
        ({}, 1),  # a torch that cannot tell
    ],
)
def test_much_is_given_back_and_little_is_kept(held: Any, given_back: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(torch, "mps", SimpleNamespace(empty_cache=lambda: calls.append(1), **held))

    Bench(torch.device("mps")).release()

    assert len(calls) == given_back


def test_the_cpu_has_nothing_to_give_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "cpu", SimpleNamespace(empty_cache=lambda: pytest.fail("called")))

    Bench(torch.device("cpu")).release()
