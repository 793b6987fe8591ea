"""`im2col`, `col2im` and the gradient of `unfold`."""
