"""One module per command: its options, its run, its result."""
