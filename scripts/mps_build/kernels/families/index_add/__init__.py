"""Slices added or reduced into where indices say."""
