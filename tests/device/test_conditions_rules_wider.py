"""The wider rules: options, indices, layouts of results, answers that are handed on, gradients in turn and of nothing.

They are asked of functions that are made of others too, and of kernels that MPS has not yet. Sides of 2**16 and more,
numbers of every size, conjugated and negated views, operands that want a gradient: likewise.
"""

from __future__ import annotations

from device_suite import Cases
from device_suite.rules.asked import add_rule
from device_suite.rules.asking import ask_answered
from device_suite.rules.beside import ask_beside
from device_suite.rules.derived import ask_again, ask_deterministic
from device_suite.rules.form import ask_form
from device_suite.rules.handed import ask_handed
from device_suite.rules.public import ask_public
from device_suite.rules.refusing import ask_refused

cases = Cases("conditions")


add_rule(cases, "options", ask_refused, most=3, since="2.13")
add_rule(cases, "misfits", ask_refused, most=1, since="2.13")
# What a kernel finds wrong stops CUDA for the whole process.
add_rule(cases, "indices", ask_refused, since="2.13", devices=("mps", "cpu"))
add_rule(cases, "outs", ask_answered, most=1, since="2.13")
add_rule(cases, "resized", ask_public, since="2.13")
add_rule(cases, "strides", ask_form, most=1, since="2.13")
add_rule(cases, "handed", ask_handed, since="2.13")
add_rule(cases, "again", ask_again, since="2.13")
add_rule(cases, "deterministic", ask_deterministic, most=1, since="2.13")
add_rule(cases, "sizes", ask_beside, in_all=2, since="2.13")
add_rule(cases, "numbers", ask_answered, since="2.13")
add_rule(cases, "lazy", ask_answered, since="2.13")
add_rule(cases, "typed", ask_answered, since="2.13")
add_rule(cases, "wanting", ask_answered, since="2.13")
add_rule(cases, "twice", ask_answered, since="2.13")
add_rule(cases, "halves", ask_answered, most=3, since="2.13")
add_rule(cases, "emptied", ask_answered, since="2.13")
add_rule(cases, "emptied_refused", ask_refused, most=3, since="2.13")
add_rule(cases, "dims", ask_answered, since="2.13")
add_rule(cases, "amid", ask_answered, since="2.13")
add_rule(cases, "vast", ask_answered, since="2.13")
add_rule(cases, "cuts", ask_answered, since="2.13")
add_rule(cases, "stray", ask_answered, most=2, since="2.13")
