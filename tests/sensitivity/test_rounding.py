"""No false alarm on a device that is right and rounds otherwise: two units at every result of core and drawn."""

from __future__ import annotations

from typing import Callable

import pytest

from engine.cases import Case
from rounding import RoundsOtherwise
from suite_in_process import Suite, core_cases, drawn_case, requested

UNITS = 2.0
# These rest on equal elements giving equal results, as on any hardware; this noise goes by place.
# In binomial a rounding decides between two whole numbers.
EXACTLY = {*("issue-78110-dropout", "issue-84288-dropout-mask", "smoke-synchronise", "random-stream-binomial")}
# Demanded in the rehearsal alone, where the device draws the host's own numbers.
HOSTS = "not the host's numbers"


def _drawn() -> list[Case]:
    """Return every eighth drawn case of the default budget."""
    return [drawn_case(name) for name, file in requested(seed=3).ids.items() if file == "drawn"][::8]


@pytest.mark.parametrize("cases", [core_cases, _drawn], ids=["core", "drawn"])
def test_another_rounding_is_no_fault(cases: Callable[[], list[Case]]) -> None:
    suite, failed, computed, moved = Suite(()), {}, 0, 0
    for case in cases():
        mode = RoundsOtherwise(UNITS)
        outcome = suite.ask(case, lambda mode=mode: mode)
        computed += mode.computed > 0
        moved += mode.moved > 0
        if outcome.failure is not None and case.id not in EXACTLY and not outcome.failure.endswith(HOSTS):
            failed[case.id] = outcome.failure

    assert failed == {}
    assert moved > 0.6 * computed > 50, f"of {computed} cases that round, the noise moved {moved}"
