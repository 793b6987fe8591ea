"""`histc`, `histogram` and `histogramdd`."""
