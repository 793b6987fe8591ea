"""`nonzero`: counts of blocks, then the places."""
