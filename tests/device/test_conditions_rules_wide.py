"""Rules 2, 3 and 5 over all overloads: gradients of special values, windows, written operands, 2**16 elements."""

from __future__ import annotations

from device_suite import Cases
from device_suite.rules.asked import add_rule
from device_suite.rules.asking import ask_answered
from device_suite.rules.beside import ask_beside

cases = Cases("conditions")


add_rule(cases, "derived", ask_answered)
add_rule(cases, "windows", ask_answered)
add_rule(cases, "written", ask_answered)
add_rule(cases, "broadcast", ask_beside)
add_rule(cases, "rows", ask_beside)
