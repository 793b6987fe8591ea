"""Sums, products, norms, variances, `argmax` and others, a binder for each layout."""
