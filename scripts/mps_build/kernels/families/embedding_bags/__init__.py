"""Embedding bags and their gradients."""
