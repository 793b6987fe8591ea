"""What a run found, written down."""
