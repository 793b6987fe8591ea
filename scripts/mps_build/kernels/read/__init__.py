"""Wheels, Metal libraries and the metadata of kernels, read."""
