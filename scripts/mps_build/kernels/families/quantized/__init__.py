"""Products of packed, scaled and whole numbers."""
