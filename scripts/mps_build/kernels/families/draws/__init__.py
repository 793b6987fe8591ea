"""Random numbers, and what draws them."""
