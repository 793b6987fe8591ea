"""Rule 5, over all overloads: dtype, shape, strides, storage offset and shared memory of every result."""

from __future__ import annotations

from device_suite import Cases
from device_suite.rules.asked import add_rule
from device_suite.rules.form import ask_form

cases = Cases("conditions")


add_rule(cases, "form", ask_form, since="2.6")
