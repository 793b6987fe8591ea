"""Inspect a wheel without running it on a Mac: audit, operator coverage, Metal kernels."""
