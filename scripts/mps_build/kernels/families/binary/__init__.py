"""Operators of two operands and of three: dense, repeated, cast."""
