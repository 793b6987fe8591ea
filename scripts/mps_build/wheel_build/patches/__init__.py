"""Patches: read, tried on copies, and compared with another source."""
