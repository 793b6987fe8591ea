"""`lerp` with a tensor of weights."""
