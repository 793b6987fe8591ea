"""What several benchmarks use: the figures, their page, and what is measured in the same way."""
