"""`index`, `index_put`, `gather`, `scatter` and their reductions: an index for each element."""
