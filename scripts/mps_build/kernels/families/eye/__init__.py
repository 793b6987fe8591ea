"""Identity matrices."""
