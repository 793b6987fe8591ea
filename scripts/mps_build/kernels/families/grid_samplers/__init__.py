"""Grid samplers and their gradients."""
