"""Cholesky and LU factorizations, Householder and cross products, matrix exponentials."""
