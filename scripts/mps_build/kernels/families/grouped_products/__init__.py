"""Products of groups of matrices of unequal sizes."""
