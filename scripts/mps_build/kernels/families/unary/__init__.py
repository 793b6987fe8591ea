"""Operators of one operand: dense against torch, every other form against the dense one, bit for bit."""
