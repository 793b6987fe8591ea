"""Generated conditions of operators: operators/attention.py."""

from __future__ import annotations

from device_suite import Cases
from device_suite.conditions.listed import add_generated
from operators.attention import t

cases = Cases("conditions")


add_generated(cases, t)
