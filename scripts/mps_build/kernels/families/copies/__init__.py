"""Copies: of bytes, into longer tensors, turned around, repeated, put one behind the other."""
