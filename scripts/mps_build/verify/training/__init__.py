"""Accelerate and Transformers on a torch: the promises of their pages as cases; the record is `verify_mps`'s."""
