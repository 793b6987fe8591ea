"""Secrets and identifiers: the rules that find them in a text, and what takes their place."""
