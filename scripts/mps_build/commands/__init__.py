"""One module per verb a user can type: its arguments, its run, its outcome."""
