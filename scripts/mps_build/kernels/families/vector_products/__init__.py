"""Products of a matrix and a vector."""
