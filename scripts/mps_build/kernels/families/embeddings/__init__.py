"""Gradients of embeddings."""
