"""A value where a mask is true."""
