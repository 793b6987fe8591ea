"""`arange`, `linspace` and `logspace`."""
