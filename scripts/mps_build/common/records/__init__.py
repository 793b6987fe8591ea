"""Records of verifications and benchmarks, as written and read."""
