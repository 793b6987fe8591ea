"""Linear combinations of the powers of a matrix."""
