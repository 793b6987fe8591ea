"""Random numbers, and what takes them."""
