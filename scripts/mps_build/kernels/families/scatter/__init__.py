"""`gather`, `scatter` and their reductions."""
