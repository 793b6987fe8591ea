"""Pools and unpooling, `im2col`, `col2im`, `unfold`, and their gradients."""
