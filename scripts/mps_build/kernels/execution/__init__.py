"""Executing untrusted kernels: limits, a process that may die, and a parent that goes on."""
