"""Mantissas and exponents."""
