"""Products of matrices."""
