"""Which bug is in which release: the suite over several releases, as one table."""
