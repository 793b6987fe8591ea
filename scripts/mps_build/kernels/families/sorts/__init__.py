"""Sorts: a row by one threadgroup, or tiles of it and then merges of runs."""
