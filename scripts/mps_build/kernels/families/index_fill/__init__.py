"""A value into the slices that indices or a mask choose."""
