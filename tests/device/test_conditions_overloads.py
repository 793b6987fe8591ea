"""Conditions of single overloads that no other case has: device_suite/overloads/calls.json."""

from __future__ import annotations

from device_suite import Cases
from device_suite.overloads.asking import add_overloads

cases = Cases("conditions")


add_overloads(cases)
