"""Contracts: which kernels are known by their signature, and how each kind is launched and judged."""
