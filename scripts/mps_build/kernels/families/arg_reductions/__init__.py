"""`argmax` and `argmin` in their layouts."""
