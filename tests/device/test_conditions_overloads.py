"""Conditions of single overloads that no other case has: device_suite/overloads/calls.json."""

from __future__ import annotations

from typing import Any

from device_suite import Cases
from device_suite.overloads.asking import add_overloads

cases = Cases("conditions")


def test_case(case: Any, ask: Any) -> None:
    ask(case)


add_overloads(cases)
