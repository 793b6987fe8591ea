"""The other side of a comparison: torch on the CPU, in a process and an environment of its own."""
