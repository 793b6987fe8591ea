"""Injected faults, a file for each area; ../README.md says how they are judged."""
