"""Sums, products, norms, variances and others, a binder for each layout."""
