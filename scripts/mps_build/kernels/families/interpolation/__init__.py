"""Images made larger or smaller, grid samplers, and their gradients."""
