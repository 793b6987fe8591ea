"""Radix sorts, each kernel alone."""
