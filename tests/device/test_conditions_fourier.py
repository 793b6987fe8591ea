"""Generated conditions of operators: operators/fourier.py."""

from __future__ import annotations

from device_suite import Cases
from device_suite.conditions.listed import add_generated
from operators.fourier import t

cases = Cases("conditions")


add_generated(cases, t)
