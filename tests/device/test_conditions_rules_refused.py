"""Rule 1 over all overloads: shapes, ranks, dtypes, options and places that the CPU refuses."""

from __future__ import annotations

from device_suite import Cases
from device_suite.rules.asked import add_rule
from device_suite.rules.refusing import ask_refused

cases = Cases("conditions")


add_rule(cases, "refused", ask_refused, since="2.6")
# What a kernel finds wrong stops CUDA for the whole process.
add_rule(cases, "places", ask_refused, since="2.6", devices=("mps", "cpu"))
