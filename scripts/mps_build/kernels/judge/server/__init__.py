"""The process that has torch: it compares what kernels left with references."""
