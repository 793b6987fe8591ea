"""Embedding bags, and the gradients of embeddings."""
