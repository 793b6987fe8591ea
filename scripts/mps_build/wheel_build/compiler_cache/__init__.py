"""Compiler caches: the launcher in front of the compilers, and the store that a fleet shares."""
