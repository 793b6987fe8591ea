"""Tensors put one behind the other."""
