"""Whether a wheel is what its receipt, its attestation and its recipe say."""
