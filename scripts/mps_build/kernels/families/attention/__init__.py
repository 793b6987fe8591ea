"""Attention: by one query, in two passes, in blocks."""
