"""`nonzero` and `unique`: blocks are counted, then each element finds its place."""
