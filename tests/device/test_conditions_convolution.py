"""Generated conditions of operators: operators/convolution.py."""

from __future__ import annotations

from device_suite import Cases
from device_suite.conditions.listed import add_generated
from operators.convolution import t

cases = Cases("conditions")


add_generated(cases, t)
