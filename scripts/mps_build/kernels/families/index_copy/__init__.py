"""Slices copied to where indices say."""
