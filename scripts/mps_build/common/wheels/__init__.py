"""Wheel files: their names, contents, sets and download."""
