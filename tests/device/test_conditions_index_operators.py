"""Generated conditions of operators: device_suite/conditions/tables_index_operators.py."""

from __future__ import annotations

from device_suite import Cases
from device_suite.conditions.listed import add_generated
from device_suite.conditions.tables_index_operators import t

cases = Cases("conditions")


add_generated(cases, t)
