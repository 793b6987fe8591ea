"""`index`, `index_put` and their checks: a tensor of indices for each of several dimensions."""
