"""Cholesky factorizations, in blocks and in panels."""
