"""`searchsorted` and `bucketize`."""
