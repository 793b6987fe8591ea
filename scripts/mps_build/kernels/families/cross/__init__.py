"""Cross products."""
