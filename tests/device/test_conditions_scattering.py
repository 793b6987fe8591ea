"""Generated conditions of operators: operators/scattering.py."""

from __future__ import annotations

from device_suite import Cases
from device_suite.conditions.listed import add_generated
from operators.scattering import t

cases = Cases("conditions")


add_generated(cases, t)
