"""Rules 2, 6 and 7 over all overloads: special values in each operand, arguments in turn, halves rounded once."""

from __future__ import annotations

from device_suite import Cases
from device_suite.rules.asked import add_rule
from device_suite.rules.asking import ask_answered, ask_rounded

cases = Cases("conditions")


add_rule(cases, "special", ask_answered)
add_rule(cases, "turns", ask_answered)
add_rule(cases, "rounding", ask_rounded)
