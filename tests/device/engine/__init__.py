"""Draws, makes and judges the calls of operators: see tests/device/README.md, "The drawn cases"."""
