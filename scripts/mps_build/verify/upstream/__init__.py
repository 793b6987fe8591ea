"""PyTorch's own tests over the simulated device: run as they are, and what came of each."""
