"""Max and average pools, their gradients, and unpooling."""
